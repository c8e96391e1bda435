//! How a loop's thread waits, what time it is there, and what else it is told of.

use alloc::sync::Arc;
use core::ops::BitOr;

use antiphon_platform::Platform;

/// Ends a wait that is on, or the next one.
pub type Ring = Arc<dyn Fn() + Send + Sync>;

/// What a loop has beside its events: a clock, a way to sleep, and sources that say when something
/// is to be done.
pub trait Wait: 'static {
    /// Where the words are by which other threads submit.
    type Platform: Platform;
    /// What can be waited for beside the time: a file, say.
    type Source;
    /// What a source says: readable, say. Of two that come before the callback is called, that has
    /// both; the default is nothing.
    type Ready: Copy + Default + BitOr<Output = Self::Ready> + Send;
    /// Why a source can't be waited for.
    type Error;

    /// Nanoseconds of the clock that releases are given in.
    fn now_ns() -> u64;

    /// Sleeps until a source has something to say, until [rung](Self::ring), until that time, or
    /// for no reason. A time that has passed is a look; `None` is for good. `tell` is told what
    /// each source says, by its key.
    fn wait(&mut self, until_ns: Option<u64>, tell: &mut dyn FnMut(u64, Self::Ready));

    /// How other threads end a wait.
    fn ring(&self) -> Ring;

    /// Waits for that, too, from now on. Keys are less than 2⁶³.
    ///
    /// # Errors
    ///
    /// If it can't be waited for.
    fn add(&mut self, source: Self::Source, key: u64) -> Result<(), Self::Error>;

    /// Does so no longer.
    fn remove(&mut self, key: u64);

    /// Somebody else waits for the loop, who is to be told at that time: at once if it has passed.
    /// For waits that another one can wait for; others do nothing.
    fn arm(&mut self, _until_ns: Option<u64>) {}
}

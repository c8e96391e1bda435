//! The way in which a loop's thread waits, its clock, and its sources.

use alloc::sync::Arc;
use core::ops::BitOr;

use antiphon_platform::Platform;

/// Ends a wait that is on, or the next one.
pub type Ring = Arc<dyn Fn() + Send + Sync>;

/// The environment of a loop: a clock, a way to sleep, and sources that say when something is to be
/// done.
pub trait Wait: 'static {
    /// The platform of the words by which other threads submit.
    type Platform: Platform;
    /// The kind of source that can be waited for beside the time: a file, for example.
    type Source;
    /// The words of a source: readable, for example. If two come before the callback is called,
    /// they are joined; the default is nothing.
    type Ready: Copy + Default + BitOr<Output = Self::Ready> + Send;
    /// The reason why a source can't be waited for.
    type Error;

    /// Nanoseconds of the clock that releases are given in.
    fn now_ns() -> u64;

    /// Sleeps until a source has something to say, until [rung](Self::ring), until `until_ns`, or
    /// for no reason. A time that has passed is a look; `None` is for good. `tell` is called with
    /// the key of each source and what it says.
    fn wait(&mut self, until_ns: Option<u64>, tell: &mut dyn FnMut(u64, Self::Ready));

    /// The function by which other threads end a wait.
    fn ring(&self) -> Ring;

    /// Waits for `source`, too, from now on. Keys are less than 2⁶³.
    ///
    /// # Errors
    ///
    /// If the source can't be waited for.
    fn add(&mut self, source: Self::Source, key: u64) -> Result<(), Self::Error>;

    /// Stops waiting for the source of that key.
    fn remove(&mut self, key: u64);

    /// Says that another waiter waits for the loop, and is to be notified at that time: at once if
    /// it has passed. For waits that another one can wait for; others do nothing.
    fn arm(&mut self, _until_ns: Option<u64>) {}
}

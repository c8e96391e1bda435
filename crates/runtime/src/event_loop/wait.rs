//! The platform interface of a loop: its wait, its clock, and its sources.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::BitOr;

use antiphon_platform::Platform;

use crate::coop::Cooperate;

/// Ends a wait in progress, or the next one. May be called by any thread.
pub type Ring = Arc<dyn Fn() + Send + Sync>;

/// The environment of a loop: a clock, a way to sleep, and sources that report events.
pub trait Wait: 'static {
    /// The platform whose atomics other threads submit through.
    type Platform: Platform;
    /// The kind of source that can be waited for in addition to the time: a file, for example.
    type Source;
    /// What a source reports: readable, for example. Two reports before the callback is called are
    /// combined by `|`; the default is nothing.
    type Ready: Copy + Default + BitOr<Output = Self::Ready> + Send;
    /// The reason why a source can't be waited for.
    type Error;

    /// Returns the time of the clock that releases refer to, in nanoseconds.
    fn now_ns() -> u64;

    /// Sleeps until a source reports something, until [rung](Self::ring) or until `until_ns`; may
    /// also return spuriously. With a time that has passed it only checks; `None` sets no limit.
    /// `tell` is called with the key of each source and its report.
    fn wait(&mut self, until_ns: Option<u64>, tell: &mut dyn FnMut(u64, Self::Ready));

    /// Returns the function by which other threads end a wait.
    fn ring(&self) -> Ring;

    /// Waits for `source`, too, from now on. Keys are less than 2⁶³.
    ///
    /// # Errors
    ///
    /// If the source can't be waited for.
    fn add(&mut self, source: Self::Source, key: u64) -> Result<(), Self::Error>;

    /// Stops waiting for the source of that key.
    fn remove(&mut self, key: u64);

    /// Reports that another waiter waits for the loop, and must be notified at `until_ns`: at once
    /// if that has passed. For waits that another waiter can wait for; others do nothing.
    fn arm(&mut self, _until_ns: Option<u64>) {}

    /// Returns the tier of a loop whose owner wants `tier`: that one, or a more exact one of the
    /// platform, which uses `tier` where it can't be used itself.
    fn tier(&mut self, tier: Box<dyn Cooperate>) -> Box<dyn Cooperate> {
        tier
    }
}

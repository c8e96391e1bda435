//! Time: the time-stamp counter's.

use antiphon_metal::x86::clock;

pub use core::time::Duration;

/// A time since the boot, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(u64);

impl Instant {
    /// This moment.
    #[must_use]
    pub fn now() -> Self {
        Self(clock::now_ns())
    }

    /// The time from `earlier` to this; zero if it is later.
    #[must_use]
    pub fn duration_since(&self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

//! Deadlines from durations.

use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Deadline};

/// A time that is over: a wait until then is a look.
pub(crate) const PAST: Option<Deadline> = Some(Deadline { clock: Clock::Monotonic, ns: 0 });

/// The time `timeout` from now. What is too far to be counted is for ever.
#[must_use]
pub(crate) fn deadline_after(timeout: Duration) -> Deadline {
    Deadline::after::<Linux>(timeout)
}

/// The time in nanoseconds, or the most that can be counted.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

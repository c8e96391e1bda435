//! Conversion of durations to deadlines and nanoseconds.

use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Deadline};

/// A deadline in the past: a wait with it only polls.
pub(crate) const PAST: Option<Deadline> = Some(Deadline { clock: Clock::Monotonic, ns: 0 });

/// Returns the time `timeout` from now. A time that can't be represented counts as never.
#[must_use]
pub(crate) fn deadline_after(timeout: Duration) -> Deadline {
    Deadline::after::<Linux>(timeout)
}

/// Converts to nanoseconds; `u64::MAX` if there are more.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

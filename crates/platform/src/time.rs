//! Clocks, deadlines and spin budgets.

use core::time::Duration;

use crate::Clocks;

/// A clock that deadlines can be given in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// Never steps.
    Monotonic,
    /// The time of day: a deadline in it follows the clock when that is set.
    Realtime,
    /// The monotonic clock as the program around the lock sees it, where a library stands between
    /// the program and the kernel's clock. The same as [`Monotonic`](Self::Monotonic) elsewhere.
    SeenMonotonic,
    /// The time of day as the program sees it, likewise.
    SeenRealtime,
}

impl Clock {
    /// Whether it is one that a program sees: how it goes is not known beforehand.
    #[must_use]
    pub const fn is_seen(self) -> bool {
        matches!(self, Self::SeenMonotonic | Self::SeenRealtime)
    }
}

/// A point in time at which a wait ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The clock it is a time of.
    pub clock: Clock,
    /// Nanoseconds since that clock's zero.
    pub ns: u64,
}

impl Deadline {
    /// The time `timeout` from now, by the monotonic clock. What is too far to be counted is for
    /// ever.
    #[must_use]
    pub fn after<P: Clocks>(timeout: Duration) -> Self {
        let ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let ns = P::now(Clock::Monotonic).saturating_add(ns);
        Self { clock: Clock::Monotonic, ns }
    }
}

/// How long to spin before something else is tried, in nanoseconds.
///
/// A budget, not a promise: a platform may cut it short when it sees that spinning is no use
/// (the thread was preempted, the machine is crowded), and measures it as coarsely as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Budget {
    /// Nanoseconds.
    pub ns: u32,
    /// Whether to look less and less often, the second time after this many nanoseconds. For a word
    /// that its owner works on: each look takes the line away from it. Not for a word that only the
    /// waiter looks at.
    pub backoff: Option<u32>,
}

impl Budget {
    /// Look once.
    pub const NONE: Self = Self::ns(0);
    /// How long a wait without an end spins before it lets others run, on a platform where it can;
    /// then it spins for as long again.
    pub const PATIENCE: Self = Self::ns(10_000);

    /// A budget of `ns` nanoseconds.
    #[must_use]
    pub const fn ns(ns: u32) -> Self {
        Self { ns, backoff: None }
    }

    /// The same budget, spent on fewer and fewer looks: the second after `ns` nanoseconds or, if
    /// that is 0, as soon as can be.
    #[must_use]
    pub const fn backing_off(self, ns: u32) -> Self {
        Self { backoff: Some(ns), ..self }
    }
}

//! Clocks, deadlines and spin budgets.

use core::time::Duration;

use crate::Clocks;

/// A clock for deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// Never steps.
    Monotonic,
    /// The time of day: a deadline in it moves when the clock is set.
    Realtime,
    /// The monotonic clock as the program sees it, where a library stands between the program and
    /// the kernel's clock. The same as [`Monotonic`](Self::Monotonic) elsewhere.
    SeenMonotonic,
    /// The time of day as the program sees it, where a library stands between the program and the
    /// kernel's clock. The same as [`Realtime`](Self::Realtime) elsewhere.
    SeenRealtime,
}

impl Clock {
    /// Returns whether this is a clock as the program sees it, whose rate is not known in advance.
    #[must_use]
    pub const fn is_seen(self) -> bool {
        matches!(self, Self::SeenMonotonic | Self::SeenRealtime)
    }
}

/// A point in time at which a wait ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The clock that `ns` refers to.
    pub clock: Clock,
    /// Nanoseconds since that clock's zero.
    pub ns: u64,
}

impl Deadline {
    /// The time `timeout` from now, by the monotonic clock. A time that does not fit in 64 bits is
    /// [`u64::MAX`], and never comes.
    #[must_use]
    pub fn after<P: Clocks>(timeout: Duration) -> Self {
        let ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let ns = P::now(Clock::Monotonic).saturating_add(ns);
        Self { clock: Clock::Monotonic, ns }
    }
}

/// The time to spin before the caller tries something else.
///
/// A budget, not a promise: a platform may cut it short when spinning has become useless (the
/// thread was preempted, the machine is crowded), and measures it as coarsely as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Budget {
    /// The length of the budget, in nanoseconds.
    pub ns: u32,
    /// If set, the loads of the word become less and less frequent; the second load comes after
    /// this many nanoseconds. For a word on a cache line that its owner uses: each load takes the
    /// line away from the owner. Not for a word that only the waiter reads.
    pub backoff: Option<u32>,
}

impl Budget {
    /// Load the word once, without spinning.
    pub const NONE: Self = Self::ns(0);
    /// The time that an unbounded wait spins before it yields to other threads, on a platform where
    /// it can; then it spins for the same time again.
    pub const PATIENCE: Self = Self::ns(10_000);

    /// A budget of `ns` nanoseconds.
    #[must_use]
    pub const fn ns(ns: u32) -> Self {
        Self { ns, backoff: None }
    }

    /// The same budget with less and less frequent loads: the second load comes after `ns`
    /// nanoseconds or, if that is 0, as soon as possible.
    #[must_use]
    pub const fn backing_off(self, ns: u32) -> Self {
        Self { backoff: Some(ns), ..self }
    }
}

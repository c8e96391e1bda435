//! Short sleeps that end only by time, and deadlines.

use antiphon_platform::{Clock, Deadline, Hint, Platform, Waiter};

/// Sleeps for about `ns` nanoseconds.
pub fn nap<P: Platform>(ns: u64) {
    nap_until::<P>(after::<P>(ns));
}

/// Sleeps until about `deadline`.
pub(crate) fn nap_until<P: Platform>(deadline: Deadline) {
    // How the sleep ended does not matter: no other thread knows this node.
    let _ = P::park(&Waiter::<P>::NEW, Some(deadline));
}

/// Checks about every `ns` nanoseconds, until `done` is true or the deadline has passed; returns
/// whether it is true.
pub(crate) fn until_true<P: Platform>(
    deadline: Option<Deadline>,
    ns: u64,
    done: impl Fn() -> bool,
) -> bool {
    while !done() {
        if passed::<P>(deadline) {
            return false;
        }
        nap_until::<P>(earlier::<P>(deadline, ns));
    }
    true
}

/// Returns whether there is a deadline and it has passed.
pub fn passed<P: Platform>(deadline: Option<Deadline>) -> bool {
    deadline.is_some_and(|deadline| P::now(deadline.clock) >= deadline.ns)
}

/// How far ahead a clock is trusted that does not run at the monotonic clock's pace.
const SEEN_NS: u64 = 50_000_000;

/// Returns `deadline`, or `ns` nanoseconds from now if that is earlier. A deadline of a clock that
/// a program [sees](Clock::is_seen) may come at any time, so it counts as the earlier unless `ns`
/// is small.
pub fn earlier<P: Platform>(deadline: Option<Deadline>, ns: u64) -> Deadline {
    match deadline {
        Some(deadline) if deadline.clock.is_seen() && ns > SEEN_NS => deadline,
        Some(deadline) if deadline.ns < P::now(deadline.clock).saturating_add(ns) => deadline,
        _ => after::<P>(ns),
    }
}

/// Returns the time `ns` nanoseconds from now, at which the caller will check again.
pub(crate) fn after<P: Platform>(ns: u64) -> Deadline {
    let at_ns = P::now(Clock::Monotonic).saturating_add(ns);
    P::hint(Hint::LooksAgain { at_ns });
    Deadline { clock: Clock::Monotonic, ns: at_ns }
}

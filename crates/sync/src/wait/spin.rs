//! Spinning before a waiter sleeps.

use core::sync::atomic::Ordering::Acquire;

use antiphon_platform::{Atomic, Budget, Deadline, Hint, Platform, Word};

use super::CrowdForm;

/// Spins while `keep` holds of `word`: for a moment, and then for as long as a sleep and a wake
/// would cost, if the machine is not crowded and `deadline` does not come before that. Acquires
/// what it sees.
///
/// The moment is worth neither a look at how crowded the machine is nor being counted; whoever
/// waits for a thread that runs is let go in it.
///
/// # Errors
///
/// What it saw last, if the time is over.
pub(super) fn spin<P: Platform, F: CrowdForm, W: Word>(
    word: &impl Atomic<W>,
    deadline: Option<Deadline>,
    keep: impl Fn(W) -> bool + Copy,
) -> Result<W, W> {
    let seen = word.spin_while(Acquire, F::SPIN, keep);
    if seen.is_ok() || F::EVENT_SPIN.ns == 0 || P::crowded() {
        return seen;
    }
    let budget = before::<P>(deadline, F::EVENT_SPIN);
    P::hint(Hint::SpinBegin);
    let seen = word.spin_while(Acquire, budget, keep);
    P::hint(Hint::SpinEnd);
    seen
}

/// As much of the budget as can be spent before the deadline.
fn before<P: Platform>(deadline: Option<Deadline>, budget: Budget) -> Budget {
    let Some(deadline) = deadline else { return budget };
    let left = deadline.ns.saturating_sub(P::now(deadline.clock));
    Budget { ns: u32::try_from(left).unwrap_or(u32::MAX).min(budget.ns), ..budget }
}

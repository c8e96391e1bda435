//! Fairness: how long a head that was called may be overtaken.
//!
//! The lock can be stolen while the head that was called is on its way, perhaps to a CPU that
//! somebody else uses. That is what makes the lock fast, and it must not go on for ever: from a
//! certain time on, whoever releases the lock keeps it for the head (`FAIR`).
//!
//! ```text
//!   asks ──► called ──── may be overtaken ────► due ──► a release keeps it ──► takes it
//!              │◄────────── patience ───────────►│             │◄── lateness ──►│
//! ```
//!
//! A lock that is kept and not taken is time lost for all. How long that is depends on what else
//! the machine does: microseconds where the head only needs the CPU of the one that it waits for,
//! a time slice where strangers want that CPU too. So each thread remembers how late it was, and
//! the next time bears to be overtaken for [`SHARE`] times as long: whatever the machine, one part
//! in [`SHARE`] of the time is lost to fairness at most.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Clock, Platform, Waiter};

use super::mutex::Form;

/// One part in so many of the time may be lost to fairness.
const SHARE: u32 = 20;
/// Nobody is patient for longer: a second, about.
const LONGEST: u32 = 1 << 20;
/// Patience that was not called for shrinks by one part in so many each time.
const FORGETS: u32 = 8;

/// What becomes of a waiter's patience in a lock of form `F`. All of it is relaxed: these words
/// decide how long something takes and not what comes of it; a caller that is late may even write
/// to the node's next wait.
pub(super) struct Patience<F>(PhantomData<F>);

impl<F: Form> Patience<F> {
    /// Nobody's patience ever ends: then nothing is noted either.
    pub(super) const ENDLESS: bool = F::PATIENCE_NS == u32::MAX;

    /// A wait of the caller begins, with the patience that it has learnt.
    pub(super) fn begin<P: Platform>(node: &Waiter<P>) {
        if !Self::ENDLESS {
            node.due.store(0, Relaxed);
            node.patience.store(P::local(|local| local.patience.load(Relaxed)), Relaxed);
        }
    }

    /// The waiter is called: its patience begins to run, unless it does so already.
    pub(super) fn call<P: Platform>(node: &Waiter<P>) {
        if !Self::ENDLESS && !Self::was_called(node) {
            let patience = node.patience.load(Relaxed).max(F::PATIENCE_NS >> UNIT_BITS);
            node.due.store(now::<P>().wrapping_add(patience) | 1, Relaxed);
        }
    }

    /// Whether the waiter was called in this wait.
    pub(super) fn was_called<P: Platform>(node: &Waiter<P>) -> bool {
        !Self::ENDLESS && node.due.load(Relaxed) != 0
    }

    /// Whether the waiter was called, and its patience has run out.
    pub(super) fn is_over<P: Platform>(node: &Waiter<P>) -> bool {
        if Self::ENDLESS {
            return false;
        }
        let due = node.due.load(Relaxed);
        // Nobody is due in more than `LONGEST`: that was long ago, and the clock has wrapped.
        due != 0 && due.wrapping_sub(now::<P>()).wrapping_sub(1) > LONGEST
    }

    /// As [`is_over`](Self::is_over), for those who release a lock that was overtaken: looks at the
    /// clock once in [`Form::LOOK`] times.
    pub(super) fn seems_over<P: Platform>(node: &Waiter<P>) -> bool {
        if Self::ENDLESS {
            return false;
        }
        let looks = node.data.load(Relaxed).wrapping_add(1);
        node.data.store(looks, Relaxed);
        looks.is_multiple_of(F::LOOK) && Self::is_over(node)
    }

    /// The lock was kept for the waiter, who did not come: it is not due again for a long time.
    pub(super) fn excuse<P: Platform>(node: &Waiter<P>) {
        if !Self::ENDLESS {
            node.due.store(now::<P>().wrapping_add(LONGEST) | 1, Relaxed);
        }
    }

    /// The lock is kept for the waiter from now on.
    pub(super) fn keep<P: Platform>(node: &Waiter<P>) {
        if !Self::ENDLESS {
            node.due.store(now::<P>(), Relaxed);
        }
    }

    /// The head has the lock: learns from how late it was, if the lock was kept for it.
    pub(super) fn learn<P: Platform>(node: &Waiter<P>, kept: bool) {
        if Self::ENDLESS {
            return;
        }
        let patience = node.patience.load(Relaxed);
        let lateness = match node.due.load(Relaxed) {
            // Below zero if the head was faster than the note of it.
            due if kept && due != 0 => now::<P>().wrapping_sub(due).cast_signed().max(0),
            _ => 0,
        };
        let learnt = lateness.cast_unsigned().saturating_mul(SHARE).min(LONGEST);
        let new = learnt.max(patience - patience.div_ceil(FORGETS));
        P::local(|local| local.patience.store(new, Relaxed));
    }
}

/// The unit of all these times is 1024 ns.
const UNIT_BITS: u32 = 10;

/// Now, odd; wraps around after 73 minutes.
fn now<P: Platform>() -> u32 {
    (P::now(Clock::Monotonic) >> UNIT_BITS) as u32 | 1
}

#[cfg(test)]
mod tests {
    extern crate std;

    use antiphon_sim::{Machine, Sim, Simulation, work};

    use super::*;
    use crate::lock::Standard;

    type Standards = Patience<Standard>;

    /// Runs `test` on one thread of a simulated machine, which alone tells the time.
    fn simulated(test: fn(&Waiter<Sim>)) {
        let thread = move |_| {
            let node = Waiter::NEW;
            test(&node);
        };
        let done = Simulation::new(Machine::two_sockets(), 1).threads(1, thread).run(0);
        assert!(done.is_ok(), "{:?}", done.err());
    }

    #[test]
    fn a_called_waiter_is_due_when_its_patience_ends() {
        simulated(|node| {
            Standards::begin(node);
            assert!(!Standards::was_called(node) && !Standards::is_over(node));
            Standards::call(node);
            assert!(Standards::was_called(node) && !Standards::is_over(node));
            work(u64::from(Standard::PATIENCE_NS) / 2);
            Standards::call(node);
            assert!(!Standards::is_over(node));
            work(u64::from(Standard::PATIENCE_NS) / 2 + 4096);
            assert!(Standards::is_over(node), "a second call gives no more time");
            Standards::excuse(node);
            assert!(!Standards::is_over(node));
            work(u64::from(LONGEST + 4) << UNIT_BITS);
            assert!(Standards::is_over(node));
        });
    }

    #[test]
    fn who_was_late_is_patient_for_twenty_times_as_long_and_forgets() {
        simulated(|node| {
            const LATE: u32 = 1000;
            Standards::begin(node);
            Standards::keep(node);
            work(u64::from(LATE) << UNIT_BITS);
            Standards::learn(node, true);
            Standards::begin(node);
            let learnt = node.patience.load(Relaxed);
            assert!((SHARE * (LATE - 2)..=SHARE * (LATE + 2)).contains(&learnt), "{learnt}");
            Standards::learn(node, false);
            Standards::begin(node);
            assert_eq!(node.patience.load(Relaxed), learnt - learnt.div_ceil(FORGETS));
        });
    }

    #[test]
    fn a_time_that_is_long_past_stays_past_when_the_clock_wraps() {
        simulated(|node| {
            for ago in [0, 1 << 20, 1 << 31, u32::MAX - 2 * LONGEST] {
                node.due.store(now::<Sim>().wrapping_sub(ago) | 1, Relaxed);
                work(4096);
                assert!(Standards::is_over(node), "{ago} units ago");
            }
        });
    }
}

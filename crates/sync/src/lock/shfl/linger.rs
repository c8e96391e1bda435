//! How long waiters spin before they sleep.
//!
//! | waiter | spins at | for |
//! |---|---|---|
//! | arriving waiter | the lock | [`Form::SPIN`]; less if a head was called; 0 if handed over |
//! | in the queue, CPUs short | its node | [`Form::QUEUE_SPIN`]; not at all behind a sleeper |
//! | in the queue, CPUs to spare | its node | [`Form::LINGER`] |
//! | … and the lock is handed over | its node | as long as the queue moves (LINGER-1, 2) |
//! | head, CPUs to spare | the lock | [`Form::LINGER`] |
//! | head that was called | the lock | [`Form::PATIENCE_NS`], after which it may insist |
//! | any other head | the lock | [`Form::HEAD_SPIN`] |
//! | any, where sections were long lately | | one look (LINGER-5) |
//!
//! Where the lock is handed over (`handover.rs`), its line names the owner. So a waiter sees by a
//! load of the lock whether the queue moves, and hand-overs need not be counted:
//!
//! - LINGER-1: a waiter spins on if the owner's name has changed since its last look; otherwise it
//!   sleeps. Looks are [`ROUND`] spins apart at first, or as far as a lock needs to go round all
//!   CPUs, and then twice as far each time: each look takes the lock's line away from the owner,
//!   and a queue of hundreds must pay for all of them.
//! - LINGER-2: from the second round on it also sleeps if the name has not changed within
//!   [`STILL_NS`]: each hold of the lock is then too long to wait for it awake.
//! - LINGER-3: it sleeps if its CPU is wanted, whatever is left of its time slice: a waiter that
//!   loses its CPU while it spins would be handed the lock all the same, and keep all others
//!   waiting. It looks again after a microsecond before it believes that its CPU is wanted: where a
//!   platform goes by the number of spinners, the present owner is counted among them for a moment.
//! - LINGER-4: a long spin ends when another thread wants the CPU of the waiter, or the head: that
//!   may be the thread that all wait for. The waiter checks every [`STILL_NS`].
//! - LINGER-5: where the thread has lately seen sections of the lock that were longer than a sleep
//!   and a wake (`lately.rs`), it sleeps at once, except for one wait in sixteen.
//!
//! These spins are not counted ([`Hint::SpinBegin`]): the counter's line would go from waiter to
//! waiter with the lock, and cost more than the lock.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Budget, Deadline, Hint, Platform};

use super::fair::Patience;
use super::form::Form;
use super::lately::{Lately, STILL_NS, Spun};
use super::queue::Place;
use super::status::Status;
use super::turn::Stands;
use super::urgent::Urgency;
use super::words::Words;
use crate::nap;
use crate::policy::Policy;

/// How long an arriving waiter that finds the lock taken does not look at it again; then twice as
/// long, and so on. Each look takes the lock's cache line away from the owner, which costs the
/// owner as much as some ten short critical sections.
const COMER_IN_PEACE_NS: u32 = 300;
/// How long a head that found the lock held does not look at it again. Where CPUs are to spare it
/// then looks as often as it can: that costs the owner a transfer of the line for each of its
/// writes, but a lock that stays free until the next look is lost time for all.
const HEAD_IN_PEACE_NS: u32 = 1_000;
/// How long an arriving waiter spins where a head sleeps or was called: about as long as the system
/// call in which it would fall asleep. The owner of a short critical section is gone by then.
const BESIDE_HEAD_NS: u32 = 500;
/// How many times [`Form::LINGER`] a waiter spins before it checks whether the queue moves.
/// Hundreds of waiters that come at once need as long to join.
const ROUND: u32 = 3;
/// Time of a hand-over with a short section on a large machine, per CPU: how long a lock takes to
/// go round.
const HAND_OVER_NS: u32 = 1_500;
/// The longest round: about a time slice.
const LONGEST_NS: u32 = 3_200_000;
/// How long a waiter spins between two checks whether its CPU is wanted.
const PIECE_NS: u32 = 5_000;
/// How long a waiter waits before it believes that its CPU is wanted.
const HESITATION_NS: u32 = 1_000;

/// Why a waiter has stopped spinning.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// The waiter must sleep, or its deadline has passed.
    Patience,
    /// The waiter has turned out to be urgent.
    Urgent,
}

pub(super) trait Lingers<P: Platform, Q: Policy, F: Form>: Words<P, Q, F> {
    /// Spins for a moment and barges if the lock comes free. The spin is shorter where a head
    /// sleeps or was called: one more contending thread is then one too many. But it is not 0: a
    /// thread that sleeps costs two switches, and heads may be named for most of the time.
    ///
    /// So short a spin neither checks how crowded the machine is nor is counted: both touch memory
    /// that all threads touch. A lock that is kept for the head is left alone.
    fn spin_and_barge(&self) -> bool {
        if F::SPIN.ns == 0 || F::LINGER.ns != 0 && self.handing().is_some() {
            return false;
        }
        let budget = if self.is_called() { Budget::ns(BESIDE_HEAD_NS) } else { F::SPIN };
        budget.ns != 0 && self.spin(budget.backing_off(COMER_IN_PEACE_NS)) && self.take_as_comer()
    }

    /// Returns whether a wait is worth a long spin, and the next waiter is worth a wake ahead of
    /// its turn. Two CPUs never have one to spare.
    fn lingers() -> bool {
        Self::HELD_BRIEFLY && F::LINGER.ns != 0 && P::cpus() > 2 && !is_wanted::<P>()
    }

    /// Spins as the head, which found the lock held. A head that was called stays awake where CPUs
    /// are free: calling it again would cost the owner more than its looks.
    fn spin_as_head(&self, me: Place<P>) -> bool {
        let late = Patience::<F>::heads_are_late::<P>();
        let lingers = !late && Self::lingers();
        let called = Patience::<F>::was_called(me.node);
        let mut lately = Lately::of::<P, _>(self);
        let (budget, is_long) = match called {
            _ if lingers => (Budget::ns(HEAD_IN_PEACE_NS), !Self::is_vain(lately)),
            // One look: a spin would take the CPU of a thread that has work, or is likely to be
            // unsuccessful.
            _ if late || P::crowded() || Self::is_vain(lately) => (Budget::NONE, false),
            true if !lately.is_vain() => (Budget::ns(F::PATIENCE_NS), true),
            _ => (F::HEAD_SPIN, false),
        };
        P::hint(Hint::SpinBegin);
        let (free, spun) = match self.spin(budget.backing_off(HEAD_IN_PEACE_NS)) {
            true => (true, Spun::Soon),
            false if lingers && is_long => match self.spin_long(F::LINGER.ns) {
                // The head is the next: the section was as long as its spin. Where CPUs are short
                // its owner may have had none.
                (true, Spun::Late) if P::roomy() => (true, Spun::InVain),
                spun => spun,
            },
            false => (false, if is_long { Spun::InVain } else { Spun::Late }),
        };
        P::hint(Hint::SpinEnd);
        if Self::LEARNS || !lingers {
            lately.note::<P>(spun);
        }
        free
    }

    /// LINGER-5: returns whether the caller must not spin.
    fn is_vain(lately: Lately) -> bool {
        Self::LEARNS && lately.is_vain()
    }

    /// Spins as the head for `left_ns`, or until its CPU is wanted (LINGER-4); returns whether the
    /// lock was seen free, and how the spin ended.
    fn spin_long(&self, left_ns: u32) -> (bool, Spun) {
        let look = |piece| self.spin(piece).then_some(()).ok_or(());
        let (free, spun) = in_pieces(left_ns, is_wanted::<P>, look);
        (free.is_ok(), spun)
    }

    /// Spins behind the head, or in a cohort, until there is something to do, and returns the
    /// status; or until it has spun for long enough. Returns whether the caller `measures` its
    /// section if it is handed the lock.
    fn spin_behind(
        &self,
        me: Place<P>,
        stands: &Stands<P>,
        deadline: Option<Deadline>,
        urgency: &mut Urgency<P>,
        measures: &mut bool,
    ) -> Result<u32, Over> {
        // Acquire: as `status::load`. INV-4: without the role, the waiter does only this.
        let idle = |budget| me.node.status.spin_while(Acquire, budget, Status::idle);
        let mut lately = Lately::of::<P, _>(self);
        let mut owner = if F::LINGER.ns == 0 { None } else { self.handing() };
        if owner.is_none() {
            let (budget, is_long) = Self::patience(stands, lately);
            P::hint(Hint::SpinBegin);
            let (status, spun) = in_pieces(budget.ns, || !stays(me), idle);
            P::hint(Hint::SpinEnd);
            // An unsuccessful spin may be due to a long queue.
            if Self::LEARNS && is_long && spun == Spun::Soon {
                lately.note::<P>(spun);
            }
            if status.is_ok() || F::LINGER.ns == 0 {
                return status.or(Err(Over::Patience));
            }
            owner = self.handing();
        } else if Self::is_vain(lately) {
            return Err(Over::Patience);
        }
        *measures = Self::LEARNS && owner.is_some() && lately.is_to_measure::<P>();
        let first = F::LINGER.ns.saturating_mul(ROUND).max(going_round_ns::<P>());
        let mut round = first;
        let moves = |owner: &mut Option<u16>| {
            let last = core::mem::replace(owner, self.handing());
            owner.is_some() && *owner != last
        };
        'rounds: while owner.is_some() {
            let mut left = until::<P>(deadline, round);
            while left > 0 {
                // LINGER-3.
                if !stays(me) {
                    break 'rounds;
                }
                let piece = left.min(PIECE_NS);
                if let Ok(status) = idle(Budget::ns(piece)) {
                    return Ok(status);
                }
                left -= piece;
            }
            // URGENT-4.
            if Self::URGENT && urgency.ask(me.node) {
                return Err(Over::Urgent);
            }
            // LINGER-1.
            if nap::passed::<P>(deadline) || !moves(&mut owner) {
                break;
            }
            if round > first {
                if let Ok(status) = idle(Budget::ns(STILL_NS)) {
                    return Ok(status);
                }
                // LINGER-2.
                if !moves(&mut owner) {
                    break;
                }
            }
            // COHORT-5.
            if round == LONGEST_NS && matches!(stands, Stands::InCohort) {
                break;
            }
            round = round.saturating_mul(2).min(LONGEST_NS);
        }
        Err(Over::Patience)
    }

    /// Returns how long a waiter behind the head spins where the lock is not handed over: not at
    /// all behind a sleeper where CPUs are short. Also returns whether that is a long spin.
    fn patience(stands: &Stands<P>, lately: Lately) -> (Budget, bool) {
        let behind_sleeper = || matches!(stands, Stands::Behind(ahead) if ahead.sleeps());
        if Self::lingers() && !Self::is_vain(lately) {
            (F::LINGER, true)
        } else if F::HEAD_SLEEPS && behind_sleeper() || P::crowded() {
            (Budget::NONE, false)
        } else {
            (F::QUEUE_SPIN, false)
        }
    }
}

impl<P: Platform, Q: Policy, F: Form, C: Words<P, Q, F>> Lingers<P, Q, F> for C {}

/// Returns `ns`, or the time until the deadline if that is less.
fn until<P: Platform>(deadline: Option<Deadline>, ns: u32) -> u32 {
    deadline.map_or(ns, |deadline| {
        let left = deadline.ns.saturating_sub(P::now(deadline.clock));
        left.try_into().map_or(ns, |left: u32| left.min(ns))
    })
}

/// Returns how long it takes until a lock has gone round, if a thread on each CPU waits for it. A
/// waiter that looks at the lock earlier learns nothing, and takes the lock's line away from its
/// owner: with a thousand CPUs the looks of all waiters cost more than the hand-overs.
fn going_round_ns<P: Platform>() -> u32 {
    P::cpus().saturating_mul(HAND_OVER_NS).min(LONGEST_NS)
}

/// Returns whether another thread wants the caller's CPU, as far as the platform can tell.
fn is_wanted<P: Platform>() -> bool {
    P::slice_left_ns() != u32::MAX
}

/// Spins for `left_ns` in pieces, or until `wanted` (LINGER-4); returns what the last piece did,
/// and how the spin ended.
fn in_pieces<T>(
    mut left_ns: u32,
    wanted: impl Fn() -> bool,
    spin: impl Fn(Budget) -> Result<T, T>,
) -> (Result<T, T>, Spun) {
    let mut spun = Spun::Soon;
    loop {
        let piece_ns = left_ns.min(STILL_NS);
        let found = spin(Budget::ns(piece_ns));
        left_ns -= piece_ns;
        match found {
            Ok(_) => return (found, spun),
            Err(_) if left_ns == 0 => return (found, Spun::InVain),
            Err(_) if wanted() => return (found, Spun::Late),
            Err(_) => spun = Spun::Late,
        }
    }
}

/// LINGER-3: returns whether the waiter spins on, because its CPU is not wanted or there is
/// something to do.
fn stays<P: Platform>(me: Place<P>) -> bool {
    // Relaxed: the caller loads the status again.
    let idle = |ns| me.node.status.spin_while(Relaxed, Budget::ns(ns), Status::idle);
    !is_wanted::<P>() || idle(HESITATION_NS).is_ok() || !is_wanted::<P>()
}

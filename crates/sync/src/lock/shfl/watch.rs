//! Keeping watch over a head that may not run, because it sits in a signal handler or is stopped.
//!
//! - WATCH-1: a thread that calls a head and does not find it asleep also wakes the first waiter
//!   behind it that is asleep.
//! - WATCH-2: the waiter so woken, and each waiter that is about to sleep while the head is called
//!   or awake, sleeps with the backstop, and takes a lock that is free when it looks up.
//! - WATCH-3: a waiter that takes the lock in that way wakes the waiter behind itself, which keeps
//!   watch from then on.
//! - WATCH-4: so does a waiter that gives up.
//!
//! While the head sleeps, is named and `WAKE` is set, a waiter that is not the head sleeps without
//! a timer: an unlock will call the head, and no other wake is needed.
//!
//! A waiter that links itself while the head is called sees that the head is called, or is seen by
//! the caller: each does its own part, then a sequentially consistent fence, and then checks for
//! the other.
//!
//! One case is not covered: a head that is interrupted after it was woken and before it has the
//! lock. The waiters behind it then sleep until it runs again, or until another waiter comes. A
//! futex has the same weakness: a wake that was given is not passed on.

use core::sync::atomic::Ordering::{Acquire, SeqCst};

use antiphon_platform::{Atomic, Deadline, Platform, Waiter, WaiterRef};

use super::form::Form;
use super::queue::Place;
use super::words::Words;
use crate::policy::Policy;
use crate::{arena, nap};

/// How many places behind a head are searched for a sleeper. The search passes abandoned nodes, and
/// must end in a queue that changes meanwhile.
const REACH: usize = 64;
/// The backstop doubles up to this many times.
const DOUBLINGS: u32 = 5;

/// A waiter's watch over its head.
pub(super) struct Watch {
    /// When the waiter looks up. A spurious end of a sleep does not change it: a waiter that is
    /// interrupted all the time looks up as often as others.
    until: Option<Deadline>,
    looks: u32,
}

impl Watch {
    pub(super) const NEW: Self = Self { until: None, looks: 0 };

    /// Returns until when the caller, which is about to sleep behind the head, may sleep (WATCH-2).
    /// A caller in a cohort is not found by a search behind the head, so it always looks up by
    /// itself.
    pub(super) fn until<P: Platform, Q: Policy, F: Form>(
        &mut self,
        lock: &impl Words<P, Q, F>,
        deadline: Option<Deadline>,
        in_cohort: bool,
    ) -> Option<Deadline> {
        if F::BACKSTOP_NS == 0 {
            return deadline;
        }
        // SeqCst: our link comes first; pairs with the fence in `wake_behind`.
        P::fence(SeqCst);
        if !in_cohort && lock.head_sleeps() {
            self.until = None;
            return as_head(lock, deadline);
        }
        let ns = F::BACKSTOP_NS << self.looks.min(DOUBLINGS);
        Some(*self.until.get_or_insert_with(|| nap::earlier::<P>(deadline, ns)))
    }

    /// Notes that the caller looks up.
    pub(super) fn is_over(&mut self) {
        self.until = None;
        self.looks += 1;
    }
}

/// Returns until when a waiter may sleep that has a wake coming, or is behind a head that has one
/// coming. In memory that other processes share, the owner may be a thread of another process,
/// which does not know our waiters and wakes another thread or none.
pub(super) fn as_head<P: Platform, Q: Policy, F: Form>(
    lock: &impl Words<P, Q, F>,
    deadline: Option<Deadline>,
) -> Option<Deadline> {
    if F::BACKSTOP_NS == 0 || !P::is_foreign(core::ptr::from_ref(lock.tail()).addr()) {
        return deadline;
    }
    Some(nap::earlier::<P>(deadline, F::BACKSTOP_NS << DOUBLINGS))
}

/// Wakes a head that was called; and a waiter behind it, if the head was not found asleep
/// (WATCH-1). Returns whether the head was asleep. Touches only nodes.
pub(super) fn wake_head<P: Platform>(head: WaiterRef) -> bool {
    let asleep = P::unpark_asleep(head);
    if !asleep && let Some(head) = arena::<P>().resolve_index(head.index) {
        wake_behind(head);
    }
    asleep
}

/// WATCH-4: called by a waiter that has just left the queue at its deadline, and may have kept
/// watch. Its node may belong to another wait by now: then the headship has passed it, and so has
/// its watch.
pub(super) fn give_on<P: Platform, Q: Policy, F: Form>(
    lock: &impl Words<P, Q, F>,
    node: &Waiter<P>,
) {
    if F::BACKSTOP_NS == 0 {
        return;
    }
    // SeqCst: our leaving comes first; pairs with the fence in `wake_behind`, whose caller passes
    // our node.
    // mutant: the models wake all that sleep behind a head that does not run, so none needs this.
    P::fence(SeqCst);
    if !lock.head_sleeps() {
        wake_behind(node);
    }
}

/// Wakes the first waiter behind this one that is found asleep, to keep watch. Touches only nodes;
/// these may stand in another queue by now, and then the wake is spurious.
#[cold]
#[inline(never)]
pub(super) fn wake_behind<P: Platform>(waiter: &Waiter<P>) {
    // SeqCst: the call of the head comes first; pairs with the fence in `Watch::until`.
    P::fence(SeqCst);
    // Acquire: as in `Place::next`.
    // mutant: as in `give_on`.
    let mut at = Place::<P>::at(waiter.next.load(Acquire));
    for _ in 0..REACH {
        let Some(place) = at else { return };
        if place.sleeps()
            && let Some(sleeper) = arena::<P>().reference(place.id.index())
            && P::unpark_asleep(sleeper)
        {
            return;
        }
        // This waiter has left, or checks the lock itself before it sleeps; or it does not run
        // either.
        at = place.next();
    }
}

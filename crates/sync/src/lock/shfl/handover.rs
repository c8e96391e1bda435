//! Handing the mutex over: from owner to waiter, without being free in between.
//!
//! Where CPUs are to spare, the waiters are awake, and releasing the lock for the first thread that
//! takes it costs more than giving it to the next waiter: the lock's cache line goes to the head
//! and back, and arriving waiters that barge undo the queue's order. So an owner that comes from
//! the queue keeps its place at the front of it, as in an MCS lock, and names it in the lock:
//!
//! ```text
//!   head:  PASS | owner's place
//!                   │
//!                   ▼
//!   queue:        OWNER ──► WAITING ──► WAITING ──► …
//!                   └─ hand_over ─┘
//! ```
//!
//! | `head` | the owner | `locked` |
//! |---|---|---|
//! | 0, or the head's name | any thread; it has left the queue | as in `mutex.rs` |
//! | `PASS` and a name | the first of the queue, or one of its cohort (`cohort.rs`) | `LOCKED` |
//!
//! ```text
//!              keep: head = PASS|me                    hand_over
//!   (owner, from the queue) ────► OWNER, hands over ───────────────► next is OWNER, hands over
//!                                     │ no waiter is awake; or one is urgent
//!                                     ▼
//!                        gives its place up, and releases
//! ```
//!
//! - PASS-1: while `PASS` is set the lock is held and no waiter is the head; only the owner writes
//!   `head`, and no arriving waiter barges.
//! - PASS-2: the next waiter has the lock by one exchange of its status, from `WAITING`. A waiter
//!   that sleeps or has left does not get the lock: it is set aside (`aside.rs`), and the next
//!   waiter is tried. If no waiter is awake, the owner gives its place up and releases, and all is
//!   as in `mutex.rs`.
//! - PASS-3: after that exchange the last owner touches nothing of the lock (MUTEX-3), nor of the
//!   waiter: only nodes of its own.
//! - PASS-4: where a waiter is urgent (`urgent.rs`), the owner puts the most urgent one first and
//!   releases: the head decides, as elsewhere.
//!
//! The owner names its own place and not the next waiter's, because between `keep` and `hand_over`
//! the queue may be sorted, and a waiter may join. Each owner stores the name once, by a plain
//! store that its thread does not wait for, and the same thread reads it back: the lock's cache
//! line is not on the path of a hand-over.
//!
//! A waiter that is handed the lock may have lost its CPU just then, or sit in a signal handler;
//! all others wait until it is back. An owner that loses its CPU right after it has the lock has
//! the same effect, so no program can rely on the difference. It is rare: a waiter does not spin
//! while another thread wants its CPU (LINGER-3), and a waiter that sleeps does not get the lock. A
//! signal handler that interrupts a spinning waiter has this effect for as long as it runs.
//!
//! - PASS-5: a waiter without a place, which can only take a lock that is free, ends the handing
//!   over after at most one more owner: while such a waiter exists in the process, no owner keeps
//!   its place.
//! - PASS-6: nor is the lock handed over where sections were long lately (`lately.rs`): waiters
//!   sleep there, and one that is set aside has its next turn after [`Form::COHORT`] others.
//!
//! The lock is not handed over where policies sort the queue, gather waiters by something other
//! than sockets, wake ahead or lend: these need a head, which has the time for it. Nor is it handed
//! over where memory is known to be shared with other processes, whose waiters would write to
//! `head`.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform};

use super::cohort::Cohorts;
use super::contended::Contended;
use super::exclusive::half;
use super::form::Form;
use super::lately::Lately;
use super::mutex::{PASS, ShflMutex};
use super::queue::{Place, Tail};
use super::sort::Sorted;
use super::status::{self, Offer};
use super::turn::Wait;
use super::urgent::{self, Urgency};
use super::words::Words;
use crate::arena;
use crate::policy::Policy;

impl<P: Platform, Q: Policy, F: Form> Cohorts<P> for ShflMutex<P, Q, F> {
    const COHORT: u16 = F::COHORT;
    const SPINS: bool = false;

    fn queue(&self) -> &impl Tail<P> {
        &self.tail
    }

    fn has_cohorts(&self) -> bool {
        F::LINGER.ns != 0 && self.hands_over() && Words::policy(self).by_socket::<P>()
    }

    fn offer(next: Place<P>) -> Offer {
        status::hand_over(next.node)
    }

    fn may_pass_by(place: Place<P>, offer: &Offer) -> bool {
        Self::may_set_aside(place, offer)
    }

    fn pass_by(first: Place<P>, place: Place<P>, offer: &Offer) {
        Self::set_aside(first, place, offer);
    }
}

impl<P: Platform, Q: Policy, F: Form> ShflMutex<P, Q, F> {
    /// Called by the owner, which stands first in the queue: keeps that place, and will hand the
    /// lock over. Returns `false`, and does nothing, if it will release the lock instead. `handed`:
    /// the owner got the lock by a hand-over; then this reads no cache line that others write
    /// meanwhile.
    pub(super) fn keep(&self, me: Place<P>, handed: bool, policy: Q) -> bool {
        if !F::HEAD_SLEEPS
            || F::LINGER.ns == 0
            || policy.sorts()
            || policy.shuffles::<P>() && !policy.by_socket::<P>()
            || policy.wakes()
            || policy.lends()
            || me.id.index() >= u32::from(PASS)
            || arena::<P>().placeless() != 0
            || !(handed || self.is_worth_handing(me))
        {
            return false;
        }
        // Relaxed: read by the thread that unlocks, which is this one or ordered behind it; to
        // others it is a hint.
        self.head.store(half(me) | PASS, Relaxed);
        if !handed {
            Self::begin_list(me);
            me.node.passed.store(0, Relaxed);
        }
        true
    }

    /// Returns whether the waiters are awake, as far as the caller can see, and have CPUs of their
    /// own.
    #[cold]
    fn is_worth_handing(&self, me: Place<P>) -> bool {
        P::cpus() > 2
            && !(Self::LEARNS && Lately::of::<P, _>(self).is_long())
            && match me.next() {
                None => F::EXPECTS || P::roomy(),
                Some(next) => !next.sleeps() || self.last_is_up(),
            }
            && !P::is_foreign(core::ptr::from_ref(self).addr())
    }

    /// Returns whether the last waiter is awake, as far as the caller can see: if so, those before
    /// it will be set aside.
    fn last_is_up(&self) -> bool {
        let last = self.tail.name().and_then(|id| Place::<P>::at(id.bits()));
        last.is_some_and(|last| !last.sleeps())
    }

    /// Called by the owner, which has kept its place: hands the lock over. Returns `false` if the
    /// caller still has the lock and must release it; its place is then given up.
    pub(super) fn hand_over(&self) -> bool {
        let lock = core::ptr::from_ref(self).addr();
        let handed = self.try_hand_over();
        if Self::LEARNS {
            Lately::end_section::<P>(lock);
        }
        handed
    }

    fn try_hand_over(&self) -> bool {
        // Relaxed: the owner's own store, or that of an earlier owner that is ordered before us.
        let name = u32::from(self.head.load(Relaxed) & !PASS);
        let Some(me) = Place::<P>::at_index(name) else {
            // This is the child of a fork, and the queue was the parent's.
            self.head.store(0, Relaxed);
            return false;
        };
        let urgency = Urgency::moved(&self.tail);
        if urgency.has_company() {
            // PASS-4.
            let first = self.place_of(me);
            let role = urgent::raise(self, first, false, &urgency);
            self.give_place_up(first, Wait::Acquired, Sorted::NO, role);
            return false;
        }
        if self.hand_over_in_cohort(me) {
            return true;
        }
        let first = self.first_of(me);
        // Relaxed: written before the lock was handed over.
        let times = first.node.passed.load(Relaxed);
        // Without cohorts, a turn lasts for as many waiters of the queue as a cohort's turn would.
        let is_over = times >= F::COHORT || Words::policy(self).by_socket::<P>();
        let sleeper = if is_over { Self::turn_out(first) } else { None };
        let handed = self.hand_over_in_queue(first, if is_over { 0 } else { times + 1 });
        if let Some(sleeper) = sleeper {
            P::unpark(sleeper);
        }
        if !handed {
            self.call_back(first);
            self.give_place_up(first, Wait::Acquired, Sorted::NO, false);
        }
        handed
    }

    /// Called by the owner, whose place is `first`: hands the lock to the next waiter in the queue
    /// that is awake, and sets the sleepers before it aside. `times` is how many times in a row the
    /// lock was handed on in this way. Returns `false` if no waiter is awake.
    fn hand_over_in_queue(&self, first: Place<P>, times: u16) -> bool {
        while let Some(next) = first.next() {
            // Relaxed: the exchange of the status publishes it.
            next.node.passed.store(times, Relaxed);
            Self::hand_list_on(first, next);
            let offer = status::hand_over(next.node);
            if let Offer::Taken = offer {
                first.give();
                return true;
            }
            if !self.set_next_aside(first, next, &offer) {
                break;
            }
        }
        false
    }
}

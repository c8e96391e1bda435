//! How waiters change the words of a [`ShflMutex`]. The waiting itself is in `contended.rs`.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Budget, Platform, Traced, TracedKind, Waiter};

use super::cohort::Cohorts;
use super::comer;
use super::fair::Patience;
use super::fence::Fence;
use super::form::Form;
use super::mutex::{FAIR, LOCKED, PASS, ShflMutex, WAKE};
use super::queue::{Place, TailId};
use super::turn::Ask;
use super::wake;
use super::words::Words;
use crate::arena;
use crate::policy::Policy;

impl<P: Platform, Q: Policy, F: Form> Words<P, Q, F> for ShflMutex<P, Q, F> {
    const LEARNS: bool = !F::EXPECTS;

    fn tail(&self) -> &TailId<P> {
        &self.tail
    }

    fn traced(&self) -> Traced {
        Traced::new(self, TracedKind::Mutex)
    }

    fn policy(&self) -> Q {
        self.policy()
    }

    fn sign(&self, _me: &Waiter<P>) {
        comer::note_waited::<P, _>(self);
    }

    fn named(&self) -> u16 {
        // Relaxed: a hint.
        self.head.load(Relaxed) & !PASS
    }

    fn head_sleeps(&self) -> bool {
        // Relaxed: a caller that must know passes a fence first.
        self.head.load(Relaxed) != 0 && self.locked.load(Relaxed) & WAKE != 0
    }

    fn is_held(&self) -> bool {
        self.is_locked()
    }

    fn spin(&self, budget: Budget) -> bool {
        self.locked.spin_while(Relaxed, budget, |locked| locked & LOCKED != 0).is_ok()
    }

    fn take_as_comer(&self) -> bool {
        self.take()
    }

    fn take_any(&self) -> bool {
        self.take_free()
    }

    fn take_as_head(&self, me: Place<P>) -> bool {
        let mut seen = self.locked.load(Relaxed);
        while seen & LOCKED == 0 {
            // Acquire: pairs with the release in `unlock`.
            match self.locked.compare_exchange(seen, LOCKED, Acquire, Relaxed) {
                Ok(_) => {
                    Patience::<F>::learn(me.node, seen & FAIR != 0);
                    if F::LINGER.ns != 0 && P::cpus() > 2 {
                        wake::note_taken::<P>(core::ptr::from_ref(self).addr());
                    }
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        false
    }

    fn insist(&self) {
        // Relaxed: orders nothing.
        self.locked.fetch_or(FAIR, Relaxed);
    }

    fn give_up(&self) {
        // Relaxed: orders nothing.
        self.locked.fetch_and(!FAIR, Relaxed);
    }

    fn excuse_head(&self) {
        // Relaxed, both: they order nothing.
        let seen = self.locked.fetch_and(!FAIR, Relaxed);
        let head = u32::from(self.head.load(Relaxed));
        if let Some(head) = arena::<P>().resolve_index(head) {
            Patience::<F>::excuse_late(head, seen & FAIR != 0);
        }
    }

    fn ask_for_wake(&self, me: Place<P>, fence: &mut Fence) -> Ask {
        // Relaxed: `WAKE`, below, publishes it. An owner that takes an older flag for ours may see
        // this name and not our node's generation; then it wakes no waiter, and we are still awake.
        self.head.store(half(me), Relaxed);
        // Owners that are about to release by `store_unless` have done so, or will see `head`.
        let sound = fence.passes::<P>();
        let mut seen = self.locked.load(Relaxed);
        loop {
            if seen & LOCKED == 0 {
                return Ask::Free;
            }
            // Release: pairs with the acquire in `unlock_and_wake`.
            match self.locked.compare_exchange(seen, seen | WAKE, Release, Relaxed) {
                Ok(_) if sound => return Ask::Noted,
                Ok(_) => return Ask::Doubtful,
                Err(now) => seen = now,
            }
        }
    }

    fn unname(&self) {
        // Relaxed: the next head names itself only after it has learnt of its headship from us.
        self.head.store(0, Relaxed);
    }

    fn handing(&self) -> Option<u16> {
        // Relaxed: a hint.
        let head = self.head.load(Relaxed);
        (head & PASS != 0).then_some(head)
    }

    fn keep_place(&self, me: Place<P>, handed: bool, policy: Q) -> bool {
        self.keep(me, handed, policy)
    }

    fn join_cohort(&self, me: Place<P>) -> bool {
        self.enter_cohort(me)
    }

    fn place_of(&self, me: Place<P>) -> Place<P> {
        let first = self.first_of(me);
        self.call_back(first);
        first
    }

    fn disband(&self, me: Place<P>) {
        self.leave_cohort(me);
    }

    fn leave_asleep(&self, next: Place<P>) -> bool {
        // MUTEX-2. Relaxed: our own unlock, or the hand-off to another thread, comes later.
        self.head.store(half(next), Relaxed);
        self.locked.fetch_or(WAKE, Relaxed);
        true
    }
}

/// Returns the name that a place has in `head`.
pub(super) fn half<P: Platform>(place: Place<P>) -> u16 {
    place.id.index() as u16 & !PASS
}

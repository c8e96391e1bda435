//! Waiting: what those who wait do to the state. `contended.rs` has the rest.
//!
//! `NAME`, `WAKE` and `WAITING` are set by one at a time: the head; or the owner that was the head,
//! on behalf of a waiter that learns of its headship only afterwards. Who clears `WAKE` for another
//! wakes that one.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Budget, Deadline, Platform, Traced, TracedKind, Waiter};

use super::super::contended::Contended;
use super::super::fair::Patience;
use super::super::fence::Fence;
use super::super::queue::{Place, TailId};
use super::super::status;
use super::super::turn::{Ask, Wait};
use super::kind::Kind;
use super::state::{Heed, State};
use super::wake::wake;
use super::{RwForm, ShflRwLock};
use crate::arena;
use crate::policy::Policy;

/// What somebody waits for: to be in, in the way of `K`.
struct Entry<'a, P: Platform, Q: Policy, F: RwForm, K> {
    lock: &'a ShflRwLock<P, Q, F>,
    kind: PhantomData<K>,
}

impl<P: Platform, Q: Policy, F: RwForm> ShflRwLock<P, Q, F> {
    /// What a comer pays heed to that says nothing of itself.
    pub(super) const COMER: Heed = if F::READERS_PASS { Heed::Recursion } else { Heed::All };
    /// The same of one that only tries.
    pub(super) const TRYING: Heed = if F::READERS_PASS { Heed::Insisting } else { Heed::Trying };

    /// Comes in without waiting; says whether it did.
    pub(super) fn enter<K: Kind>(&self, heed: Heed) -> bool {
        // Acquire: pairs with the releases of those who have left.
        let entered = self.change(Acquire, |seen| K::enter(seen, heed));
        if let Ok(found) = entered {
            self.mind_head(found, K::WRITES);
        }
        entered.is_ok()
    }

    /// Comes in, or gives up at the deadline; says whether it is in.
    pub(super) fn wait<K: Kind>(&self, deadline: Option<Deadline>) -> bool {
        const { assert!(F::HEAD_SLEEPS) }
        let entry = Entry { lock: self, kind: PhantomData::<K> };
        entry.lock_contended(deadline) == Wait::Acquired
    }
}

impl<P: Platform, Q: Policy, F: RwForm, K: Kind> Entry<'_, P, Q, F, K> {
    /// Whether the head is kept out.
    fn keeps_out(seen: State) -> bool {
        K::enter(seen, Heed::Head).is_none()
    }
}

impl<P: Platform, Q: Policy, F: RwForm, K: Kind> Contended<P, Q, F> for Entry<'_, P, Q, F, K> {
    fn tail(&self) -> &TailId<P> {
        &self.lock.tail
    }

    fn policy(&self) -> Q {
        self.lock.policy()
    }

    fn sign(&self, me: &Waiter<P>) {
        // Relaxed: published with the node, by the exchange of the tail.
        me.wants.store(K::WRITES.into(), Relaxed);
    }

    fn traced(&self) -> Traced {
        Traced::new(self.lock, if K::WRITES { TracedKind::Write } else { TracedKind::Read })
    }

    fn named(&self) -> u16 {
        self.lock.peek().name()
    }

    /// Of waiters of one priority, writers go first (POSIX, `pthread_rwlock_rdlock`).
    fn urgency_of(node: &Waiter<P>) -> u32 {
        // Relaxed: written before its waiter joined the queue, whose links are acquired.
        match u32::from(status::urgency(node)) {
            0 => 0,
            urgency => urgency << 1 | u32::from(node.wants.load(Relaxed) != 0),
        }
    }

    fn announce(&self) {
        if K::WRITES && !F::READERS_PASS {
            // Relaxed: orders nothing.
            let _ = self.lock.change(Relaxed, |seen| seen.changed(State::with_writer_waiting));
        }
    }

    fn head_sleeps(&self) -> bool {
        let seen = self.lock.peek();
        seen.is_called() && seen.is_to_be_woken()
    }

    fn is_held(&self) -> bool {
        Self::keeps_out(self.lock.peek())
    }

    fn spin(&self, budget: Budget) -> bool {
        // Relaxed: who comes in looks again.
        let spun = self.lock.state.spin_while(Relaxed, budget, |seen| Self::keeps_out(State(seen)));
        spun.is_ok()
    }

    fn take_as_comer(&self) -> bool {
        self.lock.enter::<K>(ShflRwLock::<P, Q, F>::COMER)
    }

    fn take_beside_head(&self) -> bool {
        !K::WRITES && self.take_as_comer()
    }

    fn is_head_excused(&self) -> bool {
        let head = arena::<P>().resolve_index(u32::from(self.lock.peek().name()));
        head.is_some_and(Patience::<F>::is_excused)
    }

    fn take_any(&self) -> bool {
        self.lock.enter::<K>(ShflRwLock::<P, Q, F>::TRYING)
    }

    fn take_as_head(&self, me: Place<P>) -> bool {
        // Acquire: as in `enter`.
        let entered =
            self.lock.change(Acquire, |seen| Some(K::enter(seen, Heed::Head)?.without_head()));
        if let Ok(seen) = entered {
            Patience::<F>::learn(me.node, seen.is_fair() && seen.is_free());
        }
        entered.is_ok()
    }

    fn insist(&self) {
        // Relaxed: orders nothing. It may stand already.
        let _ = self.lock.change(Relaxed, |seen| seen.changed(State::with_fair));
    }

    fn give_up(&self) {
        // Relaxed: orders nothing. Before it sleeps, it says again that it waits.
        let _ = self.lock.change(Relaxed, |seen| seen.changed(State::without_favour));
    }

    fn excuse_head(&self) {
        // Relaxed: orders nothing.
        let (Ok(seen) | Err(seen)) =
            self.lock.change(Relaxed, |seen| seen.changed(State::without_favour));
        if let Some(head) = arena::<P>().resolve_index(u32::from(seen.name())) {
            Patience::<F>::excuse(head);
        }
        // RW-4: it may have come meanwhile, and asked.
        if seen.has_waiting_writer() && seen.is_called() {
            wake::<P>(seen.name());
        }
    }

    fn ask_for_wake(&self, me: Place<P>, _: &mut Fence) -> Ask {
        // RW-2: only where somebody is in who keeps us out, and so will leave. Release: pairs with
        // the acquire in `wake`: our node's generation comes with its name.
        let asked = self.lock.change(Release, |seen| {
            Self::keeps_out(seen).then(|| seen.with_sleeper(name(me), K::WRITES))
        });
        if asked.is_ok() { Ask::Noted } else { Ask::Free }
    }

    fn unname(&self) {
        // Relaxed: the next head, who names itself, learns of its headship from us afterwards.
        let _ = self.lock.change(Relaxed, |seen| seen.changed(State::without_head));
    }

    fn leave_asleep(&self, next: Place<P>) -> bool {
        // Relaxed: written before its waiter joined the queue, whose links are acquired.
        let writes = next.node.wants.load(Relaxed) != 0;
        if K::WRITES || writes {
            // RW-2: we are in, and so will leave. Relaxed: by a release; who wakes it is us, or
            // comes after us.
            let _ = self.lock.change(Relaxed, |seen| Some(seen.with_sleeper(name(next), writes)));
            return true;
        }
        // The caller wakes it, to come in beside us. Relaxed: a hint to those who overtake it.
        Patience::<F>::call(next.node);
        let _ = self.lock.change(Relaxed, |seen| Some(seen.with_called(name(next))));
        false
    }
}

/// What stands in the state for a place.
fn name<P: Platform>(place: Place<P>) -> u16 {
    place.id.index() as u16
}

//! How waiters of the semaphore change its state. The rest of waiting is in `contended.rs`.
//!
//! `NAME`, `WANTED` and `WAKE` are set by one thread at a time: the head; or the last head, on
//! behalf of a waiter that learns of its headship only afterwards. A thread that clears `WAKE` for
//! a waiter wakes that waiter.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Budget, Platform, Traced, TracedKind, Waiter};

use super::super::fair::Patience;
use super::super::fence::Fence;
use super::super::form::Form;
use super::super::queue::{Place, TailId};
use super::super::turn::Ask;
use super::super::words::Words;
use super::Semaphore;
use super::state::{Heed, State};
use crate::arena;
use crate::policy::Policy;

/// What a caller waits for: `wanted` permits.
pub(super) struct Entry<'a, P: Platform, Q: Policy, F: Form> {
    pub(super) semaphore: &'a Semaphore<P, Q, F>,
    pub(super) wanted: u32,
}

impl<P: Platform, Q: Policy, F: Form> Words<P, Q, F> for Entry<'_, P, Q, F> {
    /// False: it is unknown when permits come.
    const HELD_BRIEFLY: bool = false;
    /// False: waiters that want different numbers of permits stay in the order in which they came.
    const URGENT: bool = false;

    fn tail(&self) -> &TailId<P> {
        &self.semaphore.tail
    }

    fn policy(&self) -> Q {
        Q::default()
    }

    fn sign(&self, me: &Waiter<P>) {
        // Relaxed: published with the node, by the exchange of the tail.
        me.wants.store(self.wanted, Relaxed);
    }

    fn traced(&self) -> Traced {
        Traced::new(self.semaphore, TracedKind::Semaphore)
    }

    fn named(&self) -> u16 {
        self.semaphore.peek().name()
    }

    fn head_sleeps(&self) -> bool {
        let seen = self.semaphore.peek();
        seen.is_called() && seen.is_to_be_woken()
    }

    fn is_held(&self) -> bool {
        !self.semaphore.peek().has(self.wanted)
    }

    fn spin(&self, budget: Budget) -> bool {
        let Semaphore { state, first, .. } = self.semaphore;
        let lacks = |word| !State::of(word, *first).has(self.wanted);
        // Relaxed: a waiter that takes permits looks again.
        state.spin_while(Relaxed, budget, lacks).is_ok()
    }

    fn take_as_comer(&self) -> bool {
        self.semaphore.take(self.wanted, Heed::Head)
    }

    fn take_any(&self) -> bool {
        self.semaphore.take(self.wanted, Heed::Nobody)
    }

    fn take_as_head(&self, me: Place<P>) -> bool {
        let take = |seen: State| Some(seen.take(self.wanted, Heed::Nobody)?.without_head());
        // Acquire: as in `take`.
        let taken = self.semaphore.change(Acquire, take);
        if let Ok(seen) = taken {
            Patience::<F>::learn(me.node, seen.is_fair());
        }
        taken.is_ok()
    }

    fn insist(&self) {
        // Relaxed: orders nothing. The flag may be set already.
        let _ = self.semaphore.change(Relaxed, |seen| seen.changed(State::with_fair));
    }

    fn give_up(&self) {
        // Relaxed: orders nothing.
        let _ = self.semaphore.change(Relaxed, |seen| seen.changed(State::without_fair));
    }

    fn excuse_head(&self) {
        // Relaxed: orders nothing.
        let (Ok(seen) | Err(seen)) =
            self.semaphore.change(Relaxed, |seen| seen.changed(State::without_fair));
        if let Some(head) = arena::<P>().resolve_index(u32::from(seen.name())) {
            Patience::<F>::excuse(head);
        }
    }

    fn ask_for_wake(&self, me: Place<P>, _: &mut Fence) -> Ask {
        // SEM-2. Release: pairs with the acquire in `wake`: our node's generation comes with its
        // name.
        let asked = self.semaphore.change(Release, |seen| {
            (!seen.has(self.wanted)).then(|| seen.with_sleeper(name(me), self.wanted))
        });
        if asked.is_ok() { Ask::Noted } else { Ask::Free }
    }

    fn unname(&self) {
        // Relaxed: the next head names itself only after it has learnt of its headship from us.
        let _ = self.semaphore.change(Relaxed, |seen| seen.changed(State::without_head));
    }

    fn leave_asleep(&self, next: Place<P>) -> bool {
        // Relaxed: written before its waiter joined the queue, whose links are acquired.
        let wanted = next.node.wants.load(Relaxed);
        // SEM-2. Relaxed: a waiter called by this name before `is_left_asleep` is called again
        // there.
        let named = self.semaphore.change(Relaxed, |seen| {
            (!seen.has(wanted)).then(|| seen.with_sleeper(name(next), wanted))
        });
        named.is_ok()
    }

    fn is_left_asleep(&self, next: Place<P>) -> bool {
        // SEM-2. A release that came before the grant has woken a waiter that was not the head yet.
        // An exchange, so that later releases see it. Release: a release that comes after it wakes
        // a waiter that finds itself the head, and knows the node, which we have acquired with the
        // link; pairs with the acquire in `wake`.
        let named = |seen: State| (seen.calls() == Some(name(next))).then_some(seen);
        self.semaphore.change(Release, named).is_ok()
    }
}

/// Returns the name that a place has in the state.
fn name<P: Platform>(place: Place<P>) -> u16 {
    place.id.index() as u16
}

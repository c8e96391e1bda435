//! How waiters of the readers-writer lock change its state. The rest of waiting is in
//! `contended.rs`.
//!
//! `NAME`, `WAKE` and `WAITING` are set by one thread at a time: the head; or the owner that was
//! the head, on behalf of a waiter that learns of its headship only afterwards. A thread that
//! clears `WAKE` for a waiter wakes that waiter.

use core::cell::Cell;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Budget, Deadline, Platform, Traced, TracedKind, Waiter};

use super::super::contended::Contended;
use super::super::fair::Patience;
use super::super::fence::Fence;
use super::super::form::Form;
use super::super::queue::{Place, TailId};
use super::super::status;
use super::super::turn::{Ask, Wait};
use super::super::words::Words;
use super::crowd;
use super::form::Lasting;
use super::kind::Kind;
use super::row::{MOVES, reads, wake_row};
use super::state::{Heed, Mark, State};
use super::wake::wake;
use super::{RwForm, ShflRwLock};
use crate::arena;
use crate::policy::Policy;

/// What a caller waits for: to hold the lock in the way `K`.
struct Entry<'a, P: Platform, Q: Policy, F: RwForm, K> {
    lock: &'a ShflRwLock<P, Q, F>,
    /// The state in which the caller has come in.
    found: Cell<State>,
    /// Whether the caller, as the head, leaves the queue for the place where writers wait for each
    /// other (HEIR-8).
    moves: bool,
    kind: PhantomData<K>,
}

impl<P: Platform, Q: Policy, F: RwForm> ShflRwLock<P, Q, F> {
    /// What an arriving waiter respects by default.
    pub(super) const COMER: Heed = if F::READERS_PASS { Heed::Recursion } else { Heed::All };
    /// What a caller that only tries respects.
    pub(super) const TRYING: Heed = if F::READERS_PASS { Heed::Insisting } else { Heed::Trying };

    /// Comes in without waiting; returns the state in which the caller came in, with a writer's
    /// mark.
    pub(super) fn enter<K: Kind>(&self, heed: Heed) -> Option<State> {
        let found = self.enter_as::<K>(|seen| K::enter(seen, heed)).ok()?;
        self.mind_head(found, K::WRITES);
        Some(found)
    }

    /// Does what [`enter`](Self::enter) does, by the caller's function `enter`. Returns as an error
    /// the state that keeps the caller out.
    pub(super) fn enter_as<K: Kind>(
        &self,
        enter: impl Fn(State) -> Option<State>,
    ) -> Result<State, State> {
        let mark = Mark::writer(P::epoch());
        loop {
            // Acquire: pairs with the releases of the threads that have left.
            match self.change(Acquire, |seen| Some(enter(seen)?.marked(mark))) {
                Ok(found) if K::WRITES => return Ok(found.with_mark(mark)),
                Ok(found) => return Ok(found),
                // RW-12.
                Err(seen) if seen.is_abandoned(P::epoch()) => self.end_abandoned(),
                Err(seen) => return Err(seen),
            }
        }
    }

    /// Comes in, or gives up at the deadline; returns the state in which the caller came in.
    pub(super) fn wait<K: Kind>(&self, deadline: Option<Deadline>) -> Option<State> {
        self.wait_or_move::<K>(deadline, false).ok()
    }

    /// Does what [`wait`](Self::wait) does, for a caller that `moves` if it can. Returns as an
    /// error how the wait has ended otherwise.
    pub(super) fn wait_or_move<K: Kind>(
        &self,
        deadline: Option<Deadline>,
        moves: bool,
    ) -> Result<State, Wait> {
        const { assert!(F::HEAD_SLEEPS) }
        let found = Cell::new(State(0));
        let entry = Entry { lock: self, found, moves, kind: PhantomData::<K> };
        let wait = if self.waits_awake::<K>() {
            Contended::<P, Q, Lasting<F>>::lock_contended(&entry, deadline)
        } else {
            Contended::<P, Q, F>::lock_contended(&entry, deadline)
        };
        if wait == Wait::Acquired { Ok(entry.found.get()) } else { Err(wait) }
    }

    /// Returns whether a waiter should stay awake for longer: where readers crowd, or may soon.
    ///
    /// It takes a while until a crowd is counted by socket. A waiter that is asleep by then costs a
    /// wake in its turn, during which others queue up behind it and sleep too: from then on the
    /// lock would be handed from sleeper to sleeper. Where only writers come, sleep is better,
    /// because few waiters are then awake.
    fn waits_awake<K: Kind>(&self) -> bool {
        let seen = self.peek();
        Self::may_spread() && (!K::WRITES || seen.is_spread() || seen.readers() > 0)
    }
}

impl<P: Platform, Q: Policy, F: RwForm, K: Kind> Entry<'_, P, Q, F, K> {
    fn enter(&self, heed: Heed) -> bool {
        let entered = self.lock.enter::<K>(heed);
        if let Some(found) = entered {
            self.found.set(found);
        }
        entered.is_some()
    }

    /// Returns whether the head is kept out.
    fn keeps_out(seen: State) -> bool {
        K::enter(seen, Heed::Head).is_none()
    }
}

/// For any form that differs from the lock's only in how long its waiters spin.
impl<P: Platform, Q: Policy, F: RwForm, G: Form, K: Kind> Words<P, Q, G> for Entry<'_, P, Q, F, K> {
    fn tail(&self) -> &TailId<P> {
        &self.lock.tail
    }

    fn policy(&self) -> Q {
        self.lock.policy()
    }

    fn sign(&self, me: &Waiter<P>) {
        let may_move = self.moves && !ShflRwLock::<P, Q, F>::is_urgent();
        let wants = if may_move { MOVES } else { K::WRITES.into() };
        // Relaxed: published with the node, by the exchange of the tail.
        me.wants.store(wants, Relaxed);
    }

    fn traced(&self) -> Traced {
        Traced::new(self.lock, if K::WRITES { TracedKind::Write } else { TracedKind::Read })
    }

    fn named(&self) -> u16 {
        self.lock.peek().name()
    }

    /// Among waiters of one priority, writers go first (POSIX, `pthread_rwlock_rdlock`).
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
        // Relaxed: a waiter that comes in looks again.
        let spun = self.lock.state.spin_while(Relaxed, budget, |seen| Self::keeps_out(State(seen)));
        spun.is_ok()
    }

    fn take_as_comer(&self) -> bool {
        self.enter(ShflRwLock::<P, Q, F>::COMER)
    }

    fn take_beside_head(&self) -> bool {
        !K::WRITES && self.enter(ShflRwLock::<P, Q, F>::COMER)
    }

    fn is_head_excused(&self) -> bool {
        let head = arena::<P>().resolve_index(u32::from(self.lock.peek().name()));
        head.is_some_and(Patience::<F>::is_excused)
    }

    fn take_any(&self) -> bool {
        self.enter(ShflRwLock::<P, Q, F>::TRYING)
    }

    fn take_as_head(&self, me: Place<P>) -> bool {
        let entered =
            self.lock.enter_as::<K>(|seen| Some(K::enter(seen, Heed::Head)?.without_head()));
        if let Ok(seen) = entered {
            self.found.set(seen);
            Patience::<F>::learn(me.node, seen.is_fair() && seen.is_free());
            // One head in eight checks. A new node checks at once: 3 is its first generation.
            if K::WRITES && me.generation / 2 % 8 == 1 {
                self.lock.shut_if_crowded(seen, me);
            }
        }
        entered.is_ok()
    }

    fn insist(&self) {
        // Relaxed: orders nothing. The flag may be set already.
        let _ = self.lock.change(Relaxed, |seen| seen.changed(State::with_fair));
    }

    fn waits_elsewhere(&self, me: Place<P>) -> bool {
        // A head that can have the lock takes it, because the lock may be kept for it. But not
        // before a crowd: if they slept, each would find the lock kept for it, and none would move.
        let is_to_move =
            || Self::keeps_out(self.lock.peek()) || crowd::stand_behind(me, F::WRITERS);
        self.moves && is_to_move() && self.lock.takes_turns()
    }

    fn give_up(&self) {
        // Relaxed: orders nothing. Before the head sleeps, it says again that it waits.
        let _ = self.lock.change(Relaxed, |seen| seen.changed(State::without_favour));
    }

    fn excuse_head(&self) {
        // Relaxed: orders nothing.
        let (Ok(seen) | Err(seen)) =
            self.lock.change(Relaxed, |seen| seen.changed(State::without_favour));
        if let Some(head) = arena::<P>().resolve_index(u32::from(seen.name())) {
            Patience::<F>::excuse(head);
        }
        // RW-4: the head may have come meanwhile, and asked.
        if seen.has_waiting_writer() && seen.is_called() {
            wake::<P>(seen.name());
        }
    }

    fn ask_for_wake(&self, me: Place<P>, _: &mut Fence) -> Ask {
        // RW-2: only where a thread is in that keeps us out, and so will leave. Release: pairs with
        // the acquire in `wake`: our node's generation comes with its name.
        let asked = self.lock.change(Release, |seen| {
            Self::keeps_out(seen).then(|| seen.with_sleeper(name(me), K::WRITES))
        });
        if asked.is_ok() { Ask::Noted } else { Ask::Free }
    }

    fn unname(&self) {
        // Relaxed: the next head names itself only after it has learnt of its headship from us.
        let _ = self.lock.change(Relaxed, |seen| seen.changed(State::without_head));
    }

    fn wake_beside(&self, next: &Waiter<P>) {
        if !K::WRITES && reads(next) {
            wake_row(next);
        }
    }

    fn leave_asleep(&self, next: Place<P>) -> bool {
        // Relaxed: written before its waiter joined the queue, whose links are acquired.
        let writes = next.node.wants.load(Relaxed) != 0;
        if K::WRITES || writes {
            // RW-2: we are in, and so will leave. Relaxed: we will leave by a release; the thread
            // that wakes the waiter is us, or is ordered after us.
            let _ = self.lock.change(Relaxed, |seen| Some(seen.with_sleeper(name(next), writes)));
            return true;
        }
        // The caller wakes it, to come in beside us. Relaxed: a hint to threads that overtake it.
        Patience::<F>::call(next.node);
        let _ = self.lock.change(Relaxed, |seen| Some(seen.with_called(name(next))));
        false
    }
}

/// Returns the name that a place has in the state.
fn name<P: Platform>(place: Place<P>) -> u16 {
    place.id.index() as u16
}

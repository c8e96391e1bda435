//! The ShflLock spinlock: 4 bytes, for short critical sections of threads that are running.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0 | `locked` | 0 free, 1 held |
//! | 1 | `policy` | the policy, where it is chosen at run time ([`Chosen`]); else zero |
//! | 2–3 | `tail` | index of the last waiter, 0 if nobody waits |
//!
//! A comer takes a free lock only if nobody waits; there is no separate "no stealing" byte that
//! could be left behind. The head of the queue spins on `locked`, all others on their own node.
//! Unlock is one plain store. Where the machine is crowded, a queue of spinners would wait for one
//! that does not run; then a comer does not join but barges, as a test-and-test-and-set lock does.
//!
//! The tail is an index without an epoch: in memory that two processes share, use another lock.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Hint, Platform, Probe, Traced, TracedKind};

use super::queue::{Place, TailIndex};
use super::sort::Sorted;
use super::{Form, Standard, shuffle, status};
use crate::policy::{Chosen, Policy};
use core::marker::PhantomData;

/// A NUMA-aware spinlock, 4 bytes.
///
/// For critical sections of a microsecond or less, and threads that are not outnumbered: waiters
/// burn their CPU. Everybody else wants [`ShflMutex`](super::ShflMutex).
#[repr(C, align(4))]
pub struct ShflSpin<P: Platform, Q: Policy = Chosen, F: Form = Standard> {
    locked: P::U8,
    policy: P::U8,
    tail: TailIndex<P>,
    marker: PhantomData<(Q, F)>,
}

impl<P: Platform, Q: Policy, F: Form> ShflSpin<P, Q, F> {
    /// A free lock.
    pub const NEW: Self = Self {
        locked: P::U8::ZERO,
        policy: P::U8::ZERO,
        tail: TailIndex::NEW,
        marker: PhantomData,
    };

    /// Acquires the lock; spins until it is had.
    #[inline]
    pub fn lock(&self) {
        if !self.tail.is_empty() || !self.try_lock() {
            self.lock_contended();
        }
    }

    /// Acquires the lock if it is free, ahead of any waiters.
    #[inline]
    pub fn try_lock(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.locked.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    /// Whether somebody holds the lock; may be stale at once.
    pub fn is_locked(&self) -> bool {
        self.locked.load(Relaxed) != 0
    }

    /// As [`ShflMutex::set_policy`](super::ShflMutex::set_policy).
    pub fn set_policy(&self, policy: Q) {
        // Relaxed: it decides about order only, and may be seen at any time.
        self.policy.store(policy.byte(), Relaxed);
    }

    /// The policy that waiters are sorted by; may be stale at once.
    pub fn policy(&self) -> Q {
        // Relaxed: as above.
        Q::of(|| self.policy.load(Relaxed))
    }

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    #[inline]
    pub unsafe fn unlock(&self) {
        // Release: pairs with the acquire of the next owner.
        self.locked.store(0, Release);
    }

    #[cold]
    #[inline(never)]
    fn lock_contended(&self) {
        let traced = Traced::new(self, TracedKind::Spin);
        P::probe(Probe::WaitStart(traced));
        P::hint(Hint::SpinBegin);
        loop {
            let Some(me) = self.place() else {
                self.barge();
                break;
            };
            if self.lock_queued(me) {
                break;
            }
        }
        P::hint(Hint::SpinEnd);
        P::probe(Probe::Acquired(traced));
    }

    /// A place in the queue, if joining it is a good idea and there is one.
    fn place(&self) -> Option<Place<P>> {
        if P::crowded() {
            return None;
        }
        let me = Place::take(self.policy())?;
        if TailIndex::<P>::fits(me.id) {
            return Some(me);
        }
        me.give();
        None
    }

    fn barge(&self) {
        while !self.try_lock() {
            self.locked.wait_while(Relaxed, |locked| locked != 0);
        }
    }

    /// Waits in the queue; `false` if the process has forked under the waiter, who must begin anew.
    fn lock_queued(&self, me: Place<P>) -> bool {
        let _ = me.join(&self.tail);
        let Some(mut role) = self.wait_for_headship(me) else { return false };
        let policy = self.policy();
        // INV-2: the role comes into being at the head.
        role |= policy.shuffles::<P>() && me.node.batch.load(Relaxed) == 0;
        loop {
            if role && self.is_locked() {
                role = self.shuffle(me, || !self.is_locked());
            }
            self.locked.wait_while(Relaxed, |locked| locked != 0);
            if self.try_lock() {
                break;
            }
        }
        P::hint(Hint::Owns);
        // A lost node is nobody's: the queue that it stood in was the parent's.
        if me.is_lost() {
            return true;
        }
        let mut sorted = Sorted::NO;
        // What another policy has sorted is sorted no longer.
        if role && policy.sorts() && policy == self.policy() {
            if policy.strict() {
                let _ = self.shuffle(me, || false);
            }
            sorted = Sorted::by(me);
        }
        if let Some(next) = me.leave(&self.tail) {
            sorted.tell(policy, me.node, next);
            // Nobody leaves this queue early: what was granted is a live waiter.
            let _ = status::grant(next.node);
        }
        true
    }

    /// Spins until the caller is the head; returns whether it has the shuffling role then. `None`
    /// if its node is lost.
    fn wait_for_headship(&self, me: Place<P>) -> Option<bool> {
        let mut role = false;
        loop {
            let now = status::load(me.node);
            if now.shuffler() {
                role |= status::take_role(me.node);
            }
            if now.head() {
                return Some(role);
            }
            if me.is_lost() {
                return None;
            }
            if role {
                role = self.shuffle(me, || status::load(me.node).head());
            }
            // Relaxed: looked at again above. INV-4: without the role, this is all that it does.
            me.node.status.wait_while(Relaxed, status::Status::idle);
        }
    }

    fn shuffle(&self, me: Place<P>, stop: impl Fn() -> bool) -> bool {
        shuffle::shuffle(self.policy(), me, &self.tail, F::GROUP, stop)
    }
}

super::super::impl_lock!([P: Platform, Q: Policy, F: Form] ShflSpin<P, Q, F>);

//! The ShflLock mutex that records its owner, for policies that need it: 16 bytes.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–7 | `mutex` | [`ShflMutex`] |
//! | 8–11 | `owner` | the thread that owns the lock, and `LENT`; 0: no owner, or not noted yet |
//! | 12–15 | `since` | start of the hold, if holds are measured; in units of 1024 ns |
//!
//! Lending (`000_…`, "Priority inheritance or boosting"): a waiter lends its rank to the owner when
//! it begins to wait and each time that it goes to sleep as the head, so that the owner runs no
//! later than the waiter would. The order of the steps leaves no loan behind for good:
//!
//! 1. the waiter lends ([`Urgency::lend`](antiphon_platform::Urgency::lend));
//! 2. it sets `LENT`, by an exchange that finds the same owner; if that owner has gone, the waiter
//!    takes back what it lent.
//!
//! The owner removes its name by an exchange before it releases. If the exchange shows `LENT`, the
//! owner gives the loan back. So each loan is given back once: by the owner that saw the flag, or
//! by the waiter whose exchange has failed.
//!
//! `LENT` is stored with release and read with acquire, so that the thread that gives a loan back
//! sees it. All other accesses are relaxed: they decide when a thread runs, and order nothing.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{
    Atomic, AtomicInteger, Budget, Deadline, Platform, ThreadId, Traced, Waiter,
};

use super::contended::Contended;
use super::fence::Fence;
use super::form::{Form, Standard};
use super::held::now;
use super::mutex::ShflMutex;
use super::queue::{Place, TailId};
use super::turn::{Ask, Wait};
use super::words::Words;
use crate::policy::{Chosen, Policy};
use crate::section;

/// The owner has a loan to give back.
const LENT: u32 = 1 << 31;

/// [`ShflMutex`], with an owner: 16 bytes. For policies that lend the owner something
/// ([`Boost`](crate::policy::Boost)) or measure it ([`Scl`](crate::policy::Scl)); with others it
/// does what the mutex does, at the cost of one more exchange.
#[repr(C, align(8))]
pub struct ShflOwned<P: Platform, Q: Policy = Chosen, F: Form = Standard> {
    mutex: ShflMutex<P, Q, F>,
    owner: P::U32,
    since: P::U32,
}

impl<P: Platform, Q: Policy, F: Form> ShflOwned<P, Q, F> {
    /// A free lock.
    pub const NEW: Self = Self { mutex: ShflMutex::NEW, owner: P::U32::ZERO, since: P::U32::ZERO };

    /// Acquires the lock; blocks until the caller has it.
    #[inline]
    pub fn lock(&self) {
        if !self.mutex.lock_uncontended() {
            self.lock_contended(None);
        }
        section::begin::<P>();
        self.own();
    }

    /// Acquires the lock, or gives up when the deadline has passed; returns whether the caller has
    /// the lock.
    #[inline]
    pub fn lock_until(&self, deadline: Deadline) -> bool {
        let had = self.mutex.take() || self.lock_contended(Some(deadline)) == Wait::Acquired;
        if section::begin_if::<P>(had) {
            self.own();
        }
        had
    }

    /// Acquires the lock if it is free, ahead of any waiters; never fails on a free lock.
    #[inline]
    pub fn try_lock(&self) -> bool {
        let had = self.mutex.try_lock();
        if had {
            self.own();
        }
        had
    }

    /// Releases the lock; wakes the head of the queue if it sleeps.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    #[inline]
    pub unsafe fn unlock(&self) {
        if self.mutex.policy().measures() {
            let held = now::<P>().wrapping_sub(self.since.load(Relaxed));
            P::local(|local| local.held.fetch_add(held, Relaxed));
        }
        // Acquire: pairs with the release in `lend`.
        let lent = self.owner.swap(0, Acquire) & LENT != 0;
        // SAFETY: the caller's promise is the same.
        unsafe { self.mutex.unlock() };
        if lent {
            P::reclaim(P::thread());
        }
    }

    /// Returns the thread that owns the lock, if it is known; may be stale at once.
    pub fn owner(&self) -> Option<ThreadId> {
        match self.owner.load(Relaxed) & !LENT {
            0 => None,
            id => Some(ThreadId(id)),
        }
    }

    /// Returns whether the lock is held; may be stale at once.
    pub fn is_locked(&self) -> bool {
        self.mutex.is_locked()
    }

    /// Sets the policy, as [`ShflMutex::set_policy`] does.
    pub fn set_policy(&self, policy: Q) {
        self.mutex.set_policy(policy);
    }

    /// Returns the policy that waiters are sorted by; may be stale at once.
    pub fn policy(&self) -> Q {
        self.mutex.policy()
    }

    /// Records the caller as the owner.
    #[inline]
    fn own(&self) {
        self.owner.store(P::thread().0, Relaxed);
        if self.mutex.policy().measures() {
            self.since.store(now::<P>(), Relaxed);
        }
    }

    /// Lends the owner the rank of `me`, if the policy says so.
    fn lend(&self, me: &Waiter<P>) {
        if !self.mutex.policy().lends() {
            return;
        }
        let seen = self.owner.load(Relaxed);
        let owner = ThreadId(seen & !LENT);
        // Ranks of threads fit; a rank that a user's own policy has noted may not.
        let rank = u8::try_from(me.rank.load(Relaxed)).unwrap_or(u8::MAX);
        if owner.0 == 0 || P::lend(owner, rank).is_err() {
            return;
        }
        // One loan per lock: a second one raises the first. Release: pairs with the acquire in
        // `unlock`.
        let noted = seen & LENT == 0
            && self.owner.compare_exchange(seen, seen | LENT, Release, Relaxed).is_ok();
        if !noted {
            P::reclaim(owner);
        }
    }
}

/// Implements waiting by the mutex's methods, except for the loans.
macro_rules! of_the_mutex {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)+) => {
        $(fn $name(&self, $($argument: $type),*) -> $result {
            Words::$name(&self.mutex, $($argument),*)
        })+
    };
}

impl<P: Platform, Q: Policy, F: Form> Words<P, Q, F> for ShflOwned<P, Q, F> {
    of_the_mutex! {
        fn tail() -> &TailId<P>;
        fn policy() -> Q;
        fn traced() -> Traced;
        fn named() -> u16;
        fn announce() -> ();
        fn head_sleeps() -> bool;
        fn is_held() -> bool;
        fn spin(budget: Budget) -> bool;
        fn take_as_comer() -> bool;
        fn take_any() -> bool;
        fn take_as_head(me: Place<P>) -> bool;
        fn insist() -> ();
        fn give_up() -> ();
        fn excuse_head() -> ();
        fn unname() -> ();
        fn leave_asleep(next: Place<P>) -> bool;
    }

    fn sign(&self, me: &Waiter<P>) {
        self.lend(me);
    }

    fn ask_for_wake(&self, me: Place<P>, fence: &mut Fence) -> Ask {
        // The loan goes to the present owner, which may be another than when we came.
        self.lend(me.node);
        self.mutex.ask_for_wake(me, fence)
    }
}

super::super::impl_lock!(unsafe [P: Platform, Q: Policy, F: Form] ShflOwned<P, Q, F>);

//! The ShflLock mutex: 8 bytes, and every waiter may sleep.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0 | `locked` | `LOCKED`, `WAKE`, `FAIR` (below); 0 is free |
//! | 1 | `policy` | the policy, where it is chosen at run time ([`Chosen`]); else zero |
//! | 2–3 | `head` | a head that sleeps, or was called and is not here; or `PASS` and the owner |
//! | 4–7 | `tail` | name of the last waiter, 0 if no thread waits |
//!
//! A name is 15 bits of a node's index. `PASS`: `handover.rs`.
//!
//! ```text
//!             lock (any thread)            a head goes to sleep
//!    0 ◄─────────────────────► LOCKED ──────────────────────────► LOCKED|WAKE
//!             unlock              ▲                                   │
//!                                 │        unlock, cold: clears WAKE  │
//!                                 └───────────────────────────────────┘
//!                                   … then releases and wakes the waiter that `head` names
//! ```
//!
//! `FAIR` is set for a head that was overtaken for too long: the lock then goes from owner to head,
//! and arriving waiters can't barge. `README.md` beside this file describes the whole protocol and
//! the reasons.
//!
//! - MUTEX-1: `WAKE` is set only while `LOCKED` is set; the thread that clears `WAKE` wakes the
//!   waiter that `head` names after that.
//! - MUTEX-2: a sleeping head is named by `head`, with `WAKE` set, or has a wake coming.
//! - MUTEX-3: an unlock touches nothing of the lock after the store that releases it.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Deadline, Platform, WaiterId};

use super::comer;
use super::contended::Contended;
use super::fair::Patience;
use super::form::{Form, Standard};
use super::queue::TailId;
use super::turn::Wait;
use super::wake;
use super::watch;
use super::words::Words;
use crate::arena;
use crate::policy::{Chosen, Policy};
use crate::section;

pub(super) const LOCKED: u8 = 1;
/// The head sleeps: unlock must wake it.
pub(super) const WAKE: u8 = 2;
/// The lock is kept for the head; arriving waiters leave it alone.
pub(super) const FAIR: u8 = 4;
/// In `head`: the name is that of the owner's place. The owner hands the lock over (`handover.rs`).
pub(super) const PASS: u16 = 1 << NAME_BITS;
/// Number of bits of a node's index that are its name in `head`.
const NAME_BITS: u32 = 15;

/// A NUMA-aware blocking mutex, 8 bytes.
///
/// The type `Q` determines the policy. The default, [`Chosen`], can be changed at any time
/// ([`set_policy`](Self::set_policy)).
#[repr(C, align(8))]
pub struct ShflMutex<P: Platform, Q: Policy = Chosen, F: Form = Standard> {
    pub(super) locked: P::U8,
    pub(super) policy: P::U8,
    pub(super) head: P::U16,
    pub(super) tail: TailId<P>,
    marker: PhantomData<(Q, F)>,
}

impl<P: Platform, Q: Policy, F: Form> ShflMutex<P, Q, F> {
    /// A free lock.
    pub const NEW: Self = Self {
        locked: P::U8::ZERO,
        policy: P::U8::ZERO,
        head: P::U16::ZERO,
        tail: TailId::NEW,
        marker: PhantomData,
    };

    /// Acquires the lock; blocks until the caller has it.
    #[inline]
    pub fn lock(&self) {
        // Before the exchange, which hides the load.
        if P::heeds_sections() {
            return self.lock_told();
        }
        if !self.lock_uncontended() {
            self.lock_contended(None);
        }
    }

    /// [`lock`](Self::lock), told to the platform.
    #[cold]
    #[inline(never)]
    fn lock_told(&self) {
        let wait = || {
            self.lock_contended(None);
        };
        section::acquire::<P>(|| self.lock_uncontended(), wait);
    }

    /// The part of [`lock`](Self::lock) without contention: acquires the lock if it is free and no
    /// waiter has asked for fairness. For callers that need to know whether they would have to
    /// wait. Tells no section.
    #[inline]
    pub fn lock_uncontended(&self) -> bool {
        comer::may_try::<P, _>(self, &self.locked) && self.take()
    }

    /// Does what [`lock_uncontended`](Self::lock_uncontended) does, and tells the section.
    pub fn lock_uncontended_told(&self) -> bool {
        section::attempt::<P>(|| self.lock_uncontended())
    }

    /// Takes the lock if it is free and no waiter has asked for fairness.
    #[inline]
    pub(super) fn take(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.locked.compare_exchange(0, LOCKED, Acquire, Relaxed).is_ok()
    }

    /// Acquires the lock, or gives up when the deadline has passed; returns whether the caller has
    /// the lock. A free lock is acquired whatever the deadline.
    #[inline]
    pub fn lock_until(&self, deadline: Deadline) -> bool {
        let acquired = self.take() || self.lock_contended(Some(deadline)) == Wait::Acquired;
        section::begin_if::<P>(acquired)
    }

    /// Acquires the lock if it is free, ahead of any waiters; never fails on a free lock.
    #[inline]
    pub fn try_lock(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        section::begin_if::<P>(match self.locked.compare_exchange(0, LOCKED, Acquire, Relaxed) {
            Ok(_) => true,
            Err(seen) => seen & LOCKED == 0 && self.take_free(),
        })
    }

    /// Acquires the lock as [`lock`](Self::lock) does, for a caller that has just found it taken:
    /// it waits without another try. Like any waiter, the caller then hands the lock over where
    /// owners do.
    pub fn lock_taken(&self) {
        self.lock_contended(None);
        section::begin::<P>();
    }

    /// Returns the name of the last place in the queue, whichever process wrote it: the place of
    /// the last waiter, or of an owner that hands the lock over and has no waiter behind it.
    /// Returns `None` if the queue is empty. May be stale at once.
    pub fn last_waiter(&self) -> Option<WaiterId> {
        self.tail.name()
    }

    /// Returns whether the lock is held; may be stale at once.
    pub fn is_locked(&self) -> bool {
        self.locked.load(Relaxed) & LOCKED != 0
    }

    /// Releases the lock; wakes the head of the queue if it sleeps.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    #[inline]
    pub unsafe fn unlock(&self) {
        if !F::HEAD_SLEEPS {
            // Release: pairs with the acquire of the next owner.
            self.locked.store(0, Release);
            return section::is_over::<P>();
        }
        if P::light() {
            // SAFETY: we own the lock, so both words are valid until the store.
            if unsafe { P::store_unless(&raw const self.locked, 0, &raw const self.head) } {
                return;
            }
        }
        // SAFETY: we own the lock, as the caller promises.
        if unsafe { self.unlock_uncontended() } {
            return section::is_over::<P>();
        }
        self.unlock_contended();
    }

    /// The part of [`unlock`](Self::unlock) without contention, by exchange: releases the lock if
    /// no waiter must be woken, and the caller does not have to check whether a called head is due.
    /// Returns whether it released. For callers that know that neither the light form is in use
    /// nor sections are told.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    #[inline]
    pub unsafe fn unlock_uncontended(&self) -> bool {
        // Relaxed: whether a head was called decides about fairness only, and the owner itself has
        // written that the lock is to be handed over. Release: pairs with the acquire of the next
        // owner.
        let head = self.head.load(Relaxed);
        (head == 0 || head & PASS == 0 && (Patience::<F>::ENDLESS || !Patience::<F>::looks::<P>()))
            && self.locked.compare_exchange(LOCKED, 0, Release, Relaxed).is_ok()
    }

    /// Does what [`lock_uncontended`](Self::lock_uncontended) does, by a plain load and a plain
    /// store.
    ///
    /// # Safety
    ///
    /// The caller is the only thread of its process, and the lock is in no other process's memory.
    #[inline]
    pub unsafe fn lock_alone(&self) -> bool {
        // Relaxed: there is no thread to order with; the creation of a later thread orders it.
        let free = self.locked.load(Relaxed) == 0;
        if free {
            self.locked.store(LOCKED, Relaxed);
        }
        free
    }

    /// Unlocks by a plain load and a plain store, as [`unlock`](Self::unlock) does. Returns
    /// `false`, and does nothing, if more than these is needed.
    ///
    /// # Safety
    ///
    /// The caller owns the lock, and is the only thread of its process. The lock is in no other
    /// process's memory.
    #[inline]
    pub unsafe fn unlock_alone(&self) -> bool {
        // Relaxed: as in `lock_alone`.
        let enough = self.locked.load(Relaxed) == LOCKED && self.head.load(Relaxed) == 0;
        if enough {
            self.locked.store(0, Relaxed);
        }
        enough
    }

    /// Releases the lock where the head has asked for something, or may be due.
    #[cold]
    #[inline(never)]
    fn unlock_contended(&self) {
        // A wake is a system call: it is none of the section's.
        section::release::<P>(|| self.release_contended());
    }

    /// Releases the lock by exchange, where its owner has told no section: the lock is a part of
    /// another one (SECTION-6).
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    pub(super) unsafe fn unlock_untold(&self) {
        // SAFETY: the caller owns the lock.
        if !unsafe { self.unlock_uncontended() } {
            self.release_contended();
        }
    }

    fn release_contended(&self) {
        // Relaxed: as in `unlock_uncontended`.
        if self.hands_over() && self.hand_over() {
            return;
        }
        let seen = self.locked.load(Relaxed);
        if seen & WAKE == 0 {
            let left = if self.keeps(seen) { FAIR } else { 0 };
            // Release: pairs with the acquire of the next owner.
            if self.locked.compare_exchange(seen, left, Release, Relaxed).is_ok() {
                return;
            }
        }
        self.unlock_and_wake();
    }

    /// Returns whether the release keeps the lock for the head, because the head insists or is due.
    fn keeps(&self, seen: u8) -> bool {
        if Patience::<F>::ENDLESS {
            return false;
        }
        // Relaxed: an outdated name only misjudges the time. Without a name no head is left to keep
        // the lock for.
        let head = u32::from(self.head.load(Relaxed));
        let Some(head) = arena::<P>().resolve_index(head) else { return false };
        Patience::<F>::keep_if(seen & FAIR != 0 || Patience::<F>::is_over(head), head)
    }

    /// Releases the lock with a wake. The owner knows the target before the store that releases
    /// (MUTEX-3). A head that names itself after `WAKE` was cleared sets the flag again, and the
    /// release fails (MUTEX-1).
    ///
    /// The owner wakes no waiter before the release: a head that woke to a held lock would ask
    /// again, and the two could keep each other busy for ever.
    #[cold]
    #[inline(never)]
    fn unlock_and_wake(&self) {
        let arena = arena::<P>();
        let mut named = 0;
        let mut target = None;
        loop {
            // Acquire: pairs with the release in `ask_for_wake`: `head` is as new as the flag.
            let seen = self.locked.fetch_and(!WAKE, Acquire);
            if seen & WAKE != 0 {
                // Relaxed: if the name is newer than the flag, its head has not set its own flag
                // yet, and so is awake.
                named = u32::from(self.head.load(Relaxed));
                target = arena.reference(named);
                if let Some(head) = arena.resolve_index(named) {
                    if seen & FAIR == 0 {
                        Patience::<F>::call(head);
                    } else {
                        Patience::<F>::keep(head);
                    }
                }
            }
            let seen = seen & !WAKE;
            // Release: pairs with the acquire of the next owner.
            if self.locked.compare_exchange(seen, seen & !LOCKED, Release, Relaxed).is_ok() {
                break;
            }
        }
        if let Some(target) = target {
            let _ = watch::wake_head::<P>(target);
            if F::LINGER.ns != 0
                && P::cpus() > 2
                && let Some(head) = arena.resolve_index(named)
            {
                // The lock's memory may be gone: only its address is used, as a name.
                let count = wake::count_together::<P>(core::ptr::from_ref(self).addr());
                wake::wake_next(head, count);
            }
        }
        if named != 0 {
            Self::wake_namesakes(named);
        }
    }

    /// Wakes the waiters whose index ends as `named` does: `head` holds [`NAME_BITS`] bits of it.
    fn wake_namesakes(named: u32) {
        let arena = arena::<P>();
        for index in (named..=arena.high_water()).step_by(1 << NAME_BITS).skip(1) {
            if let Some(namesake) = arena.reference(index) {
                P::unpark(namesake);
            }
        }
    }

    /// Returns whether the owner will hand the lock to a waiter, if one waits, instead of releasing
    /// it first; may be stale at once.
    pub fn hands_over(&self) -> bool {
        self.handing().is_some()
    }

    /// Takes a free lock, fair or not. Checks the newest value, which a load might not see.
    pub(super) fn take_free(&self) -> bool {
        // Acquire: pairs with the release in `unlock`. On a held lock it changes nothing.
        self.locked.fetch_or(LOCKED, Acquire) & LOCKED == 0
    }
}

impl<P: Platform, Q: Policy, F: Form> ShflMutex<P, Q, F> {
    /// Sorts waiters by `policy` from now on; never blocks. The lock may be held, and waiters may
    /// be in its queue: they keep what they noted when they came, and later heads put them in the
    /// new order with all others. If the type alone determines the policy, this changes nothing.
    pub fn set_policy(&self, policy: Q) {
        // Relaxed: it decides about order only, and may be seen at any time.
        self.policy.store(policy.byte(), Relaxed);
    }

    /// Returns the policy that waiters are sorted by; may be stale at once.
    pub fn policy(&self) -> Q {
        // Relaxed: the policy decides about order only.
        Q::of(|| self.policy.load(Relaxed))
    }
}

super::super::impl_lock!(unsafe [P: Platform, Q: Policy, F: Form] ShflMutex<P, Q, F>);

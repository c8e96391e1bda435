//! The kernel's mutex: optimistic spinning, a list of sleepers, and hand-off to the first of them.
//!
//! Source: the kernel's `Documentation/locking/mutex-design.rst`; J. Corbet, "Improving the
//! performance of mutexes" and "mutex: hand-off", LWN, 2009 to 2016.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–3 | `owner` | thread of the owner, above 3 flags; 0 is free |
//! | 4–7 | `spinners` | tail of the queue of waiters that spin |
//! | 8–19 | `sleepers` | waiters that sleep, in order: a [`WaitList`] |
//!
//! ```text
//!   fast   free ──exchange──► owner
//!   mid    joins the spinners; the first of them spins while the owner runs, and takes the lock
//!   slow   joins the list, WAITERS set; sleeps; woken as the first, it tries, sets HANDOFF, spins
//!   unlock WAITERS: wakes the first. HANDOFF: the lock is the first's (PICKUP), and no other's
//! ```
//!
//! - LMUTEX-1: WAITERS is set while the list is not empty; both change with that locked.
//! - LMUTEX-2: a waiter that is on the list stays there until it has the lock.
//! - LMUTEX-4: the first is woken after the lock was released or given; a waiter that was woken
//!   checks the lock before it sleeps again.
//! - LMUTEX-3: the release of `owner` is the last touch of the lock. The kernel accesses the list
//!   after it, and a mutex that one owner has released must not be freed by the next.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Budget, Platform, ThreadId};

use super::list::WaitList;
use super::osq::{PIECE_NS, SpinQueue, may_spin};
use crate::classic::node::Node;

const WAITERS: u32 = 1;
/// The first waiter on the list asks to be given the lock.
const HANDOFF: u32 = 2;
/// The thread has been given the lock, and does not know it yet.
const PICKUP: u32 = 4;
const FLAGS: u32 = 7;
const THREAD_SHIFT: u32 = 3;

/// The kernel's mutex, 20 bytes, and a node of 64 bytes for each waiter.
#[repr(C)]
pub struct LinuxMutex<P: Platform> {
    owner: P::U32,
    spinners: SpinQueue<P>,
    sleepers: WaitList<P>,
}

/// The word of the owner, unpacked.
#[derive(Clone, Copy)]
struct Owner(u32);

impl Owner {
    fn of<P: Platform>() -> u32 {
        P::thread().0 << THREAD_SHIFT
    }

    fn thread(self) -> Option<ThreadId> {
        (self.0 & !FLAGS != 0).then_some(ThreadId(self.0 >> THREAD_SHIFT))
    }
}

impl<P: Platform> LinuxMutex<P> {
    /// A free lock.
    pub const NEW: Self =
        Self { owner: P::U32::ZERO, spinners: SpinQueue::NEW, sleepers: WaitList::NEW };

    /// Acquires the lock: spins while its owner runs, then sleeps until the caller has it. Naps
    /// while no node is free for the caller.
    #[inline]
    pub fn lock(&self) {
        // Acquire: pairs with the releases of the word in `unlock`.
        if self.owner.compare_exchange(0, Owner::of::<P>(), Acquire, Relaxed).is_err() {
            self.lock_contended();
        }
    }

    /// Acquires the lock if it is free, ahead of all sleepers; never blocks.
    pub fn try_lock(&self) -> bool {
        self.take(false)
    }

    /// Releases the lock; wakes the first sleeper, and gives it the lock if it has asked for it.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    #[inline]
    pub unsafe fn unlock(&self) {
        // Relaxed: the owner wrote it. Release: what we have done; pairs with the acquire of the
        // next owner.
        let seen = self.owner.load(Relaxed);
        let released =
            seen & FLAGS == 0 && self.owner.compare_exchange(seen, 0, Release, Relaxed).is_ok();
        if !released {
            self.unlock_contended();
        }
    }

    /// Takes the lock if it is free or was given to the caller; returns whether the caller has it.
    /// If not, and the caller is the `first` on the list, asks for the lock.
    fn take(&self, first: bool) -> bool {
        let me = Owner::of::<P>();
        // Relaxed: the exchange orders.
        let mut seen = self.owner.load(Relaxed);
        loop {
            let (thread, flags) = (seen & !FLAGS, seen & FLAGS);
            let (new, had) = match thread {
                0 => (me | flags, true),
                _ if flags & PICKUP != 0 && thread == me => (me | flags & !PICKUP, true),
                _ if flags & (PICKUP | HANDOFF) == 0 && first => (seen | HANDOFF, false),
                _ => return false,
            };
            // Acquire: as in `lock`.
            match self.owner.compare_exchange(seen, new, Acquire, Relaxed) {
                Ok(_) => return had,
                Err(now) => seen = now,
            }
        }
    }

    #[cold]
    fn lock_contended(&self) {
        if self.spin_in_line() {
            return;
        }
        let Some(me) = Node::<P>::take_or(|| self.take(false)) else { return };
        self.sleepers.with(|list| {
            // Relaxed: handed on with the list. LMUTEX-1.
            me.waiter.wants.store(Owner::of::<P>(), Relaxed);
            list.push(&me, || {
                self.owner.fetch_or(WAITERS, Relaxed);
            });
        });
        let mut first = false;
        while !(self.take(first) || first && self.spin(true)) {
            // LMUTEX-4. The reason for the return does not matter: the owner's word tells.
            let _ = P::park(me.waiter, None);
            first = self.sleepers.with(|list| list.is_first(&me));
        }
        self.sleepers.with(|list| {
            if list.remove(&me) {
                // Relaxed: handed on with the list. LMUTEX-1.
                self.owner.fetch_and(!(WAITERS | HANDOFF), Relaxed);
            }
        });
        me.give();
    }

    /// The middle path: spins behind other spinners; returns whether the caller has the lock.
    fn spin_in_line(&self) -> bool {
        if !may_spin::<P>() || !self.runs(Owner(self.owner.load(Relaxed))) {
            return false;
        }
        let Some(turn) = self.spinners.enter() else { return false };
        let had = self.spin(false);
        self.spinners.leave(turn);
        had
    }

    /// Spins while the owner runs and the caller may; returns whether the caller has the lock.
    fn spin(&self, first: bool) -> bool {
        loop {
            if self.take(first) {
                return true;
            }
            let seen = self.owner.load(Relaxed);
            if !may_spin::<P>() || !self.runs(Owner(seen)) {
                return false;
            }
            // The result does not matter: the loop checks the word again.
            let _ = self.owner.spin_while(Relaxed, Budget::ns(PIECE_NS), |now| now == seen);
        }
    }

    /// Returns whether it is worth spinning until this owner is done.
    fn runs(&self, owner: Owner) -> bool {
        owner.thread().is_none_or(P::runs)
    }

    #[cold]
    fn unlock_contended(&self) {
        // LMUTEX-1, LMUTEX-2: if a flag is set, the list has a first waiter, and it stays.
        let first = self.sleepers.with(|list| {
            // Relaxed: handed on with the list, as where it was written.
            list.first().map(|first| (first.reference(), first.waiter.wants.load(Relaxed)))
        });
        let Some((first, thread)) = first else {
            unreachable!("the flags say that a waiter sleeps")
        };
        let mut seen = self.owner.load(Relaxed);
        loop {
            let given = if seen & HANDOFF != 0 { thread | PICKUP } else { 0 };
            // LMUTEX-3. Release: as in `unlock`.
            match self.owner.compare_exchange(seen, seen & WAITERS | given, Release, Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        if let Some(first) = first {
            P::unpark(first);
        }
    }
}

antiphon_sync::impl_lock!(unsafe [P: Platform] LinuxMutex<P>);

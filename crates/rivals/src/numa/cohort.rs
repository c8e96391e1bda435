//! Cohort locks: one lock for each socket, and a global lock for the sockets.
//!
//! Source: D. Dice, V. Marathe, N. Shavit, "Lock Cohorting: A General Technique for Designing NUMA
//! Locks", PPoPP 2012: C-BO-MCS and C-TKT-MCS; `004_…`, "Cohort lock".
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0– | `global` | the lock of the sockets: a backoff lock (1 byte) or a ticket lock (4) |
//! | | `holder` | the socket that it is held for; `NO_SOCKET` if by a try |
//! | 64– | `sockets` | for each socket, 64 bytes apart: |
//! | +0 | `queue` | name of the last in the socket's queue; 0 is none |
//! | +4 | `owner` | name of the owner's node, if the lock is held for this socket |
//! | +8 | `passed` | how often the lock was handed on in the socket after it had come there |
//!
//! ```text
//!   global ◄── holder
//!     ▲ takes part           ▲ takes part
//!     │                      │
//!   owner ──► waiter …     leader ──► waiter …        MCS queues, one a socket
//!   socket 0               socket 1
//! ```
//!
//! The first waiter of each queue competes for the global lock. The owner hands both locks to the
//! waiter behind it, up to `BUDGET` times; then, or if no waiter is there, it releases them.
//!
//! - COHORT-1: the owner of the lock has the global lock and is the first of its socket's queue;
//!   or, after a try, has only the global lock.
//! - COHORT-2: after `BUDGET` hand-overs in a row the global lock is released, even if waiters of
//!   the socket remain.
//! - COHORT-3: the global lock is released last. The published code releases it first; then the
//!   socket's queue would be touched when the next owner may have freed the lock already.
//!
//! `holder` is written once per cohort. A thread that has moved to another socket in between can
//! still unlock.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform};

use super::queue::{self, LEADS, Queue};
use crate::classic::node::Node;
use crate::classic::{Ticket, Ttas};
use antiphon_sync::lock::Lock;

/// The status of a waiter that was handed both locks.
const OWNS: u32 = 1;

/// `holder` of a lock that was acquired by a try: no queue must be notified.
const NO_SOCKET: u16 = u16::MAX;

/// A lock that a thread may release on behalf of the thread that has acquired it.
///
/// # Safety
///
/// [`Lock::unlock`] works in any thread that is ordered after the thread that has locked. A thread
/// for which [`is_held`](Self::is_held) returns `false` is ordered after the last owner.
pub unsafe trait Oblivious: Lock {
    /// Returns whether the lock is held.
    fn is_held(&self) -> bool;
    /// Spins until the lock, if it is held, was released at least once.
    fn wait_for_release(&self);
}

// SAFETY: its unlock is a store of zero, by any thread; and `is_held` acquires.
unsafe impl<P: Platform, const FIRST_NS: u32> Oblivious for Ttas<P, FIRST_NS> {
    fn is_held(&self) -> bool {
        self.is_held()
    }

    fn wait_for_release(&self) {
        self.wait_for_release();
    }
}

// SAFETY: the counter belongs to the lock, not to a thread; and `is_held` acquires.
unsafe impl<P: Platform> Oblivious for Ticket<P> {
    fn is_held(&self) -> bool {
        self.is_held()
    }

    fn wait_for_release(&self) {
        self.wait_for_release();
    }
}

/// C-BO-MCS: sockets back off from each other. 64 bytes, and 64 for each socket.
pub type CBoMcs<P, const SOCKETS: usize = 8, const BUDGET: u32 = 64> =
    Cohort<P, Ttas<P>, SOCKETS, BUDGET>;

/// C-TKT-MCS: sockets take turns. 64 bytes, and 64 for each socket.
pub type CTktMcs<P, const SOCKETS: usize = 8, const BUDGET: u32 = 64> =
    Cohort<P, Ticket<P>, SOCKETS, BUDGET>;

/// A cohort lock of `SOCKETS` MCS queues under a global lock; on a machine with more sockets, some
/// share a queue. 64 bytes, 64 bytes for each queue, and a node of 64 bytes for the owner and for
/// each waiter.
#[repr(C, align(64))]
pub struct Cohort<P: Platform, G: Oblivious, const SOCKETS: usize = 8, const BUDGET: u32 = 64> {
    global: G,
    holder: P::U16,
    sockets: [Socket<P>; SOCKETS],
}

/// The queue of one socket.
#[repr(C, align(64))]
struct Socket<P: Platform> {
    queue: Queue<P>,
    owner: P::U32,
    passed: P::U32,
}

impl<P: Platform, G: Oblivious, const SOCKETS: usize, const BUDGET: u32>
    Cohort<P, G, SOCKETS, BUDGET>
{
    /// A free lock.
    pub const NEW: Self = {
        assert!(0 < SOCKETS && SOCKETS < NO_SOCKET as usize, "a machine has a socket");
        Self { global: G::NEW, holder: P::U16::ZERO, sockets: [const { Socket::NEW }; SOCKETS] }
    };

    /// Joins the queue of the caller's socket and spins until the caller has the lock. Naps first
    /// while no node is free for the caller.
    pub fn lock(&self) {
        let number = queue::number::<P>(SOCKETS);
        let socket = &self.sockets[number];
        let me = Node::take();
        if socket.queue.join(&me) == LEADS {
            self.global.lock();
            // Relaxed, both: only the owner accesses them, and they are handed on with the lock.
            self.holder.store(number as u16, Relaxed);
            socket.passed.store(0, Relaxed);
        }
        socket.owner.store(me.bits(), Relaxed);
    }

    /// Acquires the lock if a try acquires the global lock; never blocks, and joins no queue.
    pub fn try_lock(&self) -> bool {
        let had = self.global.try_lock();
        if had {
            self.holder.store(NO_SOCKET, Relaxed);
        }
        had
    }

    /// Releases the lock: to the next waiter of the owner's socket, or to another socket. Spins for
    /// a moment if a waiter is just joining.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    pub unsafe fn unlock(&self) {
        // Relaxed: the owner's.
        let holder = self.sockets.get(usize::from(self.holder.load(Relaxed)));
        if holder.is_some_and(Socket::hands_over::<BUDGET>) {
            return;
        }
        // COHORT-3. SAFETY: the caller holds the global lock: it has acquired it, or another thread
        // of its socket has and has handed it over.
        unsafe { self.global.unlock() };
    }

    /// Returns whether the lock is held. A caller that gets `false` is ordered after the last
    /// owner.
    pub(super) fn is_held(&self) -> bool {
        self.global.is_held()
    }

    /// Spins until the lock, if it is held, has left a socket at least once.
    pub(super) fn wait_for_release(&self) {
        self.global.wait_for_release();
    }
}

impl<P: Platform> Socket<P> {
    const NEW: Self = Self { queue: Queue::NEW, owner: P::U32::ZERO, passed: P::U32::ZERO };

    /// Hands the lock to the next waiter of the queue; returns `false` if the global lock must be
    /// released, and the owner has then left the queue.
    fn hands_over<const BUDGET: u32>(&self) -> bool {
        let me = Node::<P>::of_owner(&self.owner);
        // Relaxed, both: only the owner accesses it, and it is handed on with the lock.
        let passed = self.passed.load(Relaxed) + 1;
        self.passed.store(passed, Relaxed);
        // COHORT-2.
        let called = passed <= BUDGET && Queue::call(&me, OWNS);
        if !called {
            self.queue.leave(&me);
        }
        me.give();
        called
    }
}

antiphon_sync::impl_lock!(
    unsafe [P: Platform, G: Oblivious, const SOCKETS: usize, const BUDGET: u32]
    Cohort<P, G, SOCKETS, BUDGET>
);

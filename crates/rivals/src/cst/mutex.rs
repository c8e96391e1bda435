//! The CST mutex.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform, SocketId};

use super::global::Queue;
use super::local::Joined;
use super::parking::{HEAD, LOCK, wake};
use super::snode::{Snode, Snodes};
use super::{CstForm, Standard};
use crate::classic::node::Node;

/// A CST mutex: 16 bytes, 128 bytes for each socket that has used it, and a node of 64 bytes for
/// the owner and each waiter.
///
/// If a structure for its socket cannot be allocated, a thread queues among the sockets as if it
/// were one. The nodes that the lock has taken are given back when it is dropped; on a simulated
/// machine, that must happen inside the simulation. The mutex inside a readers-writer lock has
/// `READERS`, and 192 bytes for each socket.
#[repr(C)]
pub struct CstMutex<P: Platform, F: CstForm = Standard, const READERS: bool = false> {
    queue: Queue<P>,
    /// Name of the structure of the socket that has the lock, unless a thread has it for itself.
    serving: P::U32,
    /// Name of the owner's node, if that node is in the sockets' queue for itself; otherwise 0.
    alone: P::U32,
    pub(super) snodes: Snodes<P>,
    marker: PhantomData<F>,
}

/// How a lock was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Had {
    /// From another thread of the same batch.
    InBatch,
    /// In any other way.
    Fresh,
}

impl<P: Platform, F: CstForm, const READERS: bool> CstMutex<P, F, READERS> {
    /// A free lock.
    pub const NEW: Self = Self {
        queue: Queue::NEW,
        serving: P::U32::ZERO,
        alone: P::U32::ZERO,
        snodes: Snodes::NEW,
        marker: PhantomData,
    };

    /// Acquires the lock; spins for the caller's time slice, then sleeps until it has the lock.
    /// Naps first if there is no node for the caller.
    pub fn lock(&self) {
        let _ = self.lock_by();
    }

    /// Acquires the lock if it is free and there is a node for the caller; never blocks.
    pub fn try_lock(&self) -> bool {
        if !self.queue.is_free() {
            return false;
        }
        let Some(me) = Node::try_take() else { return false };
        let had = self.queue.try_enter(&me);
        if had {
            self.own_alone(&me);
        } else {
            me.give();
        }
        had
    }

    /// Releases the lock: to a waiter that spins on the same socket, unless there is none or it is
    /// another socket's turn. If the lock does not stay on the socket, then wakes the waiter that
    /// has slept there longest.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    pub unsafe fn unlock(&self) {
        self.unlock_by(|| {});
    }

    /// Allocates the structure of `socket` now, so that no later acquisition there must. Returns
    /// `false` if no nodes are free for it.
    pub fn reserve(&self, socket: SocketId) -> bool {
        self.snodes.of::<READERS>(socket).is_some()
    }

    /// Number of sockets that the lock has structures for, 128 bytes each.
    pub fn sockets(&self) -> usize {
        self.snodes.iter().count()
    }

    /// Gives back the nodes that the lock has taken; the lock is then as new.
    pub fn reset(&mut self) {
        self.snodes.give();
    }

    /// Does what [`lock`](Self::lock) does; returns how the lock was acquired.
    pub(super) fn lock_by(&self) -> Had {
        let me = Node::take();
        let Some((snode, _)) = self.snodes.of::<READERS>(P::socket()) else {
            self.queue.enter::<F>(&me);
            self.own_alone(&me);
            return Had::Fresh;
        };
        let had = loop {
            match snode.join::<F>(&me) {
                Joined::Owner => break Had::InBatch,
                Joined::Head => {
                    self.queue.enter::<F>(snode.begin_turn());
                    // Relaxed: for the owner that unlocks, handed on with the lock.
                    self.serving.store(snode.front.bits(), Relaxed);
                    break Had::Fresh;
                }
                Joined::Out => {}
            }
        };
        snode.own(&me);
        had
    }

    /// Does what [`unlock`](Self::unlock) does; calls `leaving` before that if the lock leaves the
    /// batch.
    pub(super) fn unlock_by(&self, leaving: impl FnOnce()) {
        self.release(F::BATCH, leaving);
    }

    /// Does what [`unlock_by`](Self::unlock_by) does; the lock leaves the batch.
    pub(super) fn give_up_by(&self, leaving: impl FnOnce()) {
        self.release(0, leaving);
    }

    fn release(&self, batch: u32, leaving: impl FnOnce()) {
        // Relaxed: only the owner accesses it. It may run on another socket by now: it releases the
        // socket that it holds the lock for.
        if let Some(me) = Node::<P>::at(self.alone.load(Relaxed)) {
            leaving();
            self.alone.store(0, Relaxed);
            self.queue.leave(&me);
            me.give();
            return;
        }
        let Some(snode) = Snode::<P>::at(self.serving.load(Relaxed)) else {
            // A parent process has left it, with queues that belong to no thread.
            self.snodes.forget();
            self.queue.forget();
            return;
        };
        let me = snode.owner();
        // Read before the queue is closed: the next head begins another turn.
        let line = snode.present_line();
        let passes = snode.passes().load(Relaxed) + 1;
        let what = if passes < batch { LOCK } else { HEAD };
        snode.passes().store(passes, Relaxed);
        if snode.pass(&me, what) && what == LOCK {
            me.give();
            return;
        }
        let sleeper = snode.longest_asleep();
        leaving();
        self.queue.leave(line);
        me.give();
        if let Some(sleeper) = sleeper {
            wake(&sleeper);
        }
    }

    fn own_alone(&self, me: &Node<P>) {
        // Relaxed: only for the thread that unlocks, which is us.
        self.alone.store(me.bits(), Relaxed);
    }
}

impl<P: Platform, F: CstForm, const READERS: bool> Drop for CstMutex<P, F, READERS> {
    fn drop(&mut self) {
        self.reset();
    }
}

antiphon_sync::impl_lock!(
    unsafe [P: Platform, F: CstForm, const READERS: bool] CstMutex<P, F, READERS>
);

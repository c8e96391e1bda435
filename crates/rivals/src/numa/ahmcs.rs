//! The adaptive HMCS lock (AHMCS): [`Hmcs`](super::Hmcs), in which a thread that meets no other
//! thread of its socket skips the socket's queue.
//!
//! Source: M. Chabbi, J. Mellor-Crummey, "Contention-Conscious, Locality-Preserving Locks", PPoPP
//! 2016: its fast path (take the top if it is free) and its hysteresis, with two levels.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0– | | the queue of sockets, as in [`Hmcs`](super::Hmcs) |
//! | 64– | `sockets` | for each socket, 64 bytes apart: |
//! | +0 | `queue`, `owner` | as there |
//! | +64 | `alone` | how often in a row it was held for this socket and no other thread came |
//!
//! ```text
//!   free ────────────────────────────► one place for oneself, no queue of the socket
//!   `alone` ≥ HYSTERESIS ────────────► the same; if the place before is a neighbour's, `alone` = 0
//!   else ────────────────────────────► as in HMCS; `alone` + 1 if none came behind, else 0
//! ```
//!
//! - AHMCS-1: a thread that has a place for itself is in no socket's queue, and notifies none.
//! - AHMCS-2: `alone` decides only which path is taken; correctness does not depend on it.
//!
//! One departure from the source: the published lock remembers for each thread on which level it
//! met no other; here a socket remembers it, because the lock does not know its threads.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform};

use super::hmcs::{NO_SOCKET, Over, Root, Socket};
use super::queue;
use crate::classic::node::Node;

/// An AHMCS lock of `SOCKETS` queues under one; on a machine with more sockets, some share a queue.
/// 64 bytes, 128 bytes for each queue, and a node of 64 bytes for the owner, for each waiter and
/// for the place of the owner's socket.
#[repr(C, align(64))]
pub struct Ahmcs<
    P: Platform,
    const SOCKETS: usize = 8,
    const BUDGET: u32 = 64,
    const HYSTERESIS: u32 = 4,
> {
    root: Root<P>,
    sockets: [Adaptive<P>; SOCKETS],
}

/// The queue of one socket, and whether it is worth joining. They are on separate cache lines,
/// because arriving waiters read `alone` and joining writes the queue.
#[repr(C)]
struct Adaptive<P: Platform> {
    socket: Socket<P>,
    alone: Alone<P>,
}

#[repr(C, align(64))]
struct Alone<P: Platform>(P::U32);

impl<P: Platform, const SOCKETS: usize, const BUDGET: u32, const HYSTERESIS: u32>
    Ahmcs<P, SOCKETS, BUDGET, HYSTERESIS>
{
    /// A free lock.
    pub const NEW: Self = {
        assert!(0 < SOCKETS && SOCKETS < NO_SOCKET as usize, "a machine has a socket");
        Self { root: Root::NEW, sockets: [const { Adaptive::NEW }; SOCKETS] }
    };

    /// Takes the lock if it is free, or joins a queue and spins until the caller has the lock. Naps
    /// first while no node is free for the caller.
    pub fn lock(&self) {
        let number = queue::number::<P>(SOCKETS);
        let me = Node::take();
        if self.root.is_free() && self.root.try_enter(&me, number as u16) {
            return;
        }
        let Adaptive { socket, alone } = &self.sockets[number];
        // Relaxed, here and below: a guess (AHMCS-2).
        if alone.0.load(Relaxed) < HYSTERESIS {
            return socket.lock(me, &self.root, number as u16);
        }
        if self.root.enter(&me, number as u16) == Some(number as u16) {
            alone.0.store(0, Relaxed);
        }
        // AHMCS-1.
        self.root.hold(&me, NO_SOCKET);
    }

    /// Acquires the lock if it is free and there is a node for the caller; never blocks, and joins
    /// no socket's queue.
    pub fn try_lock(&self) -> bool {
        self.root.try_lock()
    }

    /// Releases the lock: to the next waiter of the owner's socket, or to another socket. Spins for
    /// a moment if a waiter is just joining.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    pub unsafe fn unlock(&self) {
        let (place, holder) = self.root.held();
        if let Some(Adaptive { socket, alone }) = self.sockets.get(usize::from(holder)) {
            match socket.hands_over(BUDGET, &place) {
                Over::ToNext => return,
                // Relaxed, both: a guess.
                Over::After(1) => alone.0.store(alone.0.load(Relaxed).saturating_add(1), Relaxed),
                Over::After(_) => alone.0.store(0, Relaxed),
            }
        }
        self.root.leave(place);
    }
}

impl<P: Platform> Adaptive<P> {
    const NEW: Self = Self { socket: Socket::NEW, alone: Alone(P::U32::ZERO) };
}

antiphon_sync::impl_lock!(
    unsafe [P: Platform, const SOCKETS: usize, const BUDGET: u32, const HYSTERESIS: u32]
    Ahmcs<P, SOCKETS, BUDGET, HYSTERESIS>
);

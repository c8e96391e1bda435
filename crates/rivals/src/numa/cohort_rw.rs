//! The readers-writer cohort lock that prefers writers (C-RW-WP): readers counted by socket, and a
//! cohort lock for writers.
//!
//! Source: I. Calciu, D. Dice, Y. Lev, V. Luchangco, V. Marathe, N. Shavit, "NUMA-Aware
//! Reader-Writer Locks", PPoPP 2013: C-RW-WP, with a counter for each socket as read indicator;
//! `004_…`, "RW cohort lock".
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0– | `writers` | a [`Cohort`] lock |
//! | | `readers` | for each socket, 64 bytes apart: how many are in, or check whether they may be |
//! | | `barrier` | how many readers have lost their patience |
//!
//! ```text
//!   reader   count in ─► fence ─► writers' lock free? ─ yes ─► in
//!               ▲                         │ no
//!               └── wait until it was released once ◄── count out
//!
//!   writer   no barrier ─► writers' lock ─► fence ─► each counter 0 ─► in
//! ```
//!
//! - RWC-1: a reader counts itself in before it looks for a writer, and a writer takes the lock
//!   before it looks for readers; a sequentially consistent fence is between the two, on both
//!   sides. So at least one of them sees the other.
//! - RWC-2: a reader leaves by the counter on which it entered ([`Seat`]), whichever socket it runs
//!   on by then.
//! - RWC-3: a reader that has seen the writers' lock change hands `PATIENCE` times raises the
//!   barrier, and no writer joins before that reader is in.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, AtomicInteger, Platform};

use super::cohort::{Cohort, Oblivious};
use super::queue;
use crate::classic::Ticket;

/// A C-RW-WP lock of `SOCKETS` counters; on a machine with more sockets, some share a counter. 128
/// bytes, 128 bytes for each counter, and the nodes of its writers. Readers need no nodes.
#[repr(C, align(64))]
pub struct CohortRw<
    P: Platform,
    G: Oblivious = Ticket<P>,
    const SOCKETS: usize = 8,
    const BUDGET: u32 = 64,
    const PATIENCE: u32 = 16,
> {
    writers: Cohort<P, G, SOCKETS, BUDGET>,
    readers: [Line<P>; SOCKETS],
    barrier: Line<P>,
}

/// Counter of the readers of one socket, on its own cache line.
#[repr(C, align(64))]
struct Line<P: Platform>(P::U32);

/// Names the counter of a reader; the reader leaves by its seat.
#[must_use = "a reader leaves by its seat"]
#[derive(Debug)]
pub struct Seat(u16);

impl<P: Platform, G: Oblivious, const SOCKETS: usize, const BUDGET: u32, const PATIENCE: u32>
    CohortRw<P, G, SOCKETS, BUDGET, PATIENCE>
{
    /// A free lock.
    pub const NEW: Self = Self {
        writers: Cohort::NEW,
        readers: [const { Line(P::U32::ZERO) }; SOCKETS],
        barrier: Line(P::U32::ZERO),
    };

    /// Acquires the lock for reading; spins until the caller has it. A thread that already reads
    /// must not call this.
    pub fn read(&self) -> Seat {
        let mut turns = 0;
        let seat = loop {
            match self.try_read() {
                Some(seat) => break seat,
                None => self.writers.wait_for_release(),
            }
            turns += 1;
            // RWC-3. Relaxed: it is only a request, and orders nothing.
            if turns == PATIENCE {
                self.barrier.0.fetch_add(1, Relaxed);
            }
        };
        if turns >= PATIENCE {
            self.barrier.0.fetch_sub(1, Relaxed);
        }
        seat
    }

    /// Acquires the lock for reading if no writer has it; never blocks.
    pub fn try_read(&self) -> Option<Seat> {
        let number = queue::number::<P>(SOCKETS);
        let seat = Seat(number as u16);
        // Relaxed: the fence orders.
        self.readers[number].0.fetch_add(1, Relaxed);
        // RWC-1: pairs with the fence in `write`.
        P::fence(SeqCst);
        // The work of the last writer happens before this, by the acquire in `is_held`.
        if self.writers.is_held() {
            self.leave(&seat);
            return None;
        }
        Some(seat)
    }

    /// Releases the lock held for reading; never waits.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for reading, by this seat.
    pub unsafe fn unlock_read(&self, seat: Seat) {
        self.leave(&seat);
    }

    /// Acquires the lock for writing; spins until the caller has it. Naps first while no node is
    /// free for the caller.
    pub fn write(&self) {
        // Relaxed: it orders nothing.
        self.barrier.0.wait_while(Relaxed, |impatient| impatient != 0);
        self.writers.lock();
        // RWC-1: pairs with the fence in `try_read`.
        P::fence(SeqCst);
        for Line(readers) in &self.readers {
            // Acquire: what readers have read; pairs with the release in `leave`.
            readers.wait_while(Acquire, |readers| readers != 0);
        }
    }

    /// Acquires the lock for writing if it is free; never blocks. It fails while a reader checks
    /// whether it may enter.
    pub fn try_write(&self) -> bool {
        if !self.writers.try_lock() {
            return false;
        }
        P::fence(SeqCst);
        // Acquire: as in `write`.
        let empty = self.readers.iter().all(|Line(readers)| readers.load(Acquire) == 0);
        if !empty {
            // SAFETY: `try_lock` has acquired the lock.
            unsafe { self.writers.unlock() };
        }
        empty
    }

    /// Releases the lock held for writing.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for writing.
    pub unsafe fn unlock_write(&self) {
        // SAFETY: the caller owns the lock for writing, by its promise.
        unsafe { self.writers.unlock() };
    }

    fn leave(&self, seat: &Seat) {
        // Release: what we have read; pairs with the acquires in `write` and `try_write`.
        self.readers[usize::from(seat.0)].0.fetch_sub(1, Release);
    }
}

antiphon_sync::impl_lock!(
    unsafe writer:
    [P: Platform, G: Oblivious, const SOCKETS: usize, const BUDGET: u32, const PATIENCE: u32]
    CohortRw<P, G, SOCKETS, BUDGET, PATIENCE>
);

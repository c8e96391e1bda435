//! The kernel's readers-writer semaphore: writers spin while a writer runs, all waiters sleep in
//! one list, and its first waiter may ask to be handed the lock.
//!
//! Source: the kernel's `Documentation/locking`; W. Long, "locking/rwsem: Rwsem rearchitecture",
//! 2019, as J. Corbet describes it on LWN.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–3 | `count` | readers, above 8 bits of flags |
//! | 4–7 | `owner` | the writer's thread; 0 while there is none |
//! | 8–11 | `spinners` | tail of the queue of writers that spin |
//! | 12–23 | `sleepers` | readers and writers that sleep, in order: a [`WaitList`] |
//!
//! ```text
//!   read    adds a reader; if no flag was set, it is in; otherwise it takes that back and sleeps
//!   write   free ──exchange──► WRITER; otherwise spins in line, and steals; otherwise sleeps
//!   release WAITERS: readers in front are let in, all up to the next writer; or a writer is woken
//!   the first writer that has slept for 4 ms without success sets HANDOFF: no thread steals any
//!   more
//! ```
//!
//! - RWSEM-1: WAITERS is set while the list is not empty; both change with that locked.
//! - RWSEM-2: whenever the list is not locked and a reader is the first, a writer has the lock, and
//!   lets that reader in before or as it releases.
//! - RWSEM-3: while the first is a writer and no thread has the lock, that writer is awake, or
//!   about to be woken. A reader that was counted only for a moment is treated as one that had the
//!   lock.
//! - RWSEM-4: the change of `count` that releases is the last touch of the lock, except for
//!   sleepers that are let in, which keep the lock alive. (The kernel accesses the list after it.)

mod readers;
mod writers;

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Platform, WaiterRef};

use super::list::{Locked, WaitList};
use super::osq::SpinQueue;
use crate::classic::node::Node;
use readers::Chain;

const WRITER: u32 = 1;
const WAITERS: u32 = 2;
/// The first waiter on the list, a writer, gets the lock next.
const HANDOFF: u32 = 4;
const READER: u32 = 1 << 8;
const READERS: u32 = !(READER - 1);

/// The wish of a node on the list.
const READ: u32 = 0;
const WRITE: u32 = 1;

/// The status of a reader that was not let in yet.
const ASLEEP: u32 = 1;
const GRANTED: u32 = 0;

/// The kernel's readers-writer semaphore, 24 bytes; and a node of 64 bytes for each waiter. A
/// writer that has waited for `PATIENCE_NS` nanoseconds asks to be handed the lock. A thread that
/// reads must not read again.
#[repr(C)]
pub struct LinuxRwSem<P: Platform, const PATIENCE_NS: u64 = 4_000_000> {
    count: P::U32,
    owner: P::U32,
    spinners: SpinQueue<P>,
    sleepers: WaitList<P>,
}

impl<P: Platform, const PATIENCE_NS: u64> LinuxRwSem<P, PATIENCE_NS> {
    /// A free lock.
    pub const NEW: Self = Self {
        count: P::U32::ZERO,
        owner: P::U32::ZERO,
        spinners: SpinQueue::NEW,
        sleepers: WaitList::NEW,
    };

    /// Acquires the lock for reading; sleeps until the caller has it. Naps while no node is free
    /// for the caller.
    #[inline]
    pub fn read(&self) {
        // Acquire: what writers have done; pairs with their releases of the word.
        if self.count.fetch_add(READER, Acquire) & (READER - 1) != 0 {
            self.read_contended();
        }
    }

    /// Acquires the lock for reading if no writer has it or waits; never blocks.
    pub fn try_read(&self) -> bool {
        let mut seen = self.count.load(Relaxed);
        while seen & (READER - 1) == 0 {
            // Acquire: as in `read`.
            match self.count.compare_exchange(seen, seen + READER, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Releases the lock held for reading; the last reader wakes a writer that sleeps.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for reading.
    pub unsafe fn unlock_read(&self) {
        let mut seen = self.count.load(Relaxed);
        // RWSEM-4: a reader that is not the last, or for which no thread waits, only leaves.
        while seen & WAITERS == 0 || seen & READERS != READER {
            // Release: what we have seen; pairs with the acquire of the next writer.
            match self.count.compare_exchange(seen, seen - READER, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
        // RWSEM-2: the first is a writer.
        let first = self.sleepers.with(|list| reference(&list.first()));
        // Release: what we have seen; pairs with the acquire of the next writer.
        self.count.fetch_sub(READER, Release);
        wake::<P>(first);
    }

    /// Acquires the lock for writing; spins while a writer runs, then sleeps until the caller has
    /// it.
    #[inline]
    pub fn write(&self) {
        if !self.try_write() {
            self.write_contended();
            self.own();
        }
    }

    /// Acquires the lock for writing if no thread has it or waits; never blocks.
    pub fn try_write(&self) -> bool {
        // Acquire: pairs with the releases of the word.
        let had = self.count.compare_exchange(0, WRITER, Acquire, Relaxed).is_ok();
        if had {
            self.own();
        }
        had
    }

    /// Releases the lock held for writing; lets in the readers at the front of the list, or wakes
    /// the writer there.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for writing.
    pub unsafe fn unlock_write(&self) {
        // Relaxed: a guess for spinning writers.
        self.owner.store(0, Relaxed);
        // Release: what we have done; pairs with the acquires of threads that come in.
        if self.count.compare_exchange(WRITER, 0, Release, Relaxed).is_err() {
            self.release(WRITER);
        }
    }

    /// Turns the lock held for writing into one held for reading, with no writer in between; never
    /// blocks.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for writing.
    pub unsafe fn downgrade(&self) {
        self.owner.store(0, Relaxed);
        self.release(WRITER.wrapping_sub(READER));
    }

    fn own(&self) {
        self.owner.store(P::thread().0, Relaxed);
    }

    /// Subtracts `share` from the count of a lock for which a thread may wait; called by the owner.
    #[cold]
    fn release(&self, share: u32) {
        let (chain, writer) = self.sleepers.with(|list| {
            let front = list.first();
            if front.as_ref().is_some_and(wants_to_write) {
                return (None, reference(&front));
            }
            let readers = readers_in_front(list);
            let chain = self.take_readers(list);
            // With the list locked: otherwise a reader might join it and find no thread to let it
            // in. Release: as in `unlock_write`.
            self.count.fetch_add(readers.wrapping_sub(share), Release);
            (Some(chain), None)
        });
        match chain {
            Some(chain) => chain.let_in::<P>(),
            None => {
                // Release: as in `unlock_write`.
                self.count.fetch_sub(share, Release);
                wake::<P>(writer);
            }
        }
    }

    /// Puts the caller on the list. RWSEM-1.
    fn push(&self, list: &Locked<'_, P>, me: &Node<P>, wants: u32) {
        // Relaxed, here and below: handed on with the list.
        me.waiter.status.store(ASLEEP, Relaxed);
        me.waiter.wants.store(wants, Relaxed);
        list.push(me, || {
            self.count.fetch_or(WAITERS, Relaxed);
        });
    }

    /// Removes the readers before the first writer from the list. RWSEM-1.
    fn take_readers(&self, list: &Locked<'_, P>) -> Chain {
        Chain(list.take_front(reads, || {
            self.count.fetch_and(!WAITERS, Relaxed);
        }))
    }
}

/// Returns what the readers before the first writer add to the count.
fn readers_in_front<P: Platform>(list: &Locked<'_, P>) -> u32 {
    list.count_front(reads) * READER
}

fn wants_to_write<P: Platform>(node: &Node<P>) -> bool {
    node.waiter.wants.load(Relaxed) == WRITE
}

fn reads<P: Platform>(node: &Node<P>) -> bool {
    !wants_to_write(node)
}

fn reference<P: Platform>(node: &Option<Node<P>>) -> Option<WaiterRef> {
    node.as_ref().and_then(Node::reference)
}

fn wake<P: Platform>(sleeper: Option<WaiterRef>) {
    if let Some(sleeper) = sleeper {
        P::unpark(sleeper);
    }
}

antiphon_sync::impl_lock!(
    unsafe writer: [P: Platform, const PATIENCE_NS: u64] LinuxRwSem<P, PATIENCE_NS>
);

//! The process-shared readers-writer lock: one word, which names the writer and counts readers.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0–27 | `WHO` | with `WRITER` the number of its thread, otherwise how many readers are in |
//! | 28 | `WRITER` | a writer is in, dead or alive |
//! | 29 | `DIED` | a writer died holding it, and no writer has called `recovered` after that |
//! | 30 | `WAITING` | a writer waits for readers to leave: no more come in |
//! | 31 | `SLEEPERS` | a thread may sleep: a thread that lets others in must wake all |
//!
//! ```text
//!         read               read                write
//!   2, … ◄────► 1 reader ◄────────► 0 ◄────────────────► WRITER|number
//!                  │                ▲
//!                  │ a writer waits │ the last leaves; readers stay out till a writer was in,
//!                  ▼                │ or none waits
//!             1|WAITING ────────────┘
//! ```
//!
//! - SHARED-6: while `WRITER` is set, one thread is in, or no thread if the writer is dead;
//!   otherwise as many readers as are counted. A thread that finds the writer dead takes its place,
//!   or a reader's.
//! - SHARED-7: a thread that makes the lock free, or clears `WAITING` and lets readers in, wakes
//!   all sleepers. So no wake is lost with a sleeper that is killed.
//!
//! Writers are preferred: readers wait behind a waiting writer, but only for [`Form::BACKSTOP_NS`],
//! or until their deadline if no thread is in by then; and a try comes in if no thread is in. The
//! reason is that the writer may be dead, or wait for the thread that reads again, which would then
//! deadlock.
//!
//! Readers are not recorded, so a dead reader is never detected: it stays counted, and no writer
//! comes in.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Deadline, SharedWait, ThreadId};

use super::{Acquired, SLEEPERS, sleep};
use crate::lock::{Form, Standard};
use crate::nap;

/// A readers-writer lock in memory that processes share, 4 bytes.
#[repr(C)]
pub struct SharedRwLock<P: SharedWait, F: Form = Standard> {
    word: P::U32,
    form: PhantomData<F>,
}

const WHO: u32 = (1 << 28) - 1;
const WRITER: u32 = 1 << 28;
const DIED: u32 = 1 << 29;
const WAITING: u32 = 1 << 30;

/// How a thread comes in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    /// As a reader, although a writer waits.
    ReadAhead,
    /// As a reader, although a writer waits, if no thread is in.
    ReadFree,
    Write,
}

impl Way {
    /// Returns whether the lock, as it was seen, admits a thread in this way.
    fn is_open(self, seen: u32) -> bool {
        match self {
            Self::Read => seen & (WRITER | WAITING) == 0 && seen & WHO != WHO,
            Self::ReadAhead => seen & WRITER == 0 && seen & WHO != WHO,
            Self::ReadFree | Self::Write => seen & (WRITER | WHO) == 0,
        }
    }
}

impl<P: SharedWait, F: Form> SharedRwLock<P, F> {
    /// A free lock.
    pub const NEW: Self = Self { word: P::U32::ZERO, form: PhantomData };

    /// Acquires the lock to read; blocks until the caller has it, or until its writer is found
    /// dead. A thread that already reads may wait for a while. Also waits while 2²⁸ − 1 readers are
    /// in.
    #[inline]
    pub fn read(&self) -> Acquired {
        self.acquire(Way::Read)
    }

    /// Acquires the lock to read if no thread is in, or readers are in and no writer waits; never
    /// blocks, and so does not detect a dead writer. A waiting writer may be dead, so a free lock
    /// is acquired ahead of it.
    #[inline]
    pub fn try_read(&self) -> Option<Acquired> {
        self.try_acquire(Way::Read).or_else(|| self.try_acquire(Way::ReadFree))
    }

    /// Acquires the lock to read, or gives up when the deadline has passed.
    #[inline]
    pub fn read_until(&self, deadline: Deadline) -> Option<Acquired> {
        self.try_acquire(Way::Read).or_else(|| self.acquire_contended(Way::Read, Some(deadline)))
    }

    /// Acquires the lock to write; blocks until the caller has it, or until its writer is found
    /// dead. A caller that already has the lock, in either way, deadlocks.
    #[inline]
    pub fn write(&self) -> Acquired {
        self.acquire(Way::Write)
    }

    /// Acquires the lock to write if it is free; never blocks.
    #[inline]
    pub fn try_write(&self) -> Option<Acquired> {
        self.try_acquire(Way::Write)
    }

    /// Acquires the lock to write, or gives up when the deadline has passed.
    #[inline]
    pub fn write_until(&self, deadline: Deadline) -> Option<Acquired> {
        self.try_write().or_else(|| self.acquire_contended(Way::Write, Some(deadline)))
    }

    /// Releases the lock for reading; the last reader wakes all sleepers.
    ///
    /// # Safety
    ///
    /// The caller has the lock to read.
    #[inline]
    pub unsafe fn unlock_read(&self) {
        let word = &raw const self.word;
        let mut seen = self.word.load(Relaxed);
        let wakes = loop {
            let last = seen & WHO == 1;
            let new = if last { (seen - 1) & !SLEEPERS } else { seen - 1 };
            // Release: pairs with the acquire in `enter` of a writer.
            match self.word.compare_exchange(seen, new, Release, Relaxed) {
                Ok(_) => break last && seen & SLEEPERS != 0,
                Err(now) => seen = now,
            }
        };
        if wakes {
            P::wake_shared(word, u32::MAX);
        }
    }

    /// Releases the lock for writing; wakes all sleepers.
    ///
    /// # Safety
    ///
    /// The calling thread has the lock to write.
    #[inline]
    pub unsafe fn unlock_write(&self) {
        let word = &raw const self.word;
        // Release: pairs with the acquire in `enter`.
        let seen = self.word.fetch_and(DIED, Release);
        if seen & SLEEPERS != 0 {
            P::wake_shared(word, u32::MAX);
        }
    }

    /// Declares that the data which the lock guards is whole again; called by the writer.
    pub fn recovered(&self) {
        // Relaxed: the writer's release publishes it.
        self.word.fetch_and(!DIED, Relaxed);
    }

    /// Returns whether no writer has died, or a writer has called [`recovered`](Self::recovered)
    /// after that. For a caller that is in.
    pub fn is_whole(&self) -> bool {
        // Relaxed: the caller has acquired the flag when it came in.
        self.word.load(Relaxed) & DIED == 0
    }

    /// Returns whether a thread is in, dead or alive; may be stale at once.
    pub fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & (WRITER | WHO) != 0
    }

    fn acquire(&self, way: Way) -> Acquired {
        match self.try_acquire(way) {
            Some(acquired) => acquired,
            None => loop {
                if let Some(acquired) = self.acquire_contended(way, None) {
                    break acquired;
                }
            },
        }
    }

    #[inline]
    fn try_acquire(&self, way: Way) -> Option<Acquired> {
        let mut seen = self.word.load(Relaxed);
        while way.is_open(seen) {
            match self.enter(way, seen) {
                Ok(acquired) => return Some(acquired),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Comes into the lock, which was seen open, or with a dead writer.
    fn enter(&self, way: Way, seen: u32) -> Result<Acquired, u32> {
        let died = if seen & WRITER == 0 { seen & DIED } else { DIED };
        let (new, wakes) = match way {
            Way::Write => (WRITER | P::thread().0 & WHO | died | seen & SLEEPERS, false),
            _ if seen & (WRITER | WAITING) == 0 => (seen + 1, false),
            // SHARED-7: a waiting writer that is alive asks again.
            _ => {
                let readers = if seen & WRITER == 0 { seen & WHO } else { 0 };
                ((readers + 1) | died, seen & SLEEPERS != 0)
            }
        };
        // Acquire: SHARED-6; pairs with the releases in `unlock_read` and `unlock_write`. What a
        // dead writer did is not ordered before this.
        self.word.compare_exchange(seen, new, Acquire, Relaxed)?;
        if wakes {
            P::wake_shared(&raw const self.word, u32::MAX);
        }
        Ok(if died == 0 { Acquired::Whole } else { Acquired::OwnerDied })
    }

    #[cold]
    #[inline(never)]
    fn acquire_contended(&self, mut way: Way, deadline: Option<Deadline>) -> Option<Acquired> {
        // Relaxed: loaded again below, whatever the result.
        let _ = self.word.spin_while(Relaxed, F::SPIN.backing_off(0), |word| !way.is_open(word));
        let mut slept = false;
        let mut seen = self.word.load(Relaxed);
        loop {
            let dead = slept && seen & WRITER != 0 && P::ended(ThreadId(seen & WHO));
            if dead || way.is_open(seen) {
                match self.enter(way, seen) {
                    Ok(acquired) => return Some(acquired),
                    Err(now) => seen = now,
                }
                continue;
            }
            if slept && nap::passed::<P>(deadline) {
                // If the lock is free, the waiting writer has not come: it may be dead.
                if way == Way::Read
                    && let Some(acquired) = self.try_acquire(Way::ReadFree)
                {
                    return Some(acquired);
                }
                match self.give_up(way, seen) {
                    Ok(()) => return None,
                    Err(now) => seen = now,
                }
                continue;
            }
            let asks = if way == Way::Write && seen & WRITER == 0 { WAITING } else { 0 };
            let marked = seen | SLEEPERS | asks;
            if marked != seen
                && let Err(now) = self.word.compare_exchange(seen, marked, Relaxed, Relaxed)
            {
                seen = now;
                continue;
            }
            slept = true;
            let slept_out = sleep::<P, F>(&self.word, marked, deadline);
            if slept_out && way == Way::Read && !nap::passed::<P>(deadline) {
                way = Way::ReadAhead;
            }
            seen = self.word.load(Relaxed);
        }
    }

    /// Gives up: a writer removes its request, and with it those of other writers, which ask again.
    fn give_up(&self, way: Way, seen: u32) -> Result<(), u32> {
        if way != Way::Write || seen & WAITING == 0 {
            return Ok(());
        }
        let word = &raw const self.word;
        // Relaxed: it orders nothing.
        self.word.compare_exchange(seen, seen & !(WAITING | SLEEPERS), Relaxed, Relaxed)?;
        if seen & SLEEPERS != 0 {
            // SHARED-7.
            P::wake_shared(word, u32::MAX);
        }
        Ok(())
    }
}

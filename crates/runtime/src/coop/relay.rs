//! The word that names the thread with the CPU, and the lock on the shared scheduler table: the
//! baton and the guard.
//!
//! | word | bits | field | meaning |
//! |---|---|---|---|
//! | baton | 0–31 | place | the place that has the CPU, plus one; 0 is none |
//! | | 32–63 | generation | how often it was handed over |
//! | guard | 0–21 | owner | the thread that is at the table; 0 is none |
//! | | 22–30 | generation | number of times the table was locked |
//! | | 31 | `SLEEPERS` | a thread may sleep until the table is free |
//! | watcher | 0–31 | place | the place that checks whether the holder is late, plus one |
//!
//! ```text
//!            enter                                    stuck, or dead
//!   free ────────────► owner g ───────────────────────────────────────► owner' g+1
//!     ▲                   │ leave: only as owner g                         │
//!     └───────────────────┴────────────────────────────────────────────────┘
//! ```
//!
//! - BATON-1: at the table there is one thread, or one that was given up on: dead, or there for
//!   longer than the others' patience. A thread that was given up on neither releases the table of
//!   its successor nor hands the baton over; of the lines it writes at most one word after the
//!   moment at which it could know.
//! - BATON-2: a hand-over is not lost: a thread that waits for the baton sees it, or is woken.
//! - BATON-3: each hand-over is made by the thread at the table, from the generation that it found
//!   there.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Clock, Deadline, Parked, SharedWait, ThreadId};

/// The baton, the guard and the watcher, 16 bytes. All zero: no thread has the CPU, and none is at
/// the table.
#[repr(C)]
pub struct Relay<P: SharedWait> {
    pub(super) baton: P::U64,
    pub(super) guard: P::U32,
    pub(super) watcher: P::U32,
}

/// The baton, as a thread has seen it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held(u64);

/// Proof that the caller is at the table, until this is dropped.
#[must_use]
pub struct AtTable<'a, P: SharedWait> {
    relay: &'a Relay<P>,
    word: u32,
}

/// The greatest thread number: `PID_MAX_LIMIT` of `include/linux/threads.h`, see proc(5),
/// `pid_max`.
pub(super) const MOST_THREAD: u32 = OWNER;
const OWNER: u32 = (1 << 22) - 1;
const GENERATION: u32 = 1 << 22;
const SLEEPERS: u32 = 1 << 31;
/// Attempts to enter the table that may fail because another thread was faster or came in between,
/// before the caller gives up and proceeds without the table.
const TRIES: u32 = 64;

impl Held {
    /// The place that has the CPU.
    #[must_use]
    pub fn place(self) -> Option<usize> {
        (self.0 as u32).checked_sub(1).map(|place| place as usize)
    }

    fn next(self, place: Option<usize>) -> Self {
        let generation = (self.0 >> 32).wrapping_add(1);
        Self(generation << 32 | place.map_or(0, |place| u64::from(place as u32 + 1)))
    }
}

impl<P: SharedWait> Relay<P> {
    /// A relay without a holder.
    pub const NEW: Self = Self { baton: P::U64::ZERO, guard: P::U32::ZERO, watcher: P::U32::ZERO };

    /// The present baton. All that the picker wrote before it is visible.
    pub fn held(&self) -> Held {
        // Acquire: pairs with the release in `hand`.
        Held(self.baton.load(Acquire))
    }

    /// The place that checks whether the holder of the CPU is late.
    pub fn watcher(&self) -> Option<usize> {
        // Relaxed: written at the table, before the watcher leaves it or is called.
        (self.watcher.load(Relaxed) as usize).checked_sub(1)
    }

    /// Takes the table's lock (BATON-1). A thread that holds it and does not leave for
    /// `patience_ns` is given up on. Blocks for that long; returns `None` if that was not enough,
    /// in 64 attempts.
    pub fn enter(&self, thread: ThreadId, patience_ns: u64) -> Option<AtTable<'_, P>> {
        let mut seen = self.guard.load(Relaxed);
        let mut marks = 0;
        let mut stuck = false;
        for _ in 0..TRIES {
            if seen & OWNER == 0 || stuck {
                let generation = seen.wrapping_add(GENERATION) & !(OWNER | SLEEPERS);
                let new = generation | thread.0 & OWNER | seen & SLEEPERS | marks;
                // Acquire: pairs with the release as `AtTable` is dropped. After a thread that was
                // given up on, nothing is known to have happened before, and nothing needs to
                // (PAGE-1).
                match self.guard.compare_exchange(seen, new, Acquire, Relaxed) {
                    Ok(_) => return Some(AtTable { relay: self, word: new & !SLEEPERS }),
                    Err(now) => (seen, stuck) = (now, false),
                }
                continue;
            }
            // Set before the wait. Relaxed: the word is checked again.
            if seen & SLEEPERS == 0
                && let Err(now) =
                    self.guard.compare_exchange(seen, seen | SLEEPERS, Relaxed, Relaxed)
            {
                seen = now;
                continue;
            }
            // The wake-up may have been another waiter's: from now on the mark is set on entry,
            // too.
            marks = SLEEPERS;
            let ns = P::now(Clock::Monotonic).saturating_add(patience_ns);
            let deadline = Some(Deadline { clock: Clock::Monotonic, ns });
            let slept = P::wait_shared(&self.guard, seen | SLEEPERS, deadline);
            // Relaxed: the word is checked again.
            let now = self.guard.load(Relaxed);
            let same = (now ^ seen) & !SLEEPERS == 0;
            stuck = same && (slept == Parked::TimedOut || P::ended(ThreadId(now & OWNER)));
            seen = now;
        }
        None
    }

    /// Wakes the thread that sleeps at `turn`, which was given the baton or is to watch its holder.
    /// Must be called after the table is released: otherwise that thread wakes up and finds the
    /// guard taken.
    pub fn call(turn: &P::U32) {
        // Release: BATON-2, pairs with the acquire in `look`. A read-modify-write: whatever count
        // is read, all that happened before the calls up to it is visible.
        turn.fetch_add(1, Release);
        P::wake_shared(turn, 1);
    }

    /// Returns how often the thread that sleeps at `turn` was woken, and the present baton.
    pub fn look(&self, turn: &P::U32) -> (u32, Held) {
        // Acquire: BATON-2, pairs with the release in `call`. Read before the baton: a call after
        // this changes the word, and the caller does not sleep; after a call before this, the
        // caller sees the baton.
        let calls = turn.load(Acquire);
        (calls, self.held())
    }

    /// Waits at `turn` until the count of calls differs from `calls` or the deadline has passed;
    /// may also return spuriously. In each case the caller must [look](Self::look) again.
    pub fn wait(turn: &P::U32, calls: u32, deadline: Deadline) {
        let _ = P::wait_shared(turn, calls, Some(deadline));
    }
}

impl<P: SharedWait> AtTable<'_, P> {
    /// Returns whether no thread has given up on the caller.
    pub fn stands(&self) -> bool {
        // Relaxed: a guess, which limits what is written too late (BATON-1).
        self.relay.guard.load(Relaxed) & !SLEEPERS == self.word
    }

    /// Makes `place` the watcher.
    pub fn set_watcher(&self, place: Option<usize>) {
        if self.stands() {
            // Relaxed: see `watcher`.
            self.relay.watcher.store(place.map_or(0, |place| place as u32 + 1), Relaxed);
        }
    }

    /// Hands the baton to the thread in place `to`, or to none. Returns whether it did: it fails if
    /// another thread has handed it over after it was seen as `from`.
    pub fn hand(&self, from: Held, to: Option<usize>) -> bool {
        // Release: pairs with the acquire in `held`. Compared with the baton that was found
        // (BATON-3): a thread that was given up on fails, because others have handed it over.
        self.stands()
            && self.relay.baton.compare_exchange(from.0, from.next(to).0, Release, Relaxed).is_ok()
    }
}

impl<P: SharedWait> Drop for AtTable<'_, P> {
    fn drop(&mut self) {
        let guard = &self.relay.guard;
        let mut seen = guard.load(Relaxed);
        // Only as the thread that came in: otherwise the table is another's (BATON-1). In a loop,
        // because another thread may have set the mark.
        for _ in 0..3 {
            if seen & !SLEEPERS != self.word {
                return;
            }
            let free = self.word & !OWNER;
            // Release: pairs with the acquire in `enter`.
            match guard.compare_exchange(seen, free, Release, Relaxed) {
                Ok(_) => {
                    if seen & SLEEPERS != 0 {
                        P::wake_shared(guard, 1);
                    }
                    return;
                }
                Err(now) => seen = now,
            }
        }
    }
}

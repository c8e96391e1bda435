//! Which thread has the CPU, and which may say so: the baton and the guard of the table.
//!
//! | word | bits | field | meaning |
//! |---|---|---|---|
//! | baton | 0–31 | place | the place that has the CPU, as one more; 0 is none |
//! | | 32–63 | generation | how often it was handed over |
//! | guard | 0–21 | owner | the thread that is at the table; 0 is none |
//! | | 22–30 | generation | how often the table was had |
//! | | 31 | `SLEEPERS` | a thread may sleep until it is free |
//! | watcher | 0–31 | place | the place that looks when the holder is late, as one more |
//!
//! ```text
//!            enter                                    stuck, or dead
//!   free ────────────► owner g ───────────────────────────────────────► owner' g+1
//!     ▲                   │ leave: only as owner g                         │
//!     └───────────────────┴────────────────────────────────────────────────┘
//! ```
//!
//! - BATON-1: at the table there is one thread, or one that was given up on: dead, or there for
//!   longer than the others' patience. A thread that was given up on neither leaves for its
//!   successor nor hands the baton over; of the lines it writes at most one word after it could
//!   know.
//! - BATON-2: a hand-over is not lost: a thread that waits for the baton sees it, or is woken.
//! - BATON-3: each hand-over is made by the thread at the table, from the generation that it has
//!   found there.

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

/// The caller is at the table, until this is dropped.
#[must_use]
pub struct AtTable<'a, P: SharedWait> {
    relay: &'a Relay<P>,
    word: u32,
}

/// The most that a thread number is: `PID_MAX_LIMIT` of `include/linux/threads.h`, see proc(5),
/// `pid_max`.
pub(super) const MOST_THREAD: u32 = OWNER;
const OWNER: u32 = (1 << 22) - 1;
const GENERATION: u32 = 1 << 22;
const SLEEPERS: u32 = 1 << 31;
/// Failed attempts to enter the table, because another thread was faster or came in between, after
/// which a caller gives up and proceeds without the table.
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

    /// The baton as it is now. What the picker has written before is seen.
    pub fn held(&self) -> Held {
        // Acquire: pairs with the release in `hand`.
        Held(self.baton.load(Acquire))
    }

    /// The place that is to look when the holder of the CPU is late.
    pub fn watcher(&self) -> Option<usize> {
        // Relaxed: written at the table, before the watcher leaves it or is called.
        (self.watcher.load(Relaxed) as usize).checked_sub(1)
    }

    /// Goes to the table, alone (BATON-1). A thread that is there and does not leave for
    /// `patience_ns` is given up on. Blocks for that long; `None` if that was not enough, in many
    /// turns.
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
            // Marked before we sleep. Relaxed: looked at again.
            if seen & SLEEPERS == 0
                && let Err(now) =
                    self.guard.compare_exchange(seen, seen | SLEEPERS, Relaxed, Relaxed)
            {
                seen = now;
                continue;
            }
            // The wake that we had may have been another's: from now on we take the mark along.
            marks = SLEEPERS;
            let ns = P::now(Clock::Monotonic).saturating_add(patience_ns);
            let deadline = Some(Deadline { clock: Clock::Monotonic, ns });
            let slept = P::wait_shared(&self.guard, seen | SLEEPERS, deadline);
            // Relaxed: looked at again.
            let now = self.guard.load(Relaxed);
            let same = (now ^ seen) & !SLEEPERS == 0;
            stuck = same && (slept == Parked::TimedOut || P::ended(ThreadId(now & OWNER)));
            seen = now;
        }
        None
    }

    /// Wakes the thread that sleeps at `turn`, which was given the baton or is to watch its holder.
    /// Call it after releasing the table: otherwise that thread would wake up and find the guard
    /// still taken.
    pub fn call(turn: &P::U32) {
        // Release: BATON-2, pairs with the acquire in `look`. An exchange: whatever count is read,
        // what was done before all calls up to it is seen.
        turn.fetch_add(1, Release);
        P::wake_shared(turn, 1);
    }

    /// How often the thread that sleeps at `turn` was woken, and the present holder of the CPU.
    pub fn look(&self, turn: &P::U32) -> (u32, Held) {
        // Acquire: BATON-2, pairs with the release in `call`. Read before the baton: if we were
        // called after that, the word is another and we don't sleep; if before, we see the baton.
        let calls = turn.load(Acquire);
        (calls, self.held())
    }

    /// Waits at `turn` until there are more calls than `calls`, the deadline has passed, or for no
    /// reason. Whatever has ended it: the caller is to [look](Self::look).
    pub fn wait(turn: &P::U32, calls: u32, deadline: Deadline) {
        let _ = P::wait_shared(turn, calls, Some(deadline));
    }
}

impl<P: SharedWait> AtTable<'_, P> {
    /// Whether no thread has given up on the caller.
    pub fn stands(&self) -> bool {
        // Relaxed: a guess, that makes what is written too late little (BATON-1).
        self.relay.guard.load(Relaxed) & !SLEEPERS == self.word
    }

    /// Makes that place the watcher.
    pub fn set_watcher(&self, place: Option<usize>) {
        if self.stands() {
            // Relaxed: see `watcher`.
            self.relay.watcher.store(place.map_or(0, |place| place as u32 + 1), Relaxed);
        }
    }

    /// Hands the baton to the thread in that place, or to none. Says whether it did: not if another
    /// thread has handed it over after it was seen as `from`.
    pub fn hand(&self, from: Held, to: Option<usize>) -> bool {
        // Release: pairs with the acquire in `held`. From what was found (BATON-3): a thread that
        // was given up on fails, because others have handed it over.
        self.stands()
            && self.relay.baton.compare_exchange(from.0, from.next(to).0, Release, Relaxed).is_ok()
    }
}

impl<P: SharedWait> Drop for AtTable<'_, P> {
    fn drop(&mut self) {
        let guard = &self.relay.guard;
        let mut seen = guard.load(Relaxed);
        // Only as the thread that came in: otherwise the table is another's (BATON-1). Again,
        // because another thread has marked it.
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

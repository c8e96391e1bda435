//! The process-shared latch: one word, and the number from which it counts down.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0–30 | done | how much was counted down |
//! | 31 | `SLEEPERS` | a thread may sleep: the thread that opens the latch must wake all |
//!
//! ```text
//!             count_down                  count_down to zero, which clears `SLEEPERS`
//!   closed ◄────────────► closed ──────────────────────────────► open, for good
//! ```
//!
//! - SHARED-9: no waiter goes on before all was counted down, and then all waiters do; they are
//!   ordered after what was done before each count.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, SharedWait};

use super::{SLEEPERS, mark_and_sleep};
use crate::lock::{Form, Standard};
use crate::wait::MAX_COUNT;

/// A latch in memory that processes share, 8 bytes: opens once, when all is counted down. All zero
/// bytes: a latch that counts from 1. If a process is killed, what it has not yet counted down
/// stays.
#[repr(C)]
pub struct SharedLatch<P: SharedWait, F: Form = Standard> {
    word: P::U32,
    /// How much must be counted down, in addition to 1.
    beside: u32,
    form: PhantomData<F>,
}

const _: () = assert!(MAX_COUNT == SLEEPERS - 1);

impl<P: SharedWait, F: Form> SharedLatch<P, F> {
    /// A latch that opens when `count` was counted down; at once if that is 0.
    ///
    /// # Panics
    ///
    /// If `count` is more than [`MAX_COUNT`].
    #[must_use]
    pub const fn new(count: u32) -> Self {
        assert!(count <= MAX_COUNT, "the count of a latch is too large");
        Self { word: P::U32::ZERO, beside: count.wrapping_sub(1), form: PhantomData }
    }

    /// Counts down by `step`, or by what is left if that is less; the last count lets all waiters
    /// go. Never blocks.
    #[inline]
    pub fn count_down(&self, step: u32) {
        let word = &raw const self.word;
        let mut seen = self.word.load(Relaxed);
        loop {
            let left = self.left_of(seen);
            if left == 0 {
                return;
            }
            let opens = step >= left;
            let new = if opens { (seen + left) & !SLEEPERS } else { seen + step };
            // Release: SHARED-9; pairs with the acquire in `is_open`. The release sequences of
            // earlier counts continue, because only exchanges change the word. SHARED-3.
            match self.word.compare_exchange(seen, new, Release, Relaxed) {
                Ok(_) if opens && seen & SLEEPERS != 0 => return P::wake_shared(word, u32::MAX),
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Waits until the latch is open.
    #[inline]
    pub fn wait(&self) {
        while !self.wait_until(None) {}
    }

    /// Does what [`wait`](Self::wait) does, but gives up when the deadline has passed; returns
    /// whether the latch is open.
    #[inline]
    pub fn wait_until(&self, deadline: Option<Deadline>) -> bool {
        self.is_open() || self.wait_contended(deadline)
    }

    /// Returns whether all was counted down; if so, what was done before that happens before the
    /// return.
    #[inline]
    pub fn is_open(&self) -> bool {
        // Acquire: SHARED-9; pairs with the releases in `count_down`.
        self.left_of(self.word.load(Acquire)) == 0
    }

    /// Returns how much is left to count down; may be stale at once.
    pub fn left(&self) -> u32 {
        self.left_of(self.word.load(Relaxed))
    }

    fn left_of(&self, word: u32) -> u32 {
        self.beside.wrapping_add(1) - (word & !SLEEPERS)
    }

    #[cold]
    #[inline(never)]
    fn wait_contended(&self, deadline: Option<Deadline>) -> bool {
        let is_closed = |word| self.left_of(word) != 0;
        // Relaxed, all: loaded again, whatever the result of the spin.
        let _ = self.word.spin_while(Relaxed, F::SPIN.backing_off(0), is_closed);
        let mut slept = 0;
        let mut seen = self.word.load(Relaxed);
        while is_closed(seen) {
            match mark_and_sleep::<P, F>(&self.word, seen, &mut slept, deadline) {
                Some(now) => seen = now,
                None => return false,
            }
        }
        self.is_open()
    }
}

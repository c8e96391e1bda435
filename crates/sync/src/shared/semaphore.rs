//! The process-shared semaphore: one word.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0–30 | permits | the number of free permits, less the initial number |
//! | 31 | `SLEEPERS` | a thread may sleep: the release must wake one |
//!
//! The release clears the mark and wakes one thread. A thread that was woken marks the word again,
//! because it does not know whether others sleep, and wakes the next if it has left a permit.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, SharedWait};

use super::{SLEEPERS, mark_and_sleep};
use crate::lock::{Form, Standard};
use crate::wait::{MAX_PERMITS, TooManyPermits};

/// A counting semaphore in memory that processes share, 8 bytes. Arriving waiters take permits
/// ahead of sleeping waiters. If a process is killed, permits that it had taken are lost.
#[repr(C)]
pub struct SharedSemaphore<P: SharedWait, F: Form = Standard> {
    word: P::U32,
    first: u32,
    form: PhantomData<F>,
}

const _: () = assert!(MAX_PERMITS == SLEEPERS - 1);

impl<P: SharedWait, F: Form> SharedSemaphore<P, F> {
    /// A semaphore that has this many `permits`. A semaphore of zero bytes has none.
    ///
    /// # Panics
    ///
    /// If `permits` is more than [`MAX_PERMITS`].
    #[must_use]
    pub const fn new(permits: u32) -> Self {
        assert!(permits <= MAX_PERMITS, "too many permits");
        Self { word: P::U32::ZERO, first: permits, form: PhantomData }
    }

    /// Takes a permit; blocks until the caller has it.
    #[inline]
    pub fn acquire(&self) {
        if !self.try_acquire() {
            while !self.acquire_contended(None) {}
        }
    }

    /// Takes a permit if one is free; never blocks.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        let mut seen = self.word.load(Relaxed);
        while self.permits_of(seen) != 0 {
            match self.take(seen, 0) {
                Ok(()) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Takes a permit, or gives up when the deadline has passed; returns whether the caller has a
    /// permit.
    #[inline]
    pub fn acquire_until(&self, deadline: Deadline) -> bool {
        self.try_acquire() || self.acquire_contended(Some(deadline))
    }

    /// Gives `more` permits; wakes one sleeper, which wakes the next. Never blocks.
    ///
    /// # Errors
    ///
    /// [`TooManyPermits`]; then none was given.
    #[inline]
    pub fn release(&self, more: u32) -> Result<(), TooManyPermits> {
        let word = &raw const self.word;
        let mut seen = self.word.load(Relaxed);
        loop {
            let permits = self.permits_of(seen).checked_add(more).filter(|&all| all <= MAX_PERMITS);
            let new = self.word_of(permits.ok_or(TooManyPermits)?);
            // Release: pairs with the acquire in `take`.
            match self.word.compare_exchange(seen, new, Release, Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        if seen & SLEEPERS != 0 {
            P::wake_shared(word, 1);
        }
        Ok(())
    }

    /// Returns the number of free permits; may be stale at once.
    pub fn permits(&self) -> u32 {
        self.permits_of(self.word.load(Relaxed))
    }

    fn permits_of(&self, word: u32) -> u32 {
        word.wrapping_add(self.first) & MAX_PERMITS
    }

    /// Returns the word for this many `permits`, unmarked.
    fn word_of(&self, permits: u32) -> u32 {
        permits.wrapping_sub(self.first) & MAX_PERMITS
    }

    /// Takes one of the permits that were seen.
    fn take(&self, seen: u32, marks: u32) -> Result<(), u32> {
        let new = self.word_of(self.permits_of(seen) - 1) | seen & SLEEPERS | marks;
        // Acquire: what came before the release; pairs with it.
        self.word.compare_exchange(seen, new, Acquire, Relaxed).map(|_| ())
    }

    #[cold]
    #[inline(never)]
    fn acquire_contended(&self, deadline: Option<Deadline>) -> bool {
        // Relaxed: loaded again below, whatever the result.
        let _ = self
            .word
            .spin_while(Relaxed, F::SPIN.backing_off(0), |word| self.permits_of(word) == 0);
        let mut marks = 0;
        let mut seen = self.word.load(Relaxed);
        loop {
            if self.permits_of(seen) != 0 {
                match self.take(seen, marks) {
                    // SHARED-2: our wake may have been for two permits.
                    Ok(()) if marks != 0 && self.permits_of(seen) > 1 => {
                        P::wake_shared(&raw const self.word, 1);
                        return true;
                    }
                    Ok(()) => return true,
                    Err(now) => seen = now,
                }
                continue;
            }
            let slept = mark_and_sleep::<P, F>(&self.word, seen, &mut marks, deadline);
            let Some(now) = slept else { return false };
            seen = now;
        }
    }
}

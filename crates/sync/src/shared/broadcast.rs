//! The process-shared broadcast: one word.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0–30 | generation | number of sends; wraps around |
//! | 31 | `SLEEPERS` | a thread may sleep with that generation: the sender must wake all |
//!
//! ```text
//!                   send, which clears `SLEEPERS`, and wakes all if that was on
//!   generation g ────────────────────────────────────────────────────────────────► g + 1
//! ```
//!
//! - SHARED-8: a thread that waits with a generation returns after the first send that follows it,
//!   and is ordered after what was done before each send so far.
//!
//! A send is an exchange whether a thread waits or not. So this also works as an event count, for
//! conditions on other words, without a fence: a thread that has asked for the generation before a
//! send finds it changed, and a thread that has asked later finds the condition.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, SharedWait};

use super::{SLEEPERS, mark_and_sleep};
use crate::lock::{Form, Standard};

/// A broadcast in memory that processes share, 4 bytes. All zero bytes: nothing was sent.
#[repr(transparent)]
pub struct SharedBroadcast<P: SharedWait, F: Form = Standard> {
    word: P::U32,
    form: PhantomData<F>,
}

/// The number of sends, modulo 2³¹; compare it only with others of the same broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedGeneration(u32);

impl SharedGeneration {
    fn of(word: u32) -> Self {
        Self(word & !SLEEPERS)
    }

    /// Returns the number of sends from `earlier` to this generation.
    #[must_use]
    pub fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0) & !SLEEPERS
    }

    /// Returns the generation as a number, for storage where this type is not known.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Returns the generation of a number that [`to_bits`](Self::to_bits) returned. Any other
    /// number is a generation that has ended, or has not begun.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

impl<P: SharedWait, F: Form> SharedBroadcast<P, F> {
    /// A broadcast in which nothing was sent.
    pub const NEW: Self = Self { word: P::U32::ZERO, form: PhantomData };

    /// Returns the present generation. Call this before checking whether to wait: each later send
    /// ends a wait with the returned generation. What was done before each send so far happens
    /// before the return.
    #[inline]
    pub fn now(&self) -> SharedGeneration {
        // Acquire: SHARED-8; pairs with the release in `send`.
        SharedGeneration::of(self.word.load(Acquire))
    }

    /// Ends the waits of all threads that wait with the present generation. Never blocks.
    #[inline]
    pub fn send(&self) {
        let word = &raw const self.word;
        let mut seen = self.word.load(Relaxed);
        loop {
            let new = (seen & !SLEEPERS).wrapping_add(1) & !SLEEPERS;
            // Release: SHARED-8; pairs with the acquire in `now`. The release sequences of earlier
            // sends continue, because only exchanges change the word. SHARED-3.
            match self.word.compare_exchange(seen, new, Release, Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        if seen & SLEEPERS != 0 {
            P::wake_shared(word, u32::MAX);
        }
    }

    /// Waits until the generation differs from `seen`; returns it. 2³¹ sends between two checks are
    /// not noticed.
    #[inline]
    pub fn wait(&self, seen: SharedGeneration) -> SharedGeneration {
        loop {
            if let Some(now) = self.wait_until(seen, None) {
                return now;
            }
        }
    }

    /// Does what [`wait`](Self::wait) does, but gives up, and returns `None`, when the deadline has
    /// passed.
    #[inline]
    pub fn wait_until(
        &self,
        seen: SharedGeneration,
        deadline: Option<Deadline>,
    ) -> Option<SharedGeneration> {
        self.newer(seen).or_else(|| self.wait_contended(seen, deadline))
    }

    fn newer(&self, seen: SharedGeneration) -> Option<SharedGeneration> {
        Some(self.now()).filter(|&now| now != seen)
    }

    #[cold]
    #[inline(never)]
    fn wait_contended(
        &self,
        seen: SharedGeneration,
        deadline: Option<Deadline>,
    ) -> Option<SharedGeneration> {
        let lasts = |word| SharedGeneration::of(word) == seen;
        // Relaxed, all: loaded again, whatever the result of the spin.
        let _ = self.word.spin_while(Relaxed, F::SPIN.backing_off(0), lasts);
        let mut slept = 0;
        let mut word = self.word.load(Relaxed);
        while lasts(word) {
            word = mark_and_sleep::<P, F>(&self.word, word, &mut slept, deadline)?;
        }
        self.newer(seen)
    }
}

//! The process-shared broadcast: one word.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0–30 | generation | number of sends; begins anew at the end |
//! | 31 | `SLEEPERS` | a thread may sleep with that generation: the sender must wake all |
//!
//! ```text
//!                   send, which clears `SLEEPERS`, and wakes all if that was on
//!   generation g ────────────────────────────────────────────────────────────────► g + 1
//! ```
//!
//! - SHARED-8: a thread that waits with a generation is back after the first send behind that, and
//!   what was done before each send so far happens before.
//!
//! A send is an exchange whether a thread waits or not. So this is an event count too, for
//! conditions that stand in other words, and needs no fence for it: a thread that has asked for the
//! generation before a send finds it changed, and a thread that has asked later finds the
//! condition.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, SharedWait};

use super::{SLEEPERS, mark_and_sleep};
use crate::lock::{Form, Standard};

/// A broadcast in memory that processes share, 4 bytes. All zero: nothing was sent.
#[repr(transparent)]
pub struct SharedBroadcast<P: SharedWait, F: Form = Standard> {
    word: P::U32,
    form: PhantomData<F>,
}

/// The number of sends, modulo 2³¹; to be compared with others of the same broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedGeneration(u32);

impl SharedGeneration {
    fn of(word: u32) -> Self {
        Self(word & !SLEEPERS)
    }

    /// The number of sends from `earlier` to here.
    #[must_use]
    pub fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0) & !SLEEPERS
    }

    /// The generation as a number, to be kept where this type is not known.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// The generation of a number that [`to_bits`](Self::to_bits) returned. A number of another
    /// origin is a generation that has ended, or has not begun.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

impl<P: SharedWait, F: Form> SharedBroadcast<P, F> {
    /// A broadcast in which nothing was sent.
    pub const NEW: Self = Self { word: P::U32::ZERO, form: PhantomData };

    /// The present generation. The caller asks for it before it looks whether it has to wait: each
    /// later send ends a wait with it. What was done before each send so far happens before the
    /// return.
    #[inline]
    pub fn now(&self) -> SharedGeneration {
        // Acquire: SHARED-8; pairs with the release in `send`.
        SharedGeneration::of(self.word.load(Acquire))
    }

    /// Ends the waits of all that wait with the present generation. Never blocks.
    #[inline]
    pub fn send(&self) {
        let word = &raw const self.word;
        let mut seen = self.word.load(Relaxed);
        loop {
            let new = (seen & !SLEEPERS).wrapping_add(1) & !SLEEPERS;
            // Release: SHARED-8; pairs with the acquire in `now`. Those of earlier sends are
            // carried on: nothing but exchanges changes the word. SHARED-3.
            match self.word.compare_exchange(seen, new, Release, Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        if seen & SLEEPERS != 0 {
            P::wake_shared(word, u32::MAX);
        }
    }

    /// Waits until the generation is another than `seen`; returns it. 2³¹ sends between two looks
    /// count as none.
    #[inline]
    pub fn wait(&self, seen: SharedGeneration) -> SharedGeneration {
        loop {
            if let Some(now) = self.wait_until(seen, None) {
                return now;
            }
        }
    }

    /// Does what [`wait`](Self::wait) does, but gives up when the deadline has passed: `None`.
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

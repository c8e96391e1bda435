//! Decides whether a wait for a lock is worth a long spin, by the thread's recent waits for it.
//!
//! Each thread counts in four words, chosen by the lock's address, so that a lock with long
//! sections does not affect most other locks:
//!
//! | what the thread saw | count |
//! |---|---|
//! | [`Spun::Soon`]: a spin or section that ended within [`STILL_NS`] | 0; 1 if it was `LONG` |
//! | [`Spun::InVain`]: a spin without success, or a longer section | one more, up to [`LONG`] |
//! | [`Spun::Late`]: a spin that ended later, or was cut short | the same |
//!
//! At [`LONG`], sections are long, or their owners sleep, and the thread sleeps at once (LINGER-5).
//! One wait in [`TRIED`] spins nevertheless, to learn of shorter sections.
//!
//! Where the lock is handed over, a waiter cannot tell long sections from a long queue. So an owner
//! measures one of its sections in [`TRIED`]. It decides this while it waits, and takes the time
//! after it has handed the lock on, so that neither delays the lock. A section whose owner may have
//! lost its CPU is not counted.
//!
//! The count is a guess, like the note in `comer.rs`: it decides how much CPU time a wait takes,
//! and nothing else.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Clock, Platform};

use super::comer;

/// A queue that has not moved for this long stands still. A longer spin takes more CPU time than a
/// sleep and a wake.
pub(super) const STILL_NS: u32 = 20_000;
/// How many unsuccessful spins in a row show that sections are long.
const LONG: u32 = 2;
/// One wait in this many, chosen at random, spins nevertheless.
const TRIED: u32 = 16;

/// How a spin or a section has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spun {
    /// It ended within [`STILL_NS`].
    Soon,
    /// It ended later, or was cut short.
    Late,
    /// The spin had no success, or the section was longer than [`STILL_NS`].
    InVain,
}

/// What the calling thread remembers of a lock.
#[derive(Clone, Copy)]
pub(super) struct Lately {
    at: usize,
    count: u32,
    tries: bool,
}

impl Lately {
    /// Returns what the calling thread remembers of this lock.
    pub(super) fn of<P: Platform, L>(lock: &L) -> Self {
        Self::at::<P>(core::ptr::from_ref(lock).addr())
    }

    fn at<P: Platform>(lock: usize) -> Self {
        let at = comer::word_of::<P>(lock);
        let count = P::local(|local| local.vain[at].load(Relaxed));
        Self { at, count, tries: count >= LONG && P::random().is_multiple_of(TRIED) }
    }

    /// Returns whether sections were long lately.
    pub(super) fn is_long(self) -> bool {
        self.count >= LONG
    }

    /// Returns whether the next long spin is likely to be unsuccessful, and is not one of the spins
    /// that are tried nevertheless.
    pub(super) fn is_vain(self) -> bool {
        self.is_long() && !self.tries
    }

    /// Returns whether the caller, to which the lock may be handed, must then measure its section:
    /// one in [`TRIED`], and each section after one that was long.
    pub(super) fn is_to_measure<P: Platform>(self) -> bool {
        self.count != 0 || P::random().is_multiple_of(TRIED)
    }

    /// Starts the measurement of a section. Called by an owner to which the lock was handed.
    #[cold]
    pub(super) fn begin_section<P: Platform, L>(lock: &L) {
        P::local(|local| {
            local.measured.store(core::ptr::from_ref(lock).addr() as u64, Relaxed);
            local.measured_at.store(P::now(Clock::Monotonic), Relaxed);
        });
    }

    /// Called by a thread that has just handed on the lock at this address: notes how long its
    /// section was, if it was measured. Touches nothing of the lock (PASS-3).
    pub(super) fn end_section<P: Platform>(lock: usize) {
        let since_ns = P::local(|local| {
            let measured = local.measured.load(Relaxed) == lock as u64;
            measured.then(|| {
                local.measured.store(0, Relaxed);
                local.measured_at.load(Relaxed)
            })
        });
        if let Some(since_ns) = since_ns {
            let is_long = P::now(Clock::Monotonic).saturating_sub(since_ns) >= STILL_NS.into();
            let spun = match is_long {
                false => Spun::Soon,
                // The owner may have lost its CPU meanwhile.
                true if P::slice_left_ns() != u32::MAX => Spun::Late,
                true => Spun::InVain,
            };
            Self::at::<P>(lock).note::<P>(spun);
        }
    }

    /// Notes how a spin or a section has ended.
    pub(super) fn note<P: Platform>(&mut self, spun: Spun) {
        let count = match spun {
            Spun::Soon => u32::from(self.is_long()),
            Spun::Late => self.count,
            Spun::InVain => (self.count + 1).min(LONG),
        };
        if count != self.count {
            self.count = count;
            P::local(|local| local.vain[self.at].store(count, Relaxed));
        }
    }
}

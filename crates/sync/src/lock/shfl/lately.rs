//! Whether a wait for a lock is worth a long spin, by what the thread has met there lately.
//!
//! Each thread counts in four words, chosen by the lock's address, so that a lock with long
//! sections says nothing of most others:
//!
//! | what the thread met | count |
//! |---|---|
//! | [`Spun::Soon`]: a spin or section that ended within [`STILL_NS`] | 0; 1 if it was `LONG` |
//! | [`Spun::InVain`]: a spin for which nothing came, a longer section | one more, to [`LONG`] |
//! | [`Spun::Late`]: a spin that ended later, or was cut short | the same |
//!
//! At [`LONG`], sections are long, or their owners sleep, and the thread sleeps at once (LINGER-5).
//! One wait in [`TRIED`] spins all the same, so that it learns of shorter sections.
//!
//! Where the lock is handed over, a waiter cannot tell long sections from a long queue. So an owner
//! measures its own section, one in [`TRIED`]: whether it does is decided while it waits, and the
//! time is taken after it has handed the lock on, so that neither is on the way of the lock. A
//! section whose owner may have lost its CPU says nothing.
//!
//! The count is a guess, like the note in `comer.rs`: it decides how much CPU time a wait takes,
//! and nothing else.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Clock, Platform};

use super::comer;

/// A queue that has not moved for this long stands still. A sleep and a wake take less CPU time
/// than a spin that is longer.
pub(super) const STILL_NS: u32 = 20_000;
/// How many spins in vain in a row say that sections are long.
const LONG: u32 = 2;
/// One wait in this many spins all the same, at random.
const TRIED: u32 = 16;

/// How a spin has ended, or a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spun {
    /// Within [`STILL_NS`].
    Soon,
    /// Later, or it was cut short.
    Late,
    /// Nothing came, or the section was longer than [`STILL_NS`].
    InVain,
}

/// The caller's memory of a lock.
#[derive(Clone, Copy)]
pub(super) struct Lately {
    at: usize,
    count: u32,
    tries: bool,
}

impl Lately {
    /// The caller's memory of this lock.
    pub(super) fn of<P: Platform, L>(lock: &L) -> Self {
        Self::at::<P>(core::ptr::from_ref(lock).addr())
    }

    fn at<P: Platform>(lock: usize) -> Self {
        let at = comer::word_of::<P>(lock);
        let count = P::local(|local| local.vain[at].load(Relaxed));
        Self { at, count, tries: count >= LONG && P::random().is_multiple_of(TRIED) }
    }

    /// Whether sections were long lately.
    pub(super) fn is_long(self) -> bool {
        self.count >= LONG
    }

    /// Whether the next long spin is likely to be in vain, and is not one of those that are tried.
    pub(super) fn is_vain(self) -> bool {
        self.is_long() && !self.tries
    }

    /// Whether the caller, to which the lock may be handed, is to measure its section then: one in
    /// [`TRIED`], and each one that has reason to.
    pub(super) fn is_to_measure<P: Platform>(self) -> bool {
        self.count != 0 || P::random().is_multiple_of(TRIED)
    }

    /// Called by an owner to which the lock was handed, and which measures its section.
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

    /// Notes how a spin has ended, or a section.
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

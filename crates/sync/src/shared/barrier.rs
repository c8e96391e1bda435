//! The process-shared barrier: one word, and the number of threads that it waits for.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0–15 | came | how many threads have come in this round, and have not given up |
//! | 16–31 | round | its number, which wraps around |
//!
//! ```text
//!              comes                           comes as the last
//!   round|0 ──────────► round|1 ──────► … ──────────────────────────► round+1|0: all go on
//!           ◄──────────
//!            gives up
//! ```
//!
//! - SHARED-4: no thread goes on before `parties` threads have come; what each did before it came
//!   happens before what any of them does afterwards. One of them is the leader.
//! - SHARED-5: the thread that comes as the last touches nothing after the exchange by which it
//!   comes, and a thread that has returned touches nothing.
//!
//! A thread that sleeps while others complete 2¹⁶ rounds takes the round after these for its own,
//! and goes on with the next; that needs more threads than parties.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use antiphon_platform::{Atomic, Deadline, SharedWait};

use super::sleep;
use crate::lock::{Form, Standard};
use crate::nap;

/// The most threads that a [`SharedBarrier`] can wait for.
pub const MAX_PARTIES: u32 = (1 << ROUND) - 1;

/// A barrier in memory that processes share, 8 bytes; may be used any number of times. All zero
/// bytes: a barrier for a single thread.
///
/// A thread that is killed before it comes never comes; a thread that is killed while it waits
/// counts as come.
#[repr(C)]
pub struct SharedBarrier<P: SharedWait, F: Form = Standard> {
    word: P::U32,
    parties: u32,
    form: PhantomData<F>,
}

/// The lowest bit of the number of the round.
const ROUND: u32 = 16;

impl<P: SharedWait, F: Form> SharedBarrier<P, F> {
    /// A barrier for `parties` threads; 0 is the same as 1.
    ///
    /// # Panics
    ///
    /// If `parties` is more than [`MAX_PARTIES`].
    #[must_use]
    pub const fn new(parties: u32) -> Self {
        assert!(parties <= MAX_PARTIES, "too many parties");
        Self { word: P::U32::ZERO, parties, form: PhantomData }
    }

    /// Returns the number of threads that the barrier waits for.
    pub fn parties(&self) -> u32 {
        self.parties.max(1)
    }

    /// Waits until as many threads as there are parties have come, the caller included. Returns
    /// `true` for the leader, which is the last thread to come.
    ///
    /// A process may unmap the barrier once its own threads have returned; the memory may be put to
    /// other uses once all threads have.
    pub fn wait(&self) -> bool {
        self.come().unwrap_or_else(|round| {
            while !self.waited(round, None) {}
            false
        })
    }

    /// Does what [`wait`](Self::wait) does, but gives up when the deadline has passed: then it
    /// returns `None`, and the caller does not count as come.
    pub fn wait_until(&self, deadline: Deadline) -> Option<bool> {
        self.come()
            .map_or_else(|round| self.waited(round, Some(deadline)).then_some(false), Option::Some)
    }

    /// Counts the caller: returns `true` for the last thread, which lets all go; otherwise, as an
    /// error, the round to wait for.
    fn come(&self) -> Result<bool, u32> {
        let mut seen = self.word.load(Relaxed);
        loop {
            let round = seen >> ROUND;
            let last = (seen & MAX_PARTIES) + 1 == self.parties();
            let new = if last { round.wrapping_add(1) << ROUND } else { seen + 1 };
            let word = &raw const self.word;
            // Acquire and release: SHARED-4; pairs with itself in the threads that came before, and
            // with the load in `waited`.
            // mutant: in models a wake is a fence, by which the last acquires too.
            match self.word.compare_exchange(seen, new, AcqRel, Relaxed) {
                Ok(_) if last => {
                    P::wake_shared(word, u32::MAX);
                    return Ok(true);
                }
                Ok(_) => return Err(round),
                Err(now) => seen = now,
            }
        }
    }

    /// Waits until the round is over; returns `false` if the deadline has passed, and the caller
    /// has taken its arrival back.
    fn waited(&self, round: u32, deadline: Option<Deadline>) -> bool {
        let lasts = |word: u32| word >> ROUND == round;
        // Relaxed: loaded again below, whatever the result.
        let _ = self.word.spin_while(Relaxed, F::SPIN.backing_off(0), lasts);
        let mut slept = false;
        loop {
            // Acquire: SHARED-4; pairs with the exchange of the last.
            let seen = self.word.load(Acquire);
            if !lasts(seen) {
                return true;
            }
            if slept && nap::passed::<P>(deadline) {
                // Relaxed: it orders nothing. If the word has changed, everything is checked again.
                if self.word.compare_exchange(seen, seen - 1, Relaxed, Relaxed).is_ok() {
                    return false;
                }
                continue;
            }
            slept = true;
            let _ = sleep::<P, F>(&self.word, seen, deadline);
        }
    }
}

//! The actions that are pending on a CPU: a bit for each, and an interrupt only for the first.
//!
//! | word | meaning | sender | handler |
//! |---|---|---|---|
//! | `words` | a bit for each action | first, sets one | then, takes words |
//! | `summary` | a bit for each word; any: an interrupt comes | then, sets one | first, takes it |
//!
//! - PENDING-1 (no lost action): a sender sets the bit, then the summary; the handler takes the
//!   summary, then the words. A sender that finds the summary empty sends an interrupt. One that
//!   does not comes after a sender whose interrupt the handler has yet to answer, and the handler
//!   will see both bits.
//! - PENDING-2: bits of one action that are set before the handler takes them are one.
//!
//! Nemo has one slot a core in the place of this, which a second sender overwrites.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Atomics};

/// How many actions there are.
pub const ACTIONS: usize = 1024;
const BITS: usize = 64;
const WORDS: usize = ACTIONS / BITS;

/// The pending actions of a CPU.
#[repr(C, align(128))]
pub struct Pending<A: Atomics> {
    summary: A::U64,
    words: [A::U64; WORDS],
}

impl<A: Atomics> Pending<A> {
    /// Nothing is pending.
    pub const NEW: Self = Self { summary: A::U64::ZERO, words: [const { A::U64::ZERO }; WORDS] };

    /// Makes an action pending. `true`: the caller is to send the CPU an interrupt.
    ///
    /// # Panics
    ///
    /// If there is no such action.
    #[inline]
    #[must_use]
    pub fn post(&self, action: usize) -> bool {
        let (word, bit) = (action / BITS, action % BITS);
        // Release: the sender's past; pairs with the acquire of the word in `drain`.
        self.words[word].fetch_or(1 << bit, Release);
        // Release: PENDING-1, the bit; pairs with the acquire of the summary in `drain`. As a rule
        // nothing is pending: a comparison with 0 is shorter than one with what was found.
        // mutant: only load buffering would tell, which the checker does not have.
        self.summary.compare_exchange(0, 1 << word, Release, Relaxed).is_ok() || self.add(word)
    }

    /// The same where something was pending a moment ago.
    #[cold]
    fn add(&self, word: usize) -> bool {
        // Release: as above.
        // mutant: as in `post`.
        self.summary.fetch_or(1 << word, Release) == 0
    }

    /// The interrupt has come: runs `run` for each action that is pending. Called by the CPU
    /// itself, with interrupts off.
    #[inline]
    pub fn drain(&self, mut run: impl FnMut(usize)) {
        // Acquire: PENDING-1, the bits; pairs with the release of the summary in `post`.
        // mutant: as in `post`.
        let mut summary = self.summary.swap(0, Acquire);
        while summary != 0 {
            let word = summary.trailing_zeros() as usize;
            summary &= summary - 1;
            // Acquire: the senders' past; pairs with the release of the word in `post`. The mask
            // is no news, but spares a check.
            let mut bits = self.words[word % WORDS].swap(0, Acquire);
            while bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                run(word * BITS + bit);
            }
        }
    }

    /// Takes an action back: what was posted of it, and not seen by the CPU, runs nothing. An
    /// interrupt that is on its way for it finds nothing to do.
    pub fn retract(&self, action: usize) {
        // Relaxed: it takes nothing over.
        self.words[action / BITS].fetch_and(!(1 << (action % BITS)), Relaxed);
    }
}

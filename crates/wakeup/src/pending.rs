//! The actions that are pending on a CPU: a bit for each, and an interrupt only for the first.
//!
//! | word | meaning | sender | handler |
//! |---|---|---|---|
//! | `words` | a bit for each action | first, sets one | then, takes words |
//! | `summary` | a bit for each word; not 0: interrupted | then, sets one | first, takes it |
//!
//! - PENDING-1 (no lost action): a sender sets the bit, then the summary; the handler takes the
//!   summary, then the words. A sender that finds the summary empty sends an interrupt. A sender
//!   that does not find it empty follows one whose interrupt is not handled yet, and the handler
//!   will see the bits of both.
//! - PENDING-2: posts of one action before the handler takes its bit run the action once.
//!
//! Nemo has one slot per core instead, which a second sender overwrites.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Atomics};

/// Number of actions.
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
    /// A set without pending actions.
    pub const NEW: Self = Self { summary: A::U64::ZERO, words: [const { A::U64::ZERO }; WORDS] };

    /// Makes an action pending. Returns whether the caller must send the CPU an interrupt.
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
        // Release: PENDING-1, the bit; pairs with the acquire of the summary in `drain`. Mostly no
        // action is pending, and a comparison with the constant 0 takes fewer instructions.
        // mutant: only load buffering would tell, which the checker does not have.
        self.summary.compare_exchange(0, 1 << word, Release, Relaxed).is_ok() || self.add(word)
    }

    /// Sets the bit of a word in a summary that was not empty just now; returns what `post` does.
    #[cold]
    fn add(&self, word: usize) -> bool {
        // Release: as in `post`.
        // mutant: as in `post`.
        self.summary.fetch_or(1 << word, Release) == 0
    }

    /// Handles the interrupt: calls `run` for each pending action. Called by the CPU itself, with
    /// interrupts off.
    #[inline]
    pub fn drain(&self, mut run: impl FnMut(usize)) {
        // Acquire: PENDING-1, the bits; pairs with the release of the summary in `post`.
        // mutant: as in `post`.
        let mut summary = self.summary.swap(0, Acquire);
        while summary != 0 {
            let word = summary.trailing_zeros() as usize;
            summary &= summary - 1;
            // Acquire: the senders' past; pairs with the release of the word in `post`. The
            // remainder changes nothing, but saves a bounds check.
            let mut bits = self.words[word % WORDS].swap(0, Acquire);
            while bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                run(word * BITS + bit);
            }
        }
    }

    /// Takes an action back: posts of it that the CPU has not seen run nothing. An interrupt that
    /// is on its way for them finds no action to run.
    pub fn retract(&self, action: usize) {
        // Relaxed: the caller reads nothing that a sender wrote.
        self.words[action / BITS].fetch_and(!(1 << (action % BITS)), Relaxed);
    }
}

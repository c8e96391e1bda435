//! The actions that are pending on a CPU: a bit for each, and an interrupt only for the first.
//!
//! | word | meaning | sender | handler |
//! |---|---|---|---|
//! | `words` | a bit for each further action | first, sets one | then, takes words |
//! | `summary` | a bit for each word and each first action | then, sets one | first, takes it |
//!
//! A summary that is not 0 says that an interrupt is on its way.
//!
//! The first [`FIRST`] actions have their bits in the summary only, and take one exchange at each
//! end instead of two.
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
/// Number of the actions whose bits are in the summary.
pub const FIRST: usize = BITS - WORDS;

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
        if action < FIRST {
            return self.announce(1 << (WORDS + action));
        }
        let (word, bit) = (action / BITS, action % BITS);
        // Release: the sender's past; pairs with the acquire of the word in `drain`.
        self.words[word].fetch_or(1 << bit, Release);
        self.announce(1 << word)
    }

    /// Sets a bit of the summary; returns what `post` does.
    #[inline]
    fn announce(&self, bit: u64) -> bool {
        // Release: PENDING-1, the bit of a word; and the sender's past. Pairs with the acquire of
        // the summary in `drain`. Mostly no action is pending, and a comparison with the constant 0
        // takes fewer instructions.
        self.summary.compare_exchange(0, bit, Release, Relaxed).is_ok() || self.add(bit)
    }

    /// Sets a bit of a summary that was not empty just now; returns what `post` does.
    #[cold]
    fn add(&self, bit: u64) -> bool {
        // Release: as in `announce`.
        self.summary.fetch_or(bit, Release) == 0
    }

    /// Handles the interrupt: calls `run` for each pending action. Called by the CPU itself, with
    /// interrupts off.
    #[inline]
    pub fn drain(&self, mut run: impl FnMut(usize)) {
        // Acquire: PENDING-1, the bits, and the senders' past; pairs with the release in
        // `announce`.
        let mut summary = self.summary.swap(0, Acquire);
        while summary != 0 {
            let word = summary.trailing_zeros() as usize;
            summary &= summary - 1;
            if word >= WORDS {
                run(word - WORDS);
                continue;
            }
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
        // Relaxed, all: the caller reads nothing that a sender wrote.
        if action < FIRST {
            let bit = 1 << (WORDS + action);
            let mut seen = self.summary.load(Relaxed);
            while seen & bit != 0 {
                // PENDING-1: an interrupt is on its way, so the summary must not become 0. The bit
                // of the first word, which is empty or not, says so.
                match self.summary.compare_exchange(seen, seen & !bit | 1, Relaxed, Relaxed) {
                    Ok(_) => return,
                    Err(now) => seen = now,
                }
            }
            return;
        }
        self.words[action / BITS].fetch_and(!(1 << (action % BITS)), Relaxed);
    }
}

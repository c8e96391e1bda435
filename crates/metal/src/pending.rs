//! The actions that are pending on a CPU: a bit for each, and an interrupt only for the first.
//!
//! | word | meaning | sender | handler |
//! |---|---|---|---|
//! | `words` | a bit for each action | sets one | takes a word |
//! | `summary` | a bit for each word | sets one | takes it |
//! | `rung` | an interrupt is on its way | sets it | clears it, first |
//!
//! - PENDING-1 (no lost action): a sender sets the bit, then the summary, then `rung`; the handler
//!   clears `rung`, then takes the summary, then the words. If the sender finds `rung` set, the
//!   handler has not cleared it yet, and will see the bit; otherwise it sends an interrupt.
//! - PENDING-2: posts of one action before the handler takes its bit run the action once.
//!
//! Nemo has one slot per core instead, which a second sender overwrites.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Number of actions.
pub const ACTIONS: usize = 1024;
const BITS: usize = 64;
const WORDS: usize = ACTIONS / BITS;

/// The pending actions of a CPU.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Pending {
    rung: AtomicU32,
    summary: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl Default for Pending {
    fn default() -> Self {
        Self::new()
    }
}

impl Pending {
    /// Creates a set without pending actions.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            rung: AtomicU32::new(0),
            summary: AtomicU64::new(0),
            words: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    /// Makes an action pending. Returns whether the caller must send the CPU an interrupt.
    ///
    /// # Panics
    ///
    /// If there is no such action.
    #[inline]
    #[must_use]
    pub fn post(&self, action: usize) -> bool {
        let (word, bit) = (action / BITS, action % BITS);
        // Release, both: PENDING-1, and the sender's past; they pair with the acquires in `drain`.
        self.words[word].fetch_or(1 << bit, Release);
        self.summary.fetch_or(1 << word, Release);
        // Release: PENDING-1, for a sender that finds it set; pairs with the acquire of the handler
        // that clears it. Acquire: a sender that must interrupt the CPU is ordered after the
        // handler that cleared it.
        self.rung.fetch_or(1, AcqRel) & 1 == 0
    }

    /// Handles the interrupt: calls `run` for each pending action. Called by the CPU itself, with
    /// interrupts off.
    #[inline]
    pub fn drain(&self, mut run: impl FnMut(usize)) {
        // Acquire, all: pairs with the releases in `post`. Release: PENDING-1, the clearing comes
        // before what follows, as read-modify-writes of one CPU do.
        self.rung.swap(0, AcqRel);
        let mut summary = self.summary.swap(0, Acquire);
        while summary != 0 {
            let word = summary.trailing_zeros() as usize;
            summary &= summary - 1;
            // The remainder changes nothing, but saves a bounds check.
            let mut bits = self.words[word % WORDS].swap(0, Acquire);
            while bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                run(word * BITS + bit);
            }
        }
    }

    /// Returns whether no action is pending. May be stale at once.
    pub fn is_empty(&self) -> bool {
        self.summary.load(Relaxed) == 0
    }
}

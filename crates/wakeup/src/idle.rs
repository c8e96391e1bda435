//! The CPUs that have nothing to do: a producer claims one of them for each task, and wakes no
//! other.
//!
//! A kernel whose CPUs take tasks from queues that all of them read has no thread to put into an
//! inbox. If it wakes all idle CPUs for each task, most wake in vain; if it wakes none that is
//! about to halt, a task may lie until the next interrupt. Each CPU has a bit:
//!
//! | step | an idle CPU | a producer |
//! |---|---|---|
//! | 1 | sets its bit: [`enter`](IdleCpus::enter) | publishes the task |
//! | 2 | looks at the queues once more | takes one bit: [`claim`](IdleCpus::claim) |
//! | 3 | halts if they are empty: [`rest`](IdleCpus::rest) | interrupts that CPU |
//! | 4 | takes its bit back: [`leave`](IdleCpus::leave) | |
//!
//! - IDLE-1 (no lost task): a CPU whose bit a producer does not find sees the task when it looks
//!   before its next halt; or, if another producer has taken the bit, before the halt after that,
//!   and the other's interrupt ends the first. Both sides cross a sequentially consistent fence
//!   between their two steps.
//! - IDLE-2 (no herd): a bit that a CPU has set is taken once, by one producer or by the CPU. So a
//!   claim wakes one CPU, and two claims wake two, or one that has gone idle again in between.
//! - IDLE-3 (no task waits for another): a CPU that was claimed, but has found a task by itself,
//!   may have been claimed for another task. It sees that task too, unless a CPU has taken it, and
//!   claims another CPU if tasks are left. That is the caller's step.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use antiphon_platform::{Atomic, AtomicInteger, Atomics};

use crate::machine::Machine;

const BITS: usize = u64::BITS as usize;

/// A word for 64 CPUs, on cache lines of its own.
#[repr(align(128))]
struct Group<A: Atomics>(A::U64);

/// The idle ones of up to `64 * WORDS` CPUs. CPUs that are near each other should have numbers that
/// are near.
pub struct IdleCpus<A: Atomics, const WORDS: usize>([Group<A>; WORDS]);

impl<A: Atomics, const WORDS: usize> IdleCpus<A, WORDS> {
    /// No CPU is idle.
    pub const NEW: Self = Self([const { Group(A::U64::ZERO) }; WORDS]);

    /// Announces that CPU `own`, the caller's, is idle. The caller then looks at the queues again.
    ///
    /// # Panics
    ///
    /// If the number is too large.
    pub fn enter(&self, own: usize) {
        // Relaxed: the fence orders it.
        self.0[own / BITS].0.fetch_or(1 << (own % BITS), Relaxed);
        // IDLE-1: pairs with the fence in `claim`.
        A::fence(SeqCst);
    }

    /// Announces that the caller's CPU is not idle any more. Returns whether a producer had claimed
    /// it, whose interrupt then comes, or has come. If so, what the producer did before happens
    /// before this returns.
    #[must_use]
    pub fn leave(&self, own: usize) -> bool {
        let bit = 1 << (own % BITS);
        // Acquire: IDLE-3, the task; pairs with the fence in `claim`.
        self.0[own / BITS].0.fetch_and(!bit, Acquire) & bit == 0
    }

    /// Waits until the caller's CPU is claimed or another interrupt comes, unless `ready` returns
    /// `true`: whether there is a task. Called with interrupts off. Returns whether the CPU was
    /// claimed; if so, and tasks are left when it has taken one, it claims another CPU (IDLE-3).
    #[must_use]
    pub fn rest<M>(&self, machine: &M, own: usize, ready: impl FnOnce() -> bool) -> bool
    where
        M: Machine<Words = A>,
    {
        self.enter(own);
        if !ready() {
            machine.halt();
        }
        self.leave(own)
    }

    /// Takes an idle CPU, which the caller then interrupts: one in the word of `near` if there is
    /// one. `None` if no CPU is idle: each one looks at the queues before it halts.
    pub fn claim(&self, near: usize) -> Option<usize> {
        // IDLE-1: pairs with the fence in `enter`. IDLE-3: pairs with the acquire in `leave`.
        A::fence(SeqCst);
        let words = 0..WORDS;
        words.map(|turn| (near / BITS + turn) % WORDS).find_map(|word| self.claim_in(word))
    }

    fn claim_in(&self, word: usize) -> Option<usize> {
        // Relaxed, here and below: the fence in `claim` orders what the caller has published.
        let mut seen = self.0[word].0.load(Relaxed);
        while seen != 0 {
            let bit = seen & seen.wrapping_neg();
            // IDLE-2.
            seen = self.0[word].0.fetch_and(!bit, Relaxed);
            if seen & bit != 0 {
                return Some(word * BITS + bit.trailing_zeros() as usize);
            }
        }
        None
    }
}

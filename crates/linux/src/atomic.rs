//! Atomic words: those of `core`, and waiting on them by spinning.
//!
//! `spin_while` loads the word once before anything else, so a word that is ready costs one load;
//! only then does it read the time-stamp counter and pause. See [`crate::spin`] for what ends it.
//! On a fiber it loads the word once and returns.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use antiphon_platform::{Atomic, Budget, CoreWord, Spins, Word};

use crate::fiber;
use crate::spin::{Patience, Spin};

/// An atomic byte.
pub type U8 = CoreWord<AtomicU8, Spinning>;
/// An atomic half word.
pub type U16 = CoreWord<AtomicU16, Spinning>;
/// An atomic word.
pub type U32 = CoreWord<AtomicU32, Spinning>;
/// An atomic double word.
pub type U64 = CoreWord<AtomicU64, Spinning>;

/// How a thread of Linux spins.
#[derive(Debug)]
pub struct Spinning;

impl Spins for Spinning {
    #[inline]
    fn wait_while<W: Word>(word: &impl Atomic<W>, order: Ordering, keep: impl Fn(W) -> bool) -> W {
        let first = word.load(order);
        if !keep(first) {
            return first;
        }
        let mut patience = Patience::new();
        loop {
            patience.watch(word);
            let now = word.load(order);
            if !keep(now) {
                return now;
            }
            patience.pause();
        }
    }

    #[inline]
    fn spin_while<W: Word>(
        word: &impl Atomic<W>,
        order: Ordering,
        budget: Budget,
        keep: impl Fn(W) -> bool,
    ) -> Result<W, W> {
        let first = word.load(order);
        if !keep(first) {
            return Ok(first);
        }
        // A fiber that spins keeps other fibers from its thread, perhaps the one that it waits for.
        if budget.ns == 0 || fiber::current().is_some() {
            return Err(first);
        }
        let (mut spin, mut more) = (Spin::new(budget), true);
        loop {
            spin.watch(word);
            let now = word.load(order);
            if !keep(now) {
                return Ok(now);
            }
            if !more {
                return Err(now);
            }
            more = spin.pause();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_platform::AtomicInteger as _;
    use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

    #[test]
    fn a_ready_word_needs_no_budget() {
        let word = U8::ZERO;
        assert_eq!(word.spin_while(Acquire, Budget::NONE, |value| value != 0), Ok(0));
        assert_eq!(word.spin_while(Acquire, Budget::NONE, |value| value == 0), Err(0));
    }

    #[test]
    fn a_spent_budget_returns_the_last_value() {
        let word = U32::ZERO;
        word.store(9, Relaxed);
        assert_eq!(word.spin_while(Acquire, Budget::ns(1000), |value| value == 9), Err(9));
    }

    #[test]
    fn waits_for_another_thread() {
        static WORD: U16 = U16::ZERO;
        let waiter = std::thread::spawn(|| WORD.wait_while(Acquire, |value| value < 3));
        for _ in 0..3 {
            std::thread::yield_now();
            WORD.fetch_add(1, Release);
        }
        assert_eq!(waiter.join().ok(), Some(3));
    }
}

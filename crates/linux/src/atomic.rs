//! Atomic words: those of `core`, and waiting on them by spinning.
//!
//! `spin_while` loads the word once before anything else, so a word that is ready costs one load;
//! only then does it read the time-stamp counter and pause. See [`crate::spin`] for what ends it.
//! On a fiber it loads the word once and returns.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use antiphon_platform::{Atomic, AtomicInteger, Budget};

use crate::fiber;
use crate::spin::{Patience, Spin};

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident($atomic:ident): $word:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name($atomic);

        impl Atomic<$word> for $name {
            const ZERO: Self = Self($atomic::new(0));

            #[inline]
            fn load(&self, order: Ordering) -> $word {
                self.0.load(order)
            }

            #[inline]
            fn store(&self, value: $word, order: Ordering) {
                self.0.store(value, order);
            }

            #[inline]
            fn swap(&self, value: $word, order: Ordering) -> $word {
                self.0.swap(value, order)
            }

            #[inline]
            fn compare_exchange(
                &self,
                current: $word,
                new: $word,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$word, $word> {
                self.0.compare_exchange(current, new, success, failure)
            }

            #[inline]
            fn wait_while(&self, order: Ordering, keep: impl Fn($word) -> bool) -> $word {
                let first = self.0.load(order);
                if !keep(first) {
                    return first;
                }
                let mut patience = Patience::new();
                loop {
                    patience.watch(&self.0);
                    let now = self.0.load(order);
                    if !keep(now) {
                        return now;
                    }
                    patience.pause();
                }
            }

            #[inline]
            fn spin_while(
                &self,
                order: Ordering,
                budget: Budget,
                keep: impl Fn($word) -> bool,
            ) -> Result<$word, $word> {
                let first = self.0.load(order);
                if !keep(first) {
                    return Ok(first);
                }
                // A fiber that spins keeps other fibers from its thread, perhaps the one that it
                // waits for.
                if budget.ns == 0 || fiber::current().is_some() {
                    return Err(first);
                }
                let (mut spin, mut more) = (Spin::new(budget), true);
                loop {
                    spin.watch(&self.0);
                    let now = self.0.load(order);
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

        impl AtomicInteger<$word> for $name {
            #[inline]
            fn fetch_add(&self, value: $word, order: Ordering) -> $word {
                self.0.fetch_add(value, order)
            }

            #[inline]
            fn fetch_sub(&self, value: $word, order: Ordering) -> $word {
                self.0.fetch_sub(value, order)
            }

            #[inline]
            fn fetch_or(&self, value: $word, order: Ordering) -> $word {
                self.0.fetch_or(value, order)
            }

            #[inline]
            fn fetch_and(&self, value: $word, order: Ordering) -> $word {
                self.0.fetch_and(value, order)
            }
        }
    )*};
}

words! {
    /// An atomic byte.
    U8(AtomicU8): u8;
    /// An atomic half word.
    U16(AtomicU16): u16;
    /// An atomic word.
    U32(AtomicU32): u32;
    /// An atomic double word.
    U64(AtomicU64): u64;
}

impl U32 {
    /// The word as a `core` atomic, for the kernel.
    #[inline]
    pub(crate) fn as_atomic(&self) -> &AtomicU32 {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

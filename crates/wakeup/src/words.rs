//! The atomic words of `core`, for kernels that have no platform of Antiphon.

use core::hint::spin_loop;
use core::sync::atomic::{self, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use antiphon_platform::{Atomic, AtomicInteger, Atomics, Budget};

/// The words of `core`. A wait of theirs spins: this crate waits only for handlers of other CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Words;

/// What a turn of a bounded spin counts for, in nanoseconds.
const TURN_NS: u32 = 10;

impl Atomics for Words {
    type U8 = Native<AtomicU8>;
    type U16 = Native<AtomicU16>;
    type U32 = Native<AtomicU32>;
    type U64 = Native<AtomicU64>;

    #[inline]
    fn fence(order: Ordering) {
        // mutant: the models have words of their own.
        atomic::fence(order);
    }
}

/// An atomic word of `core`.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Native<T>(T);

macro_rules! native {
    ($($core:ident, $word:ty;)*) => {$(
        impl Atomic<$word> for Native<$core> {
            const ZERO: Self = Self($core::new(0));

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
                loop {
                    let value = self.0.load(order);
                    if !keep(value) {
                        return value;
                    }
                    spin_loop();
                }
            }
            /// There is no clock here: a turn counts for ten nanoseconds.
            fn spin_while(
                &self,
                order: Ordering,
                budget: Budget,
                keep: impl Fn($word) -> bool,
            ) -> Result<$word, $word> {
                for _ in 0..budget.ns / TURN_NS {
                    let value = self.0.load(order);
                    if !keep(value) {
                        return Ok(value);
                    }
                    spin_loop();
                }
                let value = self.0.load(order);
                if keep(value) { Err(value) } else { Ok(value) }
            }
        }

        impl AtomicInteger<$word> for Native<$core> {
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

native! {
    AtomicU8, u8;
    AtomicU16, u16;
    AtomicU32, u32;
    AtomicU64, u64;
}

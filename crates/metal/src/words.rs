//! The atomic words of bare metal: those of `core`. A wait spins with `pause`, and after a while
//! lets the other threads of its CPU run: it may wait for one of them.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use antiphon_platform::{Atomic, AtomicInteger, Budget};

use crate::kernel::schedule;
use crate::x86::clock;
use crate::x86::cpu::tsc_unordered;

/// Spins until `look` returns a value, or until `budget` is spent.
#[inline]
fn spin<T>(budget: Budget, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    if let Some(found) = look() {
        return Some(found);
    }
    if budget.ns == 0 {
        return None;
    }
    let end = tsc_unordered() + clock::ticks(budget.ns.into());
    // With backoff, the time between two looks doubles each time, up to 1024 pauses.
    let mut pause = budget.backoff.map_or(1, |ns| ns.max(1));
    loop {
        for _ in 0..if budget.backoff.is_some() { pause.min(1 << 10) } else { 1 } {
            core::hint::spin_loop();
        }
        if let Some(found) = look() {
            return Some(found);
        }
        if tsc_unordered() >= end {
            return None;
        }
        pause = pause.saturating_mul(2);
    }
}

macro_rules! atomics {
    ($($name:ident, $core:ident, $word:ty;)*) => {$(
        /// An atomic word.
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name(pub(crate) $core);

        impl Atomic<$word> for $name {
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
                let look = || Some(self.0.load(order)).filter(|&value| !keep(value));
                loop {
                    if let Some(value) = spin(Budget::PATIENCE, look) {
                        return value;
                    }
                    schedule::yield_now();
                }
            }
            #[inline]
            fn spin_while(
                &self,
                order: Ordering,
                budget: Budget,
                keep: impl Fn($word) -> bool,
            ) -> Result<$word, $word> {
                let mut last = self.0.load(order);
                let found = spin(budget, || {
                    last = self.0.load(order);
                    (!keep(last)).then_some(last)
                });
                found.ok_or(last)
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

atomics! {
    U8, AtomicU8, u8;
    U16, AtomicU16, u16;
    U32, AtomicU32, u32;
    U64, AtomicU64, u64;
}

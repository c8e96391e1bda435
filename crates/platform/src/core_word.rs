//! The atomic words of `core`, for platforms that share memory as the processor does.
//!
//! Such platforms differ only in how a thread waits for a word: see [`Spins`].

use core::fmt;
use core::hint::spin_loop;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::{Atomic, AtomicInteger, Budget, Word};

/// How a platform waits for a word by spinning.
pub trait Spins: 'static {
    /// See [`Atomic::wait_while`].
    fn wait_while<W: Word>(word: &impl Atomic<W>, order: Ordering, keep: impl Fn(W) -> bool) -> W;

    /// See [`Atomic::spin_while`].
    ///
    /// # Errors
    ///
    /// The last value seen, when the budget is spent.
    fn spin_while<W: Word>(
        word: &impl Atomic<W>,
        order: Ordering,
        budget: Budget,
        keep: impl Fn(W) -> bool,
    ) -> Result<W, W>;
}

/// How threads spin where there is no clock: a turn counts for `NS` nanoseconds.
#[derive(Debug)]
pub struct Turns<const NS: u32>;

impl<const NS: u32> Spins for Turns<NS> {
    #[inline]
    fn wait_while<W: Word>(word: &impl Atomic<W>, order: Ordering, keep: impl Fn(W) -> bool) -> W {
        loop {
            let value = word.load(order);
            if !keep(value) {
                return value;
            }
            spin_loop();
        }
    }

    fn spin_while<W: Word>(
        word: &impl Atomic<W>,
        order: Ordering,
        budget: Budget,
        keep: impl Fn(W) -> bool,
    ) -> Result<W, W> {
        const { assert!(NS > 0, "a turn takes time") };
        for _ in 0..budget.ns / NS {
            let value = word.load(order);
            if !keep(value) {
                return Ok(value);
            }
            spin_loop();
        }
        let value = word.load(order);
        if keep(value) { Err(value) } else { Ok(value) }
    }
}

/// An atomic word `T` of `core`, for which threads wait as `S` says.
#[repr(transparent)]
pub struct CoreWord<T, S>(T, PhantomData<fn() -> S>);

impl<T, S> CoreWord<T, S> {
    /// The word as an atomic of `core`: for a kernel, or for the processor.
    #[inline]
    pub const fn get(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug, S> fmt::Debug for CoreWord<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! words {
    ($($atomic:ident: $word:ty;)*) => {$(
        impl<S: Spins> Atomic<$word> for CoreWord<$atomic, S> {
            const ZERO: Self = Self($atomic::new(0), PhantomData);

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
                S::wait_while(self, order, keep)
            }

            #[inline]
            fn spin_while(
                &self,
                order: Ordering,
                budget: Budget,
                keep: impl Fn($word) -> bool,
            ) -> Result<$word, $word> {
                S::spin_while(self, order, budget, keep)
            }
        }

        impl<S: Spins> AtomicInteger<$word> for CoreWord<$atomic, S> {
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
    AtomicU8: u8;
    AtomicU16: u16;
    AtomicU32: u32;
    AtomicU64: u64;
}

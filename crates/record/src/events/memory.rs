//! Abstraction of the shared memory of events, for mapped files and for the model checker.
//!
//! The protocol of the chunks is written once, over a [`Memory`]. [`Mapped`] is that of processes
//! which have mapped the file; the model checker has another, which runs the same lines in each
//! order that weak memory allows.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Shared memory: its types of words, and the ordering of their accesses.
pub trait Memory: 'static {
    /// A half word.
    type U32: Word<u32>;
    /// A word.
    type U64: Word<u64>;

    /// A fence, as `core::sync::atomic::fence`.
    fn fence(order: Ordering);
}

/// An atomic word, with the operations of `core`.
pub trait Word<T>: Sized {
    /// A word that holds zero.
    const ZERO: Self;

    /// Loads the value.
    fn load(&self, order: Ordering) -> T;

    /// Stores a value.
    fn store(&self, value: T, order: Ordering);

    /// Stores `new` if the word holds `current`.
    ///
    /// # Errors
    ///
    /// The value that the word held instead.
    fn compare_exchange(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T>;

    /// Adds with wrap-around; returns the previous value.
    fn fetch_add(&self, value: T, order: Ordering) -> T;
}

/// Memory that processes have mapped.
#[derive(Clone, Copy, Debug)]
pub enum Mapped {}

impl Memory for Mapped {
    type U32 = AtomicU32;
    type U64 = AtomicU64;

    #[inline]
    fn fence(order: Ordering) {
        fence(order);
    }
}

macro_rules! words {
    ($($atomic:ident: $value:ty;)*) => {$(
        impl Word<$value> for $atomic {
            const ZERO: Self = Self::new(0);

            #[inline]
            fn load(&self, order: Ordering) -> $value {
                self.load(order)
            }

            #[inline]
            fn store(&self, value: $value, order: Ordering) {
                self.store(value, order);
            }

            #[inline]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            #[inline]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.fetch_add(value, order)
            }
        }
    )*};
}

words! {
    AtomicU32: u32;
    AtomicU64: u64;
}

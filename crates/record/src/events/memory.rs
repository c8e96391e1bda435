//! The words that writers and readers of events have in common.
//!
//! The protocol of the chunks is written once, over a [`Memory`]: that of processes which have
//! mapped the file is [`Mapped`], and the model checker has another, which goes through the same
//! lines in each order that weak memory allows.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Memory that is shared: what its words are, and how they are ordered.
pub trait Memory: 'static {
    /// A half word.
    type U32: Word<u32>;
    /// A word.
    type U64: Word<u64>;

    /// A fence, as that of `core`.
    fn fence(order: Ordering);
}

/// An atomic word; everything is as in `core`.
pub trait Word<T>: Sized {
    /// A word that holds zero.
    const ZERO: Self;

    /// Reads it.
    fn load(&self, order: Ordering) -> T;

    /// Writes it.
    fn store(&self, value: T, order: Ordering);

    /// Writes `new` if it holds `current`.
    ///
    /// # Errors
    ///
    /// The value that it held instead.
    fn compare_exchange(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T>;

    /// Adds, and wraps around; returns what it held before.
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

//! Atomic words, and waiting on them.

use core::fmt::Debug;
use core::sync::atomic::Ordering;

use crate::Budget;

/// A type that fits in an atomic word.
pub trait Word: Copy + Eq + Debug + 'static {}

impl Word for u8 {}
impl Word for u16 {}
impl Word for u32 {}
impl Word for u64 {}

/// One atomic word of a platform.
///
/// Orderings are those of `core::sync::atomic`, except that no access may be `SeqCst`: use
/// [`Atomics::fence`](crate::Atomics::fence).
pub trait Atomic<W: Word>: Send + Sync + Sized + 'static {
    /// The word that holds zero: the unlocked and empty state of everything.
    const ZERO: Self;

    /// Reads the word. `order` is `Relaxed` or `Acquire`.
    fn load(&self, order: Ordering) -> W;

    /// Writes the word. `order` is `Relaxed` or `Release`.
    fn store(&self, value: W, order: Ordering);

    /// Writes the word and returns what it held.
    fn swap(&self, value: W, order: Ordering) -> W;

    /// Writes `new` if the word holds `current`; never fails spuriously. Returns the old value.
    ///
    /// # Errors
    ///
    /// Returns the value that the word held instead.
    fn compare_exchange(
        &self,
        current: W,
        new: W,
        success: Ordering,
        failure: Ordering,
    ) -> Result<W, W>;

    /// Spins until `keep` is false for the value of the word, and returns that value.
    ///
    /// `keep` must be a pure function of its argument. The wait is unbounded: use it only where the
    /// thread that will change the word is known to run soon.
    fn wait_while(&self, order: Ordering, keep: impl Fn(W) -> bool) -> W;

    /// Spins until `keep` is false for the value of the word or the budget is spent.
    ///
    /// # Errors
    ///
    /// When the budget is spent, returns the last value seen, for which `keep` still holds.
    fn spin_while(&self, order: Ordering, budget: Budget, keep: impl Fn(W) -> bool)
    -> Result<W, W>;
}

/// Atomic arithmetic. Each function returns the previous value of the word and wraps around.
pub trait AtomicInteger<W: Word>: Atomic<W> {
    /// Adds.
    fn fetch_add(&self, value: W, order: Ordering) -> W;
    /// Subtracts.
    fn fetch_sub(&self, value: W, order: Ordering) -> W;
    /// Sets the bits of `value`.
    fn fetch_or(&self, value: W, order: Ordering) -> W;
    /// Clears the bits that are not in `value`.
    fn fetch_and(&self, value: W, order: Ordering) -> W;
}

/// The atomic words of a platform, and its fences.
pub trait Atomics: Sized + 'static {
    /// An atomic byte.
    type U8: AtomicInteger<u8>;
    /// An atomic half word.
    type U16: AtomicInteger<u16>;
    /// An atomic word.
    type U32: AtomicInteger<u32>;
    /// An atomic double word.
    type U64: AtomicInteger<u64>;

    /// A memory fence. `SeqCst` here is the only sequentially consistent operation of the seam.
    fn fence(order: Ordering);
}

//! The project's locks. A free lock is all zero bits; no lock allocates memory or registers itself.

pub(crate) mod shfl;

pub use shfl::{Central, GroupReaders, GroupWriters, MAX_READERS, PerSocket, Recursive, Refused};
pub use shfl::{Form, Moved, Published, ShflMutex, ShflOwned, ShflSpin, Standard};
pub use shfl::{RwForm, Seat, ShflRwLock};

/// The operations of every lock: benchmarks, models and the validation program are written against
/// them.
///
/// # Safety
///
/// `unlock` must release what `lock` or a successful `try_lock` acquired, with the memory ordering
/// that mutual exclusion needs: what one owner did happens before what the next one does.
pub unsafe trait Lock: Send + Sync + 'static {
    /// A free lock.
    const NEW: Self;
    /// Acquires the lock; blocks until the caller has it.
    fn lock(&self);
    /// Acquires the lock if it is free; never blocks.
    fn try_lock(&self) -> bool;
    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// The lock is held, and the caller may release it. The lock's memory may be gone as soon as
    /// another owner has acquired it.
    unsafe fn unlock(&self);
}

/// Implements [`Lock`] by the inherent methods of the same names; with `writer:` in front, by the
/// write methods of a readers-writer lock. Takes the word `unsafe`, because [`Lock`] is unsafe.
///
/// Exported for the locks of `antiphon-rivals`.
#[doc(hidden)]
#[macro_export]
macro_rules! impl_lock {
    (unsafe [$($parameters:tt)*] $lock:ty) => {
        $crate::impl_lock!(unsafe lock, try_lock, unlock: [$($parameters)*] $lock);
    };
    (unsafe writer: [$($parameters:tt)*] $lock:ty) => {
        $crate::impl_lock!(unsafe write, try_write, unlock_write: [$($parameters)*] $lock);
    };
    (unsafe $take:ident, $try:ident, $give:ident: [$($parameters:tt)*] $lock:ty) => {
        // SAFETY: the caller of the macro wrote `unsafe`. The inherent methods are the lock's own,
        // and the lock's file argues that they exclude each other.
        unsafe impl<$($parameters)*> $crate::lock::Lock for $lock {
            const NEW: Self = Self::NEW;
            #[inline]
            fn lock(&self) {
                self.$take();
            }
            #[inline]
            fn try_lock(&self) -> bool {
                self.$try()
            }
            #[inline]
            unsafe fn unlock(&self) {
                // SAFETY: the caller's promise is the same.
                unsafe { self.$give() }
            }
        }
    };
}
pub(crate) use impl_lock;

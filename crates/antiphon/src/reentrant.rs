//! A mutex that its owner may lock again (a reentrant or recursive mutex).

use core::num::NonZeroUsize;
use core::ptr::NonNull;

use antiphon_linux::Linux;
use antiphon_platform::Platform;

use crate::fiber::identity;
use crate::mutex::RawMutex;

/// A mutex that the thread or [fiber](crate::fiber) that holds it may lock again. It is
/// `lock_api`'s type over [`RawMutex`], and takes 24 bytes. All guards of one owner refer to the
/// same value, so a guard gives only `&T`.
///
/// ```
/// use antiphon::ReentrantMutex;
/// use std::cell::Cell;
///
/// static DEPTH: ReentrantMutex<Cell<u32>> = ReentrantMutex::new(Cell::new(0));
///
/// fn descend(levels: u32) {
///     let depth = DEPTH.lock();
///     depth.set(depth.get() + 1);
///     if levels > 1 {
///         descend(levels - 1);
///     }
/// }
/// descend(3);
/// assert_eq!(DEPTH.lock().get(), 3);
/// ```
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, ThreadIdentity, T>;
/// The guard that [`ReentrantMutex::lock`] returns. It unlocks when dropped, and cannot be sent to
/// another thread.
pub type ReentrantMutexGuard<'a, T> =
    lock_api::ReentrantMutexGuard<'a, RawMutex, ThreadIdentity, T>;

/// Identifies owners for [`ReentrantMutex`]. A thread is identified by the address of its
/// thread-local state. A task that is a [fiber](crate::fiber) is identified by a number that no
/// other task ever has, so that the lock of a forgotten guard never gets another owner. Fibers of
/// another runtime on one thread count as one owner.
///
/// The kernel's thread id can't be used: the thread that survives a fork gets a new id, and must
/// still own its locks.
#[derive(Debug)]
pub struct ThreadIdentity(());

// SAFETY: each live thread has its own state, at a constant, even address; the number of a task is
// odd, and belongs to that task for ever, on any thread.
unsafe impl lock_api::GetThreadId for ThreadIdentity {
    const INIT: Self = Self(());

    #[inline]
    fn nonzero_thread_id(&self) -> NonZeroUsize {
        identity().unwrap_or_else(|| Linux::local(|local| NonNull::from(local).addr()))
    }
}

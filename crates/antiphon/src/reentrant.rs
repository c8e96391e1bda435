//! A mutex that its owner may lock again.

use core::num::NonZeroUsize;
use core::ptr::NonNull;

use antiphon_linux::Linux;
use antiphon_platform::Platform;

use crate::RawMutex;
use crate::fiber::identity;

/// A mutex that the thread, or [fiber](crate::fiber), which holds it may lock again: `lock_api`'s
/// type over [`RawMutex`], 24 bytes. What it guards is shared by the guards of one owner, so they
/// give `&T` only.
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
/// What [`ReentrantMutex::lock`] returns; unlocks when dropped. Stays on its thread.
pub type ReentrantMutexGuard<'a, T> =
    lock_api::ReentrantMutexGuard<'a, RawMutex, ThreadIdentity, T>;

/// Tells owners apart, for [`ReentrantMutex`]: threads by the place of their thread-local state,
/// and tasks that are [fibers](crate::fiber) by a number that no other task has, before or after: a
/// guard that was forgotten is nobody's. Fibers of another runtime on one thread are one owner.
///
/// The kernel's id would not do: the thread that survives a fork gets another one, and must still
/// own what it has locked.
#[derive(Debug)]
pub struct ThreadIdentity(());

// SAFETY: threads that are alive have each their own state, at a place that stays and is even; a
// number of a task's is odd, and is that task's for good, on whichever thread.
unsafe impl lock_api::GetThreadId for ThreadIdentity {
    const INIT: Self = Self(());

    #[inline]
    fn nonzero_thread_id(&self) -> NonZeroUsize {
        identity().unwrap_or_else(|| Linux::local(|local| NonNull::from(local).addr()))
    }
}

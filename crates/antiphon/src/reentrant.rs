//! A mutex that its owner may lock again.

use core::num::NonZeroUsize;
use core::ptr::NonNull;

use antiphon_linux::Linux;
use antiphon_platform::Platform;

use crate::RawMutex;

/// A mutex that the thread which holds it may lock again: `lock_api`'s type over [`RawMutex`], 24
/// bytes. What it guards is shared by the guards of one thread, so they give `&T` only.
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

/// Tells threads apart, for [`ReentrantMutex`]: by the place of their thread-local state.
///
/// The kernel's id would not do: the thread that survives a fork gets another one, and must still
/// own what it has locked. Fibers of one thread are one owner.
#[derive(Debug)]
pub struct ThreadIdentity(());

// SAFETY: threads that are alive have each their own state, at a place that stays.
unsafe impl lock_api::GetThreadId for ThreadIdentity {
    const INIT: Self = Self(());

    #[inline]
    fn nonzero_thread_id(&self) -> NonZeroUsize {
        Linux::local(|local| NonNull::from(local).addr())
    }
}

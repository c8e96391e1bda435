//! Mutexes of `std` that are not poisoned for their users here: the values that they guard are
//! whole between any two steps, even if a thread has panicked with one.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks it. Blocks the thread, of a fiber, too.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

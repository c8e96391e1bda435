//! Mutexes of `std`, whoever has panicked with one: what they guard here is whole between any two
//! steps.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks it. Blocks the thread, of a fiber, too.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

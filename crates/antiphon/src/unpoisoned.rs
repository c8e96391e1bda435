//! Locking of `std` mutexes without poisoning: the guarded values are consistent after each step,
//! even if a thread has panicked with a guard.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. Blocks the thread, also if the caller is a fiber.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Guards that own an `Arc` of their lock.

use crate::mutex::RawMutex;
use crate::reentrant::ThreadIdentity;
use crate::rw::RawRwLock;

/// The guard that [`Mutex::lock_arc`](crate::Mutex::lock_arc) returns.
///
/// ```
/// use std::sync::Arc;
/// use antiphon::Mutex;
/// use antiphon::guard::ArcMutexGuard;
///
/// fn locked() -> ArcMutexGuard<u32> {
///     Arc::new(Mutex::new(5)).lock_arc()
/// }
/// assert_eq!(*locked(), 5);
/// ```
pub type ArcMutexGuard<T> = lock_api::ArcMutexGuard<RawMutex, T>;
/// The guard that [`RwLock::read_arc`](crate::RwLock::read_arc) returns.
pub type ArcRwLockReadGuard<T> = lock_api::ArcRwLockReadGuard<RawRwLock, T>;
/// The guard that [`RwLock::write_arc`](crate::RwLock::write_arc) returns.
pub type ArcRwLockWriteGuard<T> = lock_api::ArcRwLockWriteGuard<RawRwLock, T>;
/// The guard that [`RwLock::upgradable_read_arc`](crate::RwLock::upgradable_read_arc) returns.
pub type ArcRwLockUpgradableReadGuard<T> = lock_api::ArcRwLockUpgradableReadGuard<RawRwLock, T>;
/// The guard that [`ReentrantMutex::lock_arc`](crate::ReentrantMutex::lock_arc) returns.
pub type ArcReentrantMutexGuard<T> = lock_api::ArcReentrantMutexGuard<RawMutex, ThreadIdentity, T>;

//! The locks of the crate's first page, as types of `lock_api`.

use antiphon_sync::lock::Recursive;

use crate::condvar::RawCondvar;
use crate::mutex::{RawMutex, RawSpin};
use crate::rw::RawRwLock;

/// A blocking mutex: [`ShflMutex`](antiphon_sync::lock::ShflMutex) on Linux.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// The guard that [`Mutex::lock`] returns; unlocks when dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// A condition variable for [`Mutex`]: `lock_api`'s type over [`RawCondvar`].
///
/// ```
/// use antiphon::{Condvar, Mutex};
///
/// static READY: Mutex<bool> = Mutex::new(false);
/// static CHANGED: Condvar = Condvar::new();
///
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         *READY.lock() = true;
///         CHANGED.notify_one();
///     });
///     let mut ready = READY.lock();
///     CHANGED.wait_while(&mut ready, |ready| !*ready);
/// });
/// ```
pub type Condvar = lock_api::Condvar<RawCondvar>;
/// A spinlock, for critical sections well under a microsecond:
/// [`ShflSpin`](antiphon_sync::lock::ShflSpin).
pub type SpinMutex<T> = lock_api::Mutex<RawSpin, T>;
/// A blocking readers-writer lock: [`ShflRwLock`](antiphon_sync::lock::ShflRwLock) on Linux.
///
/// Readers wait behind a waiting writer, so a thread that reads already must not read again.
///
/// ```
/// static NAMES: antiphon::RwLock<Vec<&str>> = antiphon::RwLock::new(Vec::new());
///
/// let mut names = NAMES.write();
/// names.push("reader");
/// let names = antiphon::RwLockWriteGuard::downgrade(names);
/// assert_eq!(*names, ["reader"]);
/// ```
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// The guard that [`RwLock::read`] returns; unlocks when dropped.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// The guard that [`RwLock::write`] returns; unlocks when dropped.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
/// A readers-writer lock that a thread may read-lock again while it holds it for reading, even if a
/// writer waits. In return, readers that overlap without a gap keep writers out.
///
/// ```
/// use antiphon::RecursiveRwLock;
///
/// static PARENT: RecursiveRwLock<[usize; 3]> = RecursiveRwLock::new([0, 0, 1]);
///
/// fn depth(node: usize) -> u32 {
///     let parent = PARENT.read();
///     if node == 0 { 0 } else { 1 + depth(parent[node]) }
/// }
/// assert_eq!(depth(2), 2);
/// ```
pub type RecursiveRwLock<T> = lock_api::RwLock<RawRwLock<Recursive>, T>;

//! Locks, a condition variable, a semaphore, a barrier, an event, a latch and a broadcast for
//! memory that several processes share.
//!
//! The types of `antiphon` work among the threads of one process. These types are one or two words
//! each, contain no pointers, and wait in the kernel. They are a little slower under contention,
//! and arriving threads may overtake sleepers. They block threads, not fibers.
//!
//! **In signal handlers** every method that does not wait may be called, because none takes a lock:
//! [`Event::set`] and [`try_wait`](Event::try_wait), [`Latch::count_down`], [`Broadcast::send`],
//! [`Semaphore::release`] and [`try_acquire`](Semaphore::try_acquire), [`Condvar::notify_one`]. The
//! types of `antiphon`, its event included, must not be used there; use a `static` of one of these
//! types instead. A `fork` during such a call leaves nothing locked.
//!
//! Memory that is all zero holds a free mutex or readers-writer lock around zeros, a condition
//! variable, a semaphore without permits, a barrier for one thread, an event that is not set, a
//! latch that counts from 1, and a broadcast without sends. A process that maps the memory gets a
//! reference by [`Shared::from_ptr`]:
//!
//! ```
//! use antiphon_shared::{Mutex, Shared};
//!
//! // A counter in memory that a child process has too.
//! # let bytes = size_of::<Mutex<u64>>();
//! # // SAFETY: a fresh mapping.
//! let page = unsafe {
//!     libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE,
//!                libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0)
//! };
//! # assert_ne!(page, libc::MAP_FAILED);
//! // SAFETY: mapped, shared, all zero, and never unmapped.
//! let count: &Mutex<u64> = unsafe { Shared::from_ptr(page.cast()) };
//! match count.lock() {
//!     Ok(mut count) => *count += 1,
//!     // A process was killed in the middle: say what the value is now.
//!     Err(died) => *died.recover() = 0,
//! }
//! ```

mod barrier;
mod broadcast;
mod event;
mod latch;
mod rwlock;

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_platform::Deadline;
use antiphon_sync::shared::{Acquired, SharedCondvar, SharedMutex, SharedSemaphore};

use antiphon_sync::wait;
pub use antiphon_sync::wait::TooManyPermits;
pub use barrier::{Barrier, BarrierWaitResult};
pub use broadcast::{Broadcast, Generation};
pub use event::Event;
pub use latch::Latch;
pub use rwlock::{ReadGuard, RwLock, WriteGuard, WriterDied};

fn deadline_after(timeout: Duration) -> Deadline {
    Deadline::after::<Linux>(timeout)
}

mod sealed {
    pub trait Sealed {}
    impl<T> Sealed for super::Mutex<T> {}
    impl Sealed for super::Condvar {}
    impl Sealed for super::Semaphore {}
    impl<T> Sealed for super::RwLock<T> {}
    impl Sealed for super::Barrier {}
    impl Sealed for super::Event {}
    impl Sealed for super::Latch {}
    impl Sealed for super::Broadcast {}
}

/// Types that may be placed in memory that processes share.
pub trait Shared: sealed::Sealed + Sized {
    /// Returns a reference to the value at `pointer`, for any lifetime the caller chooses.
    ///
    /// # Safety
    ///
    /// - `pointer` is aligned for `Self`, and its memory is mapped, readable and writable, for all
    ///   of `'a`.
    /// - The memory is all zero, with zeros a valid value; or a process has written a `Self` there
    ///   before any other process used it. All processes use it as the same type.
    /// - Only the methods of `Self` access it.
    /// - A value in it has the same meaning in each process: it holds no pointers, handles or
    ///   references.
    /// - The processes are in one PID namespace.
    /// - For a [`Mutex`] or [`RwLock`]: the contract of [`Mutex::new`] or [`RwLock::new`] holds.
    unsafe fn from_ptr<'a>(pointer: *mut Self) -> &'a Self {
        // SAFETY: the caller's promise.
        unsafe { &*pointer }
    }
}

impl<T> Shared for Mutex<T> {}
impl Shared for Condvar {}
impl Shared for Semaphore {}
impl<T> Shared for RwLock<T> {}
impl Shared for Barrier {}

/// A process-shared mutex, with 4 bytes in addition to its value.
///
/// It detects that a thread or process has died while it held the mutex, within a fraction of a
/// second, unless the kernel has reused the id of that thread. The next waiter then owns the mutex,
/// and gets [`OwnerDied`].
#[repr(C)]
pub struct Mutex<T> {
    raw: SharedMutex<Linux>,
    value: UnsafeCell<T>,
}

// SAFETY: only the owner accesses the value.
unsafe impl<T: Send> Sync for Mutex<T> {}

/// The guard that [`Mutex::lock`] returns; it unlocks when dropped. The owner is the thread that
/// has locked.
#[must_use = "a mutex is unlocked when its guard is dropped"]
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// Only the owner unlocks.
    thread: PhantomData<*const ()>,
}

/// The mutex is locked, and an earlier owner has died while it held it: the value may be half
/// changed.
///
/// Each owner gets this error until one states that the value is whole, by
/// [`recover`](Self::recover).
#[must_use = "the mutex is held, and its value may be inconsistent"]
pub struct OwnerDied<'a, T>(MutexGuard<'a, T>);

/// A guard, or the error that an owner has died, which contains the guard.
pub type Locked<'a, T> = Result<MutexGuard<'a, T>, OwnerDied<'a, T>>;

impl<T> Mutex<T> {
    /// Creates a free mutex, to be written into shared memory.
    ///
    /// ```compile_fail,E0133
    /// // A thread could leak a guard, hand out what it leads to, and end.
    /// static MUTEX: antiphon_shared::Mutex<u64> = antiphon_shared::Mutex::new(0);
    /// ```
    ///
    /// # Safety
    ///
    /// When a thread that has locked the mutex has ended, nothing may use a reference that the
    /// thread had from a guard (which it must have leaked): other threads may own the mutex from
    /// then on.
    pub const unsafe fn new(value: T) -> Self {
        Self { raw: SharedMutex::NEW, value: UnsafeCell::new(value) }
    }

    /// Acquires the mutex; blocks until it is free. Deadlocks if the caller already owns it.
    ///
    /// # Errors
    ///
    /// [`OwnerDied`], which holds the locked mutex.
    pub fn lock(&self) -> Locked<'_, T> {
        self.guard(self.raw.lock())
    }

    /// Acquires the mutex if it is free; never blocks. A mutex whose owner has died becomes free
    /// only when some thread has waited for it.
    pub fn try_lock(&self) -> Option<Locked<'_, T>> {
        self.raw.try_lock().map(|acquired| self.guard(acquired))
    }

    /// Acquires the mutex, or gives up after `timeout`.
    pub fn try_lock_for(&self, timeout: Duration) -> Option<Locked<'_, T>> {
        self.raw.lock_until(deadline_after(timeout)).map(|acquired| self.guard(acquired))
    }

    fn guard(&self, acquired: Acquired) -> Locked<'_, T> {
        let guard = MutexGuard { mutex: self, thread: PhantomData };
        match acquired {
            Acquired::Whole => Ok(guard),
            Acquired::OwnerDied => Err(OwnerDied(guard)),
        }
    }
}

impl<'a, T> OwnerDied<'a, T> {
    /// Returns the guard, for a value that the caller repairs or has found whole: later owners do
    /// not get this error.
    pub fn recover(self) -> MutexGuard<'a, T> {
        self.0.mutex.raw.recovered();
        self.0
    }

    /// Returns the guard. The next owner gets this error again.
    pub fn into_guard(self) -> MutexGuard<'a, T> {
        self.0
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread owns the mutex as long as the thread lives, and the creator of the
        // mutex has promised that the reference is not used for longer.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and no other code borrows the guard.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: this thread has acquired the mutex, because guards are not sent to other threads.
        unsafe { self.mutex.raw.unlock() }
    }
}

/// A condition variable that processes share, for a [`Mutex`]; 8 bytes.
///
/// Each notification wakes all waiters, so use it where few threads wait. It must outlive each
/// wait.
#[repr(transparent)]
pub struct Condvar(SharedCondvar<Linux>);

impl Condvar {
    /// Creates a condition variable without waiters, to be written into shared memory.
    #[must_use]
    pub const fn new() -> Self {
        Self(SharedCondvar::NEW)
    }

    /// Unlocks the mutex, waits for a notification, and locks the mutex again. May return without a
    /// notification.
    ///
    /// # Errors
    ///
    /// [`OwnerDied`], which holds the locked mutex.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> Locked<'a, T> {
        self.wait_until(guard, None).0
    }

    /// Waits like [`wait`](Self::wait), but gives up after `timeout`. Returns the guard, and
    /// whether a notification came.
    pub fn wait_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> (Locked<'a, T>, bool) {
        self.wait_until(guard, Some(timeout))
    }

    fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Option<Duration>,
    ) -> (Locked<'a, T>, bool) {
        let mutex = guard.mutex;
        // `wait` unlocks and locks the mutex itself.
        std::mem::forget(guard);
        // SAFETY: the guard proves that this thread owns the mutex.
        let (acquired, notified) = unsafe { self.0.wait(&mutex.raw, timeout.map(deadline_after)) };
        (mutex.guard(acquired), notified)
    }

    /// Wakes one waiter, and perhaps others.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

/// A process-shared semaphore, 8 bytes. A permit that a killed process has acquired is lost.
#[repr(transparent)]
pub struct Semaphore(SharedSemaphore<Linux>);

impl Semaphore {
    /// The largest number of permits.
    pub const MAX_PERMITS: u32 = wait::MAX_PERMITS;

    /// Creates a semaphore with `permits` permits, to be written into shared memory.
    ///
    /// # Panics
    ///
    /// If `permits` is above [`MAX_PERMITS`](Self::MAX_PERMITS).
    #[must_use]
    pub const fn new(permits: u32) -> Self {
        Self(SharedSemaphore::new(permits))
    }

    /// Acquires a permit; blocks until there is one.
    pub fn acquire(&self) {
        self.0.acquire();
    }

    /// Acquires a permit if one is free; returns whether it did. Never blocks.
    #[must_use]
    pub fn try_acquire(&self) -> bool {
        self.0.try_acquire()
    }

    /// Acquires a permit, or gives up after `timeout`. Returns whether it has one.
    #[must_use]
    pub fn try_acquire_for(&self, timeout: Duration) -> bool {
        self.0.acquire_until(deadline_after(timeout))
    }

    /// Releases permits, whichever thread or process acquired them; never blocks.
    ///
    /// # Errors
    ///
    /// [`TooManyPermits`] if there would be more than [`MAX_PERMITS`](Self::MAX_PERMITS); then
    /// none is released.
    pub fn release(&self, permits: u32) -> Result<(), TooManyPermits> {
        self.0.release(permits)
    }

    /// The number of free permits. It may be out of date at once.
    #[must_use]
    pub fn available_permits(&self) -> u32 {
        self.0.permits()
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").field("is_locked", &self.raw.is_locked()).finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> fmt::Debug for OwnerDied<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnerDied").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for OwnerDied<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an owner of the mutex has died while it held the mutex")
    }
}

impl<T> std::error::Error for OwnerDied<'_, T> {}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let permits = self.available_permits();
        f.debug_struct("Semaphore").field("available_permits", &permits).finish()
    }
}

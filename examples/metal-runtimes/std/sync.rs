//! Locks and waits: Antiphon's, on the kernel. No lock is ever poisoned, because a panic ends the
//! image.

use core::cell::UnsafeCell;
use core::convert::Infallible;
use core::fmt;
use core::ops::{Deref, DerefMut};

use antiphon_metal::Metal;
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::wait;

pub use core::sync::atomic;
pub use memory::sync::{Arc, Weak};

/// The result of locking, which does not fail.
pub type LockResult<G> = Result<G, Infallible>;

/// A mutex around a value.
pub struct Mutex<T> {
    lock: ShflMutex<Metal>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is touched with the lock held.
unsafe impl<T: Send> Sync for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Mutex<T> {}

/// A mutex that is held. It stays on its thread.
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    owner: core::marker::PhantomData<*const ()>,
}

impl<T> Mutex<T> {
    /// Puts a mutex around a value.
    pub const fn new(value: T) -> Self {
        Self { lock: ShflMutex::NEW, value: UnsafeCell::new(value) }
    }

    /// Locks it.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.lock.lock();
        Ok(MutexGuard { mutex: self, owner: core::marker::PhantomData })
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: locked by `lock`.
        unsafe { self.mutex.lock.unlock() };
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

/// A condition variable.
pub struct Condvar(wait::Condvar<Metal>);

impl Condvar {
    /// One that no thread waits for.
    pub const fn new() -> Self {
        Self(wait::Condvar::NEW)
    }

    /// Unlocks the mutex, waits until notified, and locks it again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        // SAFETY: the guard says that the caller holds it.
        unsafe { self.0.wait_with(&guard.mutex.lock, None) };
        Ok(guard)
    }

    /// Waits while `condition` holds.
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// Wakes a waiter, if there is one.
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

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condvar")
    }
}

/// A place where threads meet.
pub struct Barrier(wait::Barrier<Metal>);

impl Barrier {
    /// A barrier for `members` threads.
    ///
    /// # Panics
    ///
    /// If these are more than 2³² − 1.
    #[must_use]
    pub fn new(members: usize) -> Self {
        Self(wait::Barrier::new(u32::try_from(members).expect("fewer members")))
    }

    /// Waits until all members have called this.
    pub fn wait(&self) {
        self.0.wait();
    }
}

/// A value that is made once.
pub struct OnceLock<T> {
    once: wait::Once<Metal>,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is written by the one that `once` lets through, and read after that.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// Without a value.
    #[expect(clippy::new_without_default, reason = "the runtimes ask for no other")]
    pub const fn new() -> Self {
        Self { once: wait::Once::NEW, value: UnsafeCell::new(None) }
    }

    /// Sets the value; gives it back if there is one.
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.get_or_init(|| value.take().expect("called once"));
        value.map_or(Ok(()), Err)
    }

    /// Returns the value, which `make` makes if there is none.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        // SAFETY: `once` lets one through, and no one has read it.
        self.once.call_once(|| unsafe { *self.value.get() = Some(make()) });
        // SAFETY: written before, and never again.
        unsafe { &*self.value.get() }.as_ref().expect("it was made")
    }
}

/// Something that is done once.
pub struct Once(wait::Once<Metal>);

impl Once {
    /// Not done yet.
    #[expect(clippy::new_without_default, reason = "the runtimes ask for no other")]
    pub const fn new() -> Self {
        Self(wait::Once::NEW)
    }

    /// Does it, unless it was done; returns when it is.
    pub fn call_once(&self, f: impl FnOnce()) {
        self.0.call_once(f);
    }

    /// Whether it was done.
    pub fn is_completed(&self) -> bool {
        self.0.is_completed()
    }
}

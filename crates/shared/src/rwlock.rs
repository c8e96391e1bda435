//! A process-shared readers-writer lock.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_sync::shared::{Acquired, SharedRwLock};

use crate::deadline_after;

/// A process-shared readers-writer lock, with 4 bytes in addition to its value. It prefers writers:
/// readers wait behind a waiting writer, for a twentieth of a second.
///
/// It detects that a thread or process has died while it held the lock for writing, as a
/// [`Mutex`](super::Mutex) does; the next waiter then gets the lock, with [`WriterDied`]. **Readers
/// are not recorded: a killed reader stays counted, and no thread can write any more.** If readers
/// may be killed, use a mutex, or write with a timeout.
#[repr(C)]
pub struct RwLock<T> {
    raw: SharedRwLock<Linux>,
    value: UnsafeCell<T>,
}

// SAFETY: a writer has the value exclusively, and passes it to the next writer; readers share it.
unsafe impl<T: Send + Sync> Sync for RwLock<T> {}

/// The guard that [`RwLock::read`] returns; it unlocks when dropped, in any thread.
#[must_use = "the lock is left when its guard is dropped"]
pub struct ReadGuard<'a, T> {
    lock: &'a RwLock<T>,
}

/// The guard that [`RwLock::write`] returns; it unlocks when dropped. The writer is the thread that
/// has locked.
#[must_use = "the lock is left when its guard is dropped"]
pub struct WriteGuard<'a, T> {
    lock: &'a RwLock<T>,
    /// Only the writer unlocks.
    thread: PhantomData<*const ()>,
}

/// The lock is held by this guard, and an earlier writer has died: the value may be half changed.
///
/// Each acquisition gets this error until a writer states that the value is whole, by
/// [`recover`](Self::recover).
#[must_use = "the lock is held, and its value may be inconsistent"]
pub struct WriterDied<G>(G);

impl<T> RwLock<T> {
    /// Creates a free lock, to be written into shared memory.
    ///
    /// ```compile_fail,E0133
    /// // A thread could leak a guard, hand out what it leads to, and end.
    /// static LOCK: antiphon_shared::RwLock<u64> = antiphon_shared::RwLock::new(0);
    /// ```
    ///
    /// # Safety
    ///
    /// When a thread that holds the lock for writing has ended, nothing may use a reference that
    /// the thread had from a guard (which it must have leaked): other threads may get the lock from
    /// then on.
    pub const unsafe fn new(value: T) -> Self {
        Self { raw: SharedRwLock::NEW, value: UnsafeCell::new(value) }
    }

    /// Acquires the lock to read; blocks until it is free for readers. A writer that calls this
    /// deadlocks.
    ///
    /// # Errors
    ///
    /// [`WriterDied`], which holds the lock.
    pub fn read(&self) -> Result<ReadGuard<'_, T>, WriterDied<ReadGuard<'_, T>>> {
        self.reads(self.raw.read())
    }

    /// Acquires the lock to read if it is free, or only readers hold it and no writer waits; never
    /// blocks. A lock whose writer has died becomes free only when some thread has waited for it.
    pub fn try_read(&self) -> Option<Result<ReadGuard<'_, T>, WriterDied<ReadGuard<'_, T>>>> {
        self.raw.try_read().map(|acquired| self.reads(acquired))
    }

    /// Acquires the lock to read, or gives up after `timeout`.
    pub fn try_read_for(
        &self,
        timeout: Duration,
    ) -> Option<Result<ReadGuard<'_, T>, WriterDied<ReadGuard<'_, T>>>> {
        self.raw.read_until(deadline_after(timeout)).map(|acquired| self.reads(acquired))
    }

    /// Acquires the lock to write; blocks until it is free. A thread that already holds it, in
    /// either way, deadlocks.
    ///
    /// # Errors
    ///
    /// [`WriterDied`], which holds the lock.
    pub fn write(&self) -> Result<WriteGuard<'_, T>, WriterDied<WriteGuard<'_, T>>> {
        self.writes(self.raw.write())
    }

    /// Acquires the lock to write if it is free; never blocks. For a lock whose writer has died see
    /// [`try_read`](Self::try_read).
    pub fn try_write(&self) -> Option<Result<WriteGuard<'_, T>, WriterDied<WriteGuard<'_, T>>>> {
        self.raw.try_write().map(|acquired| self.writes(acquired))
    }

    /// Acquires the lock to write, or gives up after `timeout`.
    pub fn try_write_for(
        &self,
        timeout: Duration,
    ) -> Option<Result<WriteGuard<'_, T>, WriterDied<WriteGuard<'_, T>>>> {
        self.raw.write_until(deadline_after(timeout)).map(|acquired| self.writes(acquired))
    }

    fn reads(&self, acquired: Acquired) -> Result<ReadGuard<'_, T>, WriterDied<ReadGuard<'_, T>>> {
        told(acquired, ReadGuard { lock: self })
    }

    fn writes(
        &self,
        acquired: Acquired,
    ) -> Result<WriteGuard<'_, T>, WriterDied<WriteGuard<'_, T>>> {
        told(acquired, WriteGuard { lock: self, thread: PhantomData })
    }
}

fn told<G>(acquired: Acquired, guard: G) -> Result<G, WriterDied<G>> {
    match acquired {
        Acquired::Whole => Ok(guard),
        Acquired::OwnerDied => Err(WriterDied(guard)),
    }
}

impl<G> WriterDied<G> {
    /// Returns the guard. The next acquisition gets this error again.
    pub fn into_guard(self) -> G {
        self.0
    }
}

impl<'a, T> WriterDied<WriteGuard<'a, T>> {
    /// Returns the guard, for a value that the caller repairs or has found whole: later
    /// acquisitions do not get this error.
    pub fn recover(self) -> WriteGuard<'a, T> {
        self.0.lock.raw.recovered();
        self.0
    }
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock for reading, so no thread writes while it exists.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock exclusively as long as the thread lives, and the
        // creator of the lock has promised that the reference is not used for longer.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and no other code borrows the guard.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for ReadGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the guard holds the lock for reading.
        unsafe { self.lock.raw.unlock_read() }
    }
}

impl<T> Drop for WriteGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: this thread holds the lock for writing, because guards are not sent to other
        // threads.
        unsafe { self.lock.raw.unlock_write() }
    }
}

impl<T> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLock").field("is_locked", &self.raw.is_locked()).finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for ReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for WriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<G> fmt::Debug for WriterDied<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterDied").finish_non_exhaustive()
    }
}

impl<G> fmt::Display for WriterDied<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a writer has died while it held the lock")
    }
}

impl<G> std::error::Error for WriterDied<G> {}

//! The spinlock of the kernel's own state, a ticket lock. Interrupts are off while it is held, so
//! that a handler never waits for the code that it interrupts.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::x86::cpu::{WereOn, restore, without_interrupts};

/// A value that a lock guards.
#[derive(Debug, Default)]
pub struct Lock<T> {
    next: AtomicU32,
    served: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder accesses the value.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// Creates a free lock.
    pub const fn new(value: T) -> Self {
        Self { next: AtomicU32::new(0), served: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Acquires the lock; spins until the caller has it.
    pub fn lock(&self) -> Held<'_, T> {
        let were_on = without_interrupts();
        // Relaxed: only a number; the loop below acquires.
        let mine = self.next.fetch_add(1, Relaxed);
        // Acquire: what the holder before us did; pairs with the release in `drop`.
        while self.served.load(Acquire) != mine {
            core::hint::spin_loop();
        }
        Held { lock: self, were_on, stays: PhantomData }
    }
}

/// The guard of a lock, which is held until this is dropped, on the CPU of the holder.
///
/// Guards of several locks must be dropped in the reverse order: a guard switches interrupts on
/// again if they were on when its lock was taken.
#[derive(Debug)]
pub struct Held<'a, T> {
    lock: &'a Lock<T>,
    were_on: WereOn,
    /// The interrupts are those of one CPU, and the value may not be `Sync`.
    stays: PhantomData<*const ()>,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: we hold the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: we hold the lock.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        // Relaxed: only the holder writes it.
        let served = self.lock.served.load(Relaxed);
        // Release: pairs with the acquire in `lock`.
        self.lock.served.store(served.wrapping_add(1), Release);
        restore(self.were_on);
    }
}

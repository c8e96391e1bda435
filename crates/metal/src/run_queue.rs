//! The run queue of a CPU: first come, first served. It is touched by its CPU only, with interrupts
//! off; other CPUs put threads into its [inbox](crate::inbox).

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::Atomic;

use crate::inbox::{Linked, Taken};

/// Threads that may run, in the order in which they came. They are linked by the word that links
/// them in an inbox: a thread is in one of the two.
#[derive(Debug)]
pub struct RunQueue<T> {
    first: *const T,
    last: *const T,
}

impl<T: Linked> RunQueue<T> {
    /// A queue without threads.
    pub const NEW: Self = Self { first: ptr::null(), last: ptr::null() };

    /// Whether no thread is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Puts a thread at the end.
    ///
    /// # Safety
    ///
    /// It is in no queue and no inbox, and stays where it is until it was taken out.
    #[inline]
    pub unsafe fn push(&mut self, thread: *const T) {
        // SAFETY: the caller's promise. Relaxed: one CPU only.
        unsafe { (*thread).link().store(0, Relaxed) };
        if self.first.is_null() {
            self.first = thread;
        } else {
            // SAFETY: the last thread is still there: it was not taken out.
            unsafe { (*self.last).link().store(thread.expose_provenance() as u64, Relaxed) };
        }
        self.last = thread;
    }

    /// Puts at the end what was taken out of an inbox, the first that came first.
    ///
    /// # Safety
    ///
    /// See [`push`](Self::push).
    #[inline]
    pub unsafe fn push_all(&mut self, taken: Taken<T>) {
        // They come the last first: each goes before those that came after it.
        let (mut first, mut last) = (ptr::null::<T>(), ptr::null::<T>());
        for thread in taken {
            if first.is_null() {
                last = thread;
            }
            // SAFETY: the caller's promise; the iterator has read the link already.
            unsafe { (*thread).link().store(first.expose_provenance() as u64, Relaxed) };
            first = thread;
        }
        if first.is_null() {
            return;
        }
        if self.first.is_null() {
            self.first = first;
        } else {
            // SAFETY: as in `push`.
            unsafe { (*self.last).link().store(first.expose_provenance() as u64, Relaxed) };
        }
        self.last = last;
    }

    /// Takes the first thread out.
    #[inline]
    pub fn pop(&mut self) -> Option<*const T> {
        if self.first.is_null() {
            return None;
        }
        let thread = self.first;
        // SAFETY: it is in the queue, so it is there. Relaxed: one CPU only.
        let next = unsafe { (*thread).link().load(Relaxed) };
        self.first = ptr::with_exposed_provenance(next as usize);
        Some(thread)
    }
}

//! The run queue of a CPU: first come, first served. Only the CPU itself accesses it, with
//! interrupts off; other CPUs put threads into its [inbox](crate::inbox).

use core::ptr;

use crate::inbox::{Linked, Taken};

/// Runnable threads, in the order in which they came. They are linked by the same word as in an
/// inbox: a thread is in one of the two.
#[derive(Debug)]
pub struct RunQueue<T> {
    first: *const T,
    last: *const T,
}

impl<T: Linked> RunQueue<T> {
    /// A queue without threads.
    pub const NEW: Self = Self { first: ptr::null(), last: ptr::null() };

    /// Returns whether no thread is in the queue.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Puts a thread at the end.
    ///
    /// # Safety
    ///
    /// The thread is in no queue, no inbox and no list that was taken out of one. Until
    /// [`pop`](Self::pop) has returned it, it neither moves nor is freed, nor is it borrowed
    /// exclusively.
    #[inline]
    pub unsafe fn push(&mut self, thread: *const T) {
        // The link is 0: INBOX-4.
        if self.first.is_null() {
            self.first = thread;
        } else {
            // SAFETY: the last thread is in the queue, so it exists.
            unsafe { (*self.last).link().set(thread.expose_provenance() as u64) };
        }
        self.last = thread;
    }

    /// Puts the threads that were taken out of an inbox at the end, in the order in which they
    /// came.
    ///
    /// # Safety
    ///
    /// See [`push`](Self::push), for each of them.
    #[inline]
    pub unsafe fn push_all(&mut self, taken: Taken<T>) {
        // The iterator returns the latest first: each thread goes before those that came after it.
        let (mut first, mut last) = (ptr::null::<T>(), ptr::null::<T>());
        for thread in taken {
            if first.is_null() {
                // Its link is 0: INBOX-4.
                last = thread;
            } else {
                // SAFETY: the caller's promise; the iterator has read the link already.
                unsafe { (*thread).link().set(first.expose_provenance() as u64) };
            }
            first = thread;
        }
        if first.is_null() {
            return;
        }
        if self.first.is_null() {
            self.first = first;
        } else {
            // SAFETY: as in `push`.
            unsafe { (*self.last).link().set(first.expose_provenance() as u64) };
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
        // SAFETY: the thread is in the queue, so it exists.
        let link = unsafe { (*thread).link() };
        let next = link.get();
        link.unlink(next);
        self.first = ptr::with_exposed_provenance(next as usize);
        Some(thread)
    }
}

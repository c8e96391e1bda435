//! A timer, and lists of timers in insertion order.
//!
//! ```text
//!   first ──► timer ◄──► timer ◄──► timer        each knows the next and the previous;
//!               ▲                     ▲          after the last comes the first
//!               └─────────────────────┘
//! ```
//!
//! - LIST-1: the timers of a list exist, and are linked both ways in a ring. A timer that is in no
//!   list has no links.

use core::cell::Cell;
use core::iter::successors;
use core::marker::PhantomPinned;
use core::ptr::NonNull;

/// A deadline, in the memory of its waiter: in a [`Wheel`](super::Wheel), or not set.
#[derive(Debug, Default)]
pub struct Timer {
    at_ns: Cell<u64>,
    next: Cell<Option<NonNull<Self>>>,
    previous: Cell<Option<NonNull<Self>>>,
    /// Other timers and lists point to this one.
    _pinned: PhantomPinned,
}

/// Timers that are linked in a ring: the list itself has only a pointer to the first.
pub(super) struct List {
    first: Option<NonNull<Timer>>,
}

const _: () = assert!(size_of::<Timer>() == 24 && size_of::<List>() == 8);

impl Timer {
    /// Creates a timer that is not set.
    #[must_use]
    pub const fn new() -> Self {
        let (next, previous) = (Cell::new(None), Cell::new(None));
        Self { at_ns: Cell::new(0), next, previous, _pinned: PhantomPinned }
    }

    /// Returns whether the timer is in a wheel: neither handed out nor removed after it was set.
    #[must_use]
    #[inline]
    pub fn is_set(&self) -> bool {
        self.next.get().is_some()
    }

    /// Returns the deadline that the timer was last set for, in nanoseconds; 0 if it never was.
    #[must_use]
    #[inline]
    pub fn at_ns(&self) -> u64 {
        self.at_ns.get()
    }

    pub(super) fn set_at_ns(&self, at_ns: u64) {
        self.at_ns.set(at_ns);
    }
}

impl List {
    pub(super) const fn new() -> Self {
        Self { first: None }
    }

    pub(super) fn first(&self) -> Option<NonNull<Timer>> {
        self.first
    }

    /// Appends a timer.
    ///
    /// # Safety
    ///
    /// The timer is in no list, and exists until it is removed from this one.
    pub(super) unsafe fn push(&mut self, timer: NonNull<Timer>) {
        let first = *self.first.get_or_insert(timer);
        // SAFETY: LIST-1, and the caller's contract; a single timer is its own neighbour.
        unsafe {
            let last = first.as_ref().previous.get().unwrap_or(timer);
            join(last, timer);
            join(timer, first);
        }
    }

    /// Removes a timer; does nothing if it is in no list.
    ///
    /// # Safety
    ///
    /// The timer exists, and is in no other list.
    pub(super) unsafe fn unlink(&mut self, timer: NonNull<Timer>) {
        // SAFETY: the caller's contract.
        let node = unsafe { timer.as_ref() };
        let (Some(next), Some(previous)) = (node.next.take(), node.previous.take()) else {
            return;
        };
        if next == timer {
            self.first = None;
            return;
        }
        // SAFETY: LIST-1; they are neighbours of the timer, which is not alone.
        unsafe { join(previous, next) };
        if self.first == Some(timer) {
            self.first = Some(next);
        }
    }

    /// Removes the first timer.
    pub(super) fn pop(&mut self) -> Option<NonNull<Timer>> {
        let first = self.first?;
        // SAFETY: LIST-1.
        unsafe { self.unlink(first) };
        Some(first)
    }

    /// Returns the timers with their deadlines, from the first to the last.
    pub(super) fn iter(&self) -> impl Iterator<Item = (NonNull<Timer>, u64)> {
        // SAFETY: LIST-1.
        let next = |timer: &NonNull<Timer>| unsafe { timer.as_ref() }.next.get();
        successors(self.first, move |timer| next(timer).filter(|&next| Some(next) != self.first))
            // SAFETY: LIST-1.
            .map(|timer| (timer, unsafe { timer.as_ref() }.at_ns()))
    }
}

/// Links `next` after `timer`. The pointers are kept as they are: a caller that is handed one may
/// derive from it a pointer to the struct around the timer.
///
/// # Safety
///
/// Both exist.
unsafe fn join(timer: NonNull<Timer>, next: NonNull<Timer>) {
    // SAFETY: the caller's contract; their cells are written through shared references.
    unsafe {
        timer.as_ref().next.set(Some(next));
        next.as_ref().previous.set(Some(timer));
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    fn order(list: &List) -> Vec<u64> {
        list.iter().map(|(_, at_ns)| at_ns).collect()
    }

    #[test]
    fn each_is_taken_from_where_it_is() {
        for taken in 0..3 {
            let timers = [(); 3].map(|()| Timer::new());
            let mut list = List::new();
            assert_eq!((list.pop(), order(&list).len()), (None, 0));
            for (number, timer) in timers.iter().enumerate() {
                timer.set_at_ns(number as u64);
                // SAFETY: on the stack until the end of the round, as is the list.
                unsafe { list.push(timer.into()) };
            }
            assert_eq!(order(&list), [0, 1, 2]);
            for again in [false, true] {
                // SAFETY: the timer is on the stack until the end of the round, as is the list.
                unsafe { list.unlink((&timers[taken]).into()) };
                let rest: Vec<_> = (0..3).filter(|&number| number != taken as u64).collect();
                assert_eq!(order(&list), rest, "again: {again}");
            }
            assert!(!timers[taken].is_set());
            let rest: Vec<_> = (0..3).filter(|&number| number != taken).collect();
            assert_eq!(list.pop(), Some((&timers[rest[0]]).into()));
            // SAFETY: the timer is on the stack until the end of the round, as is the list.
            unsafe { list.push((&timers[taken]).into()) };
            assert_eq!(order(&list), [rest[1], taken].map(|number| number as u64));
            assert_eq!(list.pop(), Some((&timers[rest[1]]).into()));
            assert_eq!(list.pop(), Some((&timers[taken]).into()));
            assert_eq!(list.pop(), None);
            assert!(timers.iter().all(|timer| !timer.is_set()));
        }
    }
}

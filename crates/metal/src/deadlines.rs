//! The deadlines of the sleepers of one CPU: a heap, the earliest first, from which any entry can
//! be removed.
//!
//! An entry knows its place in the heap, so that a sleeper that was woken in time is removed
//! without a search. Room is made when a thread is created, so a sleep never allocates.

use alloc::vec::Vec;
use core::cell::Cell;

/// An entry: a time, and the sleeper to wake then.
///
/// The heap writes the place, too: only one CPU accesses both, with interrupts off.
pub struct Alarm<T> {
    /// The time, in nanoseconds of the monotonic clock.
    at_ns: Cell<u64>,
    /// The place in the heap, from 1 on; 0 if it is not in the heap.
    place: Cell<usize>,
    /// The sleeper to wake then.
    sleeper: Cell<Option<T>>,
}

/// The deadlines of a CPU, by the addresses of their alarms.
pub struct Deadlines<T>(Vec<*const Alarm<T>>);

impl<T: Copy> Default for Alarm<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> Alarm<T> {
    /// An alarm that is not set.
    #[must_use]
    pub const fn new() -> Self {
        Self { at_ns: Cell::new(0), place: Cell::new(0), sleeper: Cell::new(None) }
    }

    /// Returns whether the alarm is set.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.place.get() != 0
    }
}

impl<T: Copy> Deadlines<T> {
    /// No deadlines.
    pub const NEW: Self = Self(Vec::new());

    /// Makes room for `count` deadlines in all.
    pub fn make_room(&mut self, count: usize) {
        self.0.reserve(count.saturating_sub(self.0.len()));
    }

    /// The earliest deadline.
    #[inline]
    pub fn first_ns(&self) -> Option<u64> {
        self.0.first().map(|_| self.at(0))
    }

    /// Sets an alarm.
    ///
    /// # Safety
    ///
    /// The alarm is not set, and neither moves nor is freed until it was taken out.
    pub unsafe fn set(&mut self, alarm: *const Alarm<T>, at_ns: u64, sleeper: T) {
        // SAFETY: the caller's promise; below, the promise of earlier callers for the alarms that
        // are set.
        let entry = unsafe { &*alarm };
        entry.at_ns.set(at_ns);
        entry.sleeper.set(Some(sleeper));
        self.0.push(alarm);
        self.note(self.0.len() - 1);
        self.rise(self.0.len() - 1);
    }

    /// Takes an alarm out, if it is set.
    pub fn unset(&mut self, alarm: &Alarm<T>) {
        let place = alarm.place.replace(0);
        if place == 0 {
            return;
        }
        let at = place - 1;
        self.0.swap_remove(at);
        if at < self.0.len() {
            self.note(at);
            self.rise(at);
            self.sink(at);
        }
    }

    /// Takes out the earliest alarm, if its time has come, and returns its sleeper.
    pub fn take_due(&mut self, now_ns: u64) -> Option<T> {
        if self.first_ns()? > now_ns {
            return None;
        }
        // SAFETY: set, so it exists (`set`).
        let alarm = unsafe { &**self.0.first()? };
        self.unset(alarm);
        alarm.sleeper.take()
    }

    fn at(&self, index: usize) -> u64 {
        // SAFETY: set, so it exists (`set`).
        unsafe { (*self.0[index]).at_ns.get() }
    }

    fn note(&self, index: usize) {
        // SAFETY: set, so it exists (`set`).
        unsafe { (*self.0[index]).place.set(index + 1) };
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.0.swap(one, other);
        self.note(one);
        self.note(other);
    }

    fn rise(&mut self, mut index: usize) {
        while index > 0 && self.at(index) < self.at((index - 1) / 2) {
            self.swap(index, (index - 1) / 2);
            index = (index - 1) / 2;
        }
    }

    fn sink(&mut self, mut index: usize) {
        loop {
            let (left, right) = (2 * index + 1, 2 * index + 2);
            let mut least = index;
            for child in [left, right] {
                if child < self.0.len() && self.at(child) < self.at(least) {
                    least = child;
                }
            }
            if least == index {
                return;
            }
            self.swap(index, least);
            index = least;
        }
    }
}

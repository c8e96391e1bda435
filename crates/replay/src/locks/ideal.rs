//! An ideal lock, which costs nothing and still excludes others: an upper bound of the gain by
//! another lock.
//!
//! It is in host memory and takes no simulated time. A waiting thread gives up its core and gets it
//! back at no cost. The first thread to arrive at a free lock gets it, so the lock never waits for
//! a thread that has no core yet.

use std::cell::RefCell;
use std::collections::VecDeque;

use antiphon_sim::{Access, Aside, aside, call_back, step_aside};

use super::instance::{Guards, Seat, Simulated, Way};

/// The owner of the lock, and its waiters.
#[derive(Default)]
struct State {
    written: bool,
    readers: u32,
    /// The waiters, and whether each waits to read.
    waiting: VecDeque<(Aside, bool)>,
}

/// The lock.
#[derive(Default)]
pub(super) struct Ideal(RefCell<State>);

impl State {
    fn takes(&mut self, shared: bool) -> bool {
        let free = !self.written && (shared || self.readers == 0);
        if free && shared {
            self.readers += 1;
        } else if free {
            self.written = true;
        }
        free
    }

    /// Removes the waiters that get the lock now: one writer, or the readers in front.
    fn called(&mut self) -> Vec<Aside> {
        if self.written || self.readers > 0 {
            return Vec::new();
        }
        let Some((first, shared)) = self.waiting.pop_front() else { return Vec::new() };
        let mut called = vec![first];
        while shared && self.waiting.front().is_some_and(|waiting| waiting.1) {
            called.extend(self.waiting.pop_front().map(|waiting| waiting.0));
        }
        called
    }
}

impl Ideal {
    fn take(&self, shared: bool) {
        while !self.0.borrow_mut().takes(shared) {
            self.0.borrow_mut().waiting.push_back((aside(), shared));
            step_aside();
        }
    }

    fn called(&self) {
        let called = self.0.borrow_mut().called();
        called.into_iter().for_each(call_back);
    }
}

// SAFETY: the lock is given to one writer alone, or to readers.
unsafe impl Simulated for Ideal {
    fn lock(&self) {
        self.take(false);
    }

    fn try_lock(&self) -> bool {
        self.0.borrow_mut().takes(false)
    }

    unsafe fn unlock(&self) {
        self.0.borrow_mut().written = false;
        self.called();
    }

    fn read(&self) -> Seat {
        self.take(true);
        Seat(Way::Any)
    }

    unsafe fn unlock_read(&self, _seat: Seat) {
        self.0.borrow_mut().readers -= 1;
        self.called();
    }
}

/// The lock is on no simulated cache line.
impl Guards for Ideal {
    fn beside(&self, _access: Access) {}
}

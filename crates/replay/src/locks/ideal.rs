//! A lock that costs nothing and still keeps others out: what is left to gain by another lock.
//!
//! It lives on the host and takes no simulated time. A thread that has to wait gives its core up
//! for nothing and gets it back for nothing. The first thread to come to a free lock has it, so it
//! never waits for one that has no core yet.

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

    /// The threads that the lock is for now: one writer, or the readers in front.
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

// SAFETY: `takes` lets in a writer alone, or readers.
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

/// It is on no line.
impl Guards for Ideal {
    fn beside(&self, _access: Access) {}
}

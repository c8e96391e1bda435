//! Timed fibers of a thread that were suspended without reading the clock.
//!
//! The thread's next clock reading is charged to them, unless it follows another one within
//! `PERIOD_NS`. A fiber that was charged a reading reads the clock itself when it resumes; without
//! that exception two fibers that keep waking each other would each force a reading, for ever.
//!
//! A fiber that has resumed stays in the list until then, and is passed over: a quick wait costs a
//! flag.

use std::cell::{Cell, RefCell};

use super::control::Fiber;
use crate::observe::PERIOD_NS;

/// The list of such fibers of one thread, each once.
#[derive(Default)]
pub(super) struct Untold {
    fibers: RefCell<Vec<Fiber>>,
    /// Whether the list is not empty. Separate because of HOST-1: a signal handler may come in
    /// between.
    has_any: Cell<bool>,
    /// When the list was last emptied.
    taken_ns: Cell<u64>,
}

impl Untold {
    /// Adds a fiber that waits from now on.
    pub(super) fn note(&self, fiber: Fiber) {
        self.fibers.borrow_mut().push(fiber);
        self.has_any.set(true);
    }

    /// Returns whether the list is empty.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.has_any.get()
    }

    /// Returns whether a reading of the clock at `now_ns` is charged to these fibers.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        !self.is_empty() && now_ns.saturating_sub(self.taken_ns.get()) > PERIOD_NS
    }

    /// Empties the list at `now_ns`, and calls `each` for every fiber.
    pub(super) fn take(&self, now_ns: u64, mut each: impl FnMut(Fiber)) {
        self.taken_ns.set(now_ns);
        self.has_any.set(false);
        self.fibers.borrow_mut().drain(..).for_each(&mut each);
    }

    /// Removes a fiber that is no longer timed.
    pub(super) fn forget(&self, fiber: Fiber) {
        let mut fibers = self.fibers.borrow_mut();
        fibers.retain(|&other| other != fiber);
        self.has_any.set(!fibers.is_empty());
    }
}

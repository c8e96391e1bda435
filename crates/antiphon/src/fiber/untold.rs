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

/// These fibers of one thread, each once.
#[derive(Default)]
pub(super) struct Untold {
    fibers: RefCell<Vec<Fiber>>,
    /// Whether there are any: HOST-1, a signal handler may come in between.
    has_any: Cell<bool>,
    /// The time when all were taken away last.
    taken_ns: Cell<u64>,
}

impl Untold {
    /// Adds a fiber that waits from now on.
    pub(super) fn note(&self, fiber: Fiber) {
        self.fibers.borrow_mut().push(fiber);
        self.has_any.set(true);
    }

    /// Whether there is none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.has_any.get()
    }

    /// Whether a look at that time is theirs.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        !self.is_empty() && now_ns.saturating_sub(self.taken_ns.get()) > PERIOD_NS
    }

    /// Takes them all away, at that time.
    pub(super) fn take(&self, now_ns: u64, mut each: impl FnMut(Fiber)) {
        self.taken_ns.set(now_ns);
        self.has_any.set(false);
        self.fibers.borrow_mut().drain(..).for_each(&mut each);
    }

    /// Removes a fiber that is timed no more.
    pub(super) fn forget(&self, fiber: Fiber) {
        let mut fibers = self.fibers.borrow_mut();
        fibers.retain(|&other| other != fiber);
        self.has_any.set(!fibers.is_empty());
    }
}

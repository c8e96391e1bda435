//! The order of going on: the fibers of a line and the tasks that have not begun take turns.
//!
//! ```text
//!             the first of the line goes on                   the line is empty
//!    ┌──────┐ ─────────────────────────────► ┌────────────┐       ┌────────┐
//!    │ turn │                                │ after that │       │  none  │
//!    └──────┘ ◄───────────────────────────── └─────┬──────┘       └────────┘
//!                  most turns                      │ each `ANY`th: of any task
//!                                                  │ each `OWN`th, unless soft: of an own one
//!                                                  ▼
//!                                            ┌─────────────┐
//!                                            │ task begins │
//!                                            └─────────────┘
//! ```
//!
//! - TURN-1 (a fiber that may go on does): the line is first in, first out, a fiber that yields
//!   goes to its end, and at most one task begins between two turns. So each fiber of the line has
//!   a turn in as many as there are.
//! - TURN-2 (a task that has not begun does): of the turns of a line that is never empty, each
//!   `ANY`th is followed by a task, if there is one in reach: first of those from outside, at last
//!   of other workers'. So a task that fibers wait for by yielding has its turn even if the policy
//!   hands out the last task first; for a policy decides among tasks, and a fiber that has begun is
//!   none.
//! - TURN-3: where all yield otherwise than softly, so is each `OWN`th, by an own task.
//!
//! Alternatives that were turned down, each with a model (`yields/`): a fiber that yields becomes a
//! task again, on top of a stack (two that wait for each other never end); or below the next
//! (three); or changes places with one by lot (ends almost surely, and late where most wait); or
//! goes to a queue of all threads (ends; but it is an exchange of a shared line for each yield, and
//! a fiber that has begun stays on its thread).

use core::cell::Cell;

use super::line::{InLine, Line};

/// Where fibers may go on, a task of the thread's own begins every `TASKS_EVERY` turns.
pub const TASKS_EVERY: u32 = 4;
/// Period, in turns, at which tasks from elsewhere, and those of a thread whose fibers yield
/// softly, are looked at. A prime, as in Go's scheduler.
pub const ANY_EVERY: u32 = 61;

/// The turns of a thread's fibers.
#[derive(Debug)]
pub struct Turns<const OWN: u32 = TASKS_EVERY, const ANY: u32 = ANY_EVERY>(Cell<u32>);

/// The action between two turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the line goes on when this is done"]
pub enum Next {
    /// The line is empty.
    Nobody,
    /// A task of the thread's own begins, if there is one.
    Task,
    /// Any task begins, if there is one.
    AnyTask,
}

/// The way in which a fiber has used its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The fiber has yielded softly, and is in the line again.
    Soft,
    /// Something else: if the fiber has yielded, it is in the line again.
    Over,
}

impl<const OWN: u32, const ANY: u32> Turns<OWN, ANY> {
    /// No turns yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Cell::new(0))
    }

    /// How many turns there were, modulo 2³²; in a turn, including that one.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.get()
    }

    /// Lets the fibers of the line go on by `run`, until something else is to be done. Before each
    /// turn `prepare` puts the fibers that may go on into the line, and says whether tasks may
    /// begin: where they may not, nothing else is to be done until the line is empty.
    #[inline(always)]
    pub fn go_on<F: InLine>(
        &self,
        line: &Line<F>,
        mut prepare: impl FnMut() -> bool,
        mut run: impl FnMut(F) -> Turn,
    ) -> Next {
        loop {
            let turn = self.0.get().wrapping_add(1);
            self.0.set(turn);
            let begins = prepare();
            let Some(fiber) = line.pop() else {
                return Next::Nobody;
            };
            let had = run(fiber);
            if !begins {
                continue;
            }
            // TURN-2.
            if turn.is_multiple_of(ANY) {
                return Next::AnyTask;
            }
            // TURN-3.
            if had == Turn::Over && turn.is_multiple_of(OWN) {
                return Next::Task;
            }
        }
    }
}

impl<const OWN: u32, const ANY: u32> Default for Turns<OWN, ANY> {
    fn default() -> Self {
        Self::new()
    }
}

//! The order in which fibers go on: the fibers of a run queue and the tasks that have not begun
//! take turns.
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
//! - TURN-1 (each ready fiber goes on): the line is first in, first out, a fiber that yields goes
//!   to its end, and at most one task begins between two turns. So each fiber of the line has a
//!   turn within as many turns as the line has fibers.
//! - TURN-2 (each task begins): of the turns of a line that is never empty, each `ANY`th is
//!   followed by a task, if there is one in reach: first of those from outside, at last of other
//!   workers'. So a task that fibers wait for by yielding has its turn even if the policy hands out
//!   the last task first; a policy decides among tasks, and a fiber that has begun is not a task.
//! - TURN-3: if all fibers yield otherwise than softly, each `OWN`th turn is followed by an own
//!   task, too.
//!
//! Alternatives that were turned down, each with a model (`yields/`): a fiber that yields becomes a
//! task again, on top of a stack (two that wait for each other never end); or below the next
//! (three); or changes places with a random one (ends almost surely, and late if most wait); or
//! goes to a queue of all threads (ends; but it costs an exchange of a shared line per yield, and a
//! fiber that has begun stays on its thread).

use core::cell::Cell;

use super::line::{InLine, Line};

/// Period, in turns, at which a task of the thread's own begins, if fibers may go on.
pub const TASKS_EVERY: u32 = 4;
/// Period, in turns, at which tasks from elsewhere are taken, and those of a thread whose fibers
/// yield softly. A prime, as in Go's scheduler.
pub const ANY_EVERY: u32 = 61;

/// The turns of a thread's fibers.
#[derive(Debug)]
pub struct Turns<const OWN: u32 = TASKS_EVERY, const ANY: u32 = ANY_EVERY>(Cell<u32>);

/// The action after a turn.
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

/// How a fiber has used its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The fiber has yielded softly, and is in the line again.
    Soft,
    /// Something else: if the fiber has yielded, it is in the line again.
    Over,
}

impl<const OWN: u32, const ANY: u32> Turns<OWN, ANY> {
    /// Creates a count of 0 turns.
    #[must_use]
    pub const fn new() -> Self {
        Self(Cell::new(0))
    }

    /// Returns the number of turns, modulo 2³²; during a turn, including that one.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.get()
    }

    /// Lets the fibers of the line go on by `run`, until there is something else to do. Before each
    /// turn `prepare` puts the fibers that may go on into the line, and returns whether tasks may
    /// begin: if not, there is nothing else to do until the line is empty.
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

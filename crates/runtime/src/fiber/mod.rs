//! The parts of a thread that runs fibers which are the same on any machine; the switching of
//! stacks is elsewhere.
//!
//! A fiber that has begun stays on its thread: what a compiler keeps of a thread's own state across
//! a call would be another thread's after it. So what others do with it is to say that it may go
//! on, and its thread finds that in [`Ready`], puts it into its [`Line`], and has it go on in its
//! turn, of the thread's [`Turns`]. Where fibers move, for experiments, it is in its turn that one
//! is let go, as a task.

mod line;
mod ready;
mod turns;

pub use line::{InLine, Line};
pub use ready::Ready;
pub use turns::{ANY_EVERY, Next, TASKS_EVERY, Turn, Turns};

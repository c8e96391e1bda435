//! The platform-independent parts of a thread that runs fibers; the switching of stacks is
//! elsewhere.
//!
//! A fiber that has begun stays on its thread: compilers may keep the address of thread-local state
//! across a call, which would be another thread's afterwards. So other threads only report that the
//! fiber may go on; its thread finds that in [`Ready`], puts the fiber into its [`Line`], and lets
//! it go on in its turn, of the thread's [`Turns`]. If fibers may move, for experiments, a fiber is
//! released as a task in its turn.

mod line;
mod ready;
mod turns;

pub use line::{InLine, Line};
pub use ready::Ready;
pub use turns::{ANY_EVERY, Next, TASKS_EVERY, Turn, Turns};

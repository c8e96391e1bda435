//! The sleep of a thread that is notified when there is something to do: the owner of a mailbox, or
//! a worker.
//!
//! | file | contents |
//! |---|---|
//! | `bell` | which thread wakes the sleeper, and when no wake-up is needed |
//! | `notify` | how a thread sleeps: parked, or spinning |

mod bell;
mod notify;

pub(crate) use bell::Bell;
pub use notify::{Park, Spin};

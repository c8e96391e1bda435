//! The sleep of a thread that is notified when there is something to do: the owner of a mailbox, a
//! worker.
//!
//! | file | what is in it |
//! |---|---|
//! | `bell` | which thread wakes the sleeper, and when none does |
//! | `notify` | how one sleeps: parked, or spinning |

mod bell;
mod notify;

pub(crate) use bell::Bell;
pub use notify::{Park, Spin};

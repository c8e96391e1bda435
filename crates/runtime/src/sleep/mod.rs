//! How somebody sleeps who is told that there is something to do: the owner of a mailbox, a worker.
//!
//! | file | what is in it |
//! |---|---|
//! | `bell` | who wakes the sleeper, and when nobody does |
//! | `notify` | how one sleeps: parked, or spinning |

mod bell;
mod notify;

pub(crate) use bell::Bell;
pub use notify::{Park, Spin};

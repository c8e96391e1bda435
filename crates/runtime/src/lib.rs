//! The building blocks of runtimes for many cores, generic over the platform.
//!
//! Nothing here depends on Linux. [`message`] has active messages: a sender names an action, and
//! the thread that owns the mailbox runs it. [`sched`] has workers that share tasks, by a policy
//! that is a value, and [`flight`] has the records that they keep of it; [`task`] has tasks, and
//! [`fork`] has forks that become tasks if that pays. [`channel`] has channels, [`fiber`] the parts
//! of a thread that runs fibers, [`timer`] the deadlines of its waits, and [`select`](mod@select)
//! waits for the first of several events, such as that a [`cancel`] token is cancelled; [`stage`]
//! has the stages of a pipeline. [`event_loop`] runs timers first and then the most important work;
//! [`coop`] shares a CPU among programs that must be on time. Users import the `antiphon` crate,
//! where the platform is chosen.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod cancel;
pub mod channel;
pub mod coop;
pub mod event_loop;
pub mod fiber;
pub mod flight;
pub mod fork;
mod lines;
pub mod message;
pub mod sched;
pub mod select;
mod sleep;
pub mod stage;
pub mod task;
pub mod timer;

/// The path of this file, as the compiler saw it: debug information has such paths for functions in
/// these files.
#[doc(hidden)]
pub const FILE: &str = file!();

//! The building blocks of runtimes on many cores, generic over the machine that they run on.
//!
//! Nothing here knows that Linux exists. [`message`] has active messages: a sender names an action,
//! and the thread whose mailbox it is runs it. [`sched`] has workers that share tasks, by a policy
//! that is a value, and [`flight`] what they record of it; [`task`] has tasks, and [`fork`] has
//! forks that become tasks if that pays. [`channel`] has channels, [`fiber`] what a thread needs
//! that runs fibers, [`timer`] the deadlines of what it waits for, and [`select`](mod@select) waits
//! for the first of several things, such as that a [`cancel`] token is cancelled; [`stage`] has
//! what stages of a pipeline are. [`event_loop`] has timers first and then the most important work;
//! [`coop`] shares a CPU among programs that must be on time. Users import the `antiphon` crate,
//! where the machine is filled in.
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

/// This file, as its compiler had it: debug information says so of the functions in such files.
#[doc(hidden)]
pub const FILE: &str = file!();

//! Locks and waiting, each written once, generic over the machine that they run on.
//!
//! Nothing here knows that Linux exists. [`lock`] holds the locks, a file each; [`policy`] says who
//! may stand beside whom in their queues; [`wait`] holds what waits for something else than a lock;
//! [`queue`] queues of tasks; [`shared`] what several processes share. Users import the `antiphon`
//! crate, where the machine is filled in.
#![no_std]

extern crate alloc;

pub mod clock;
pub mod lock;
pub mod nap;
pub mod policy;
pub mod queue;
pub mod shared;
pub mod wait;

use antiphon_platform::{Arena, Platform};

/// This file, as its compiler had it: debug information says so of the functions in such files.
#[doc(hidden)]
pub const FILE: &str = file!();

/// The nodes, as the protocols here use them.
fn arena<P: Platform>() -> &'static Arena<P> {
    // SAFETY: they are written here only: each file that asks says what it writes, when and why it
    // may, and who pairs with that.
    unsafe { P::arena() }
}

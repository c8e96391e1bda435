//! Locks and waiting, each written once, generic over the machine that they run on.
//!
//! This crate does not depend on Linux. [`lock`] contains the locks; [`policy`] the orders of
//! waiters in their queues; [`wait`] primitives that wait for something other than a lock;
//! [`queue`] queues of tasks; [`shared`] primitives for memory that several processes share;
//! [`clock`] stamps without a shared counter. Users import the `antiphon` crate, which supplies the
//! platform.
#![no_std]

extern crate alloc;

pub mod clock;
pub mod lock;
pub mod nap;
pub mod policy;
pub mod queue;
pub mod section;
pub mod shared;
pub mod wait;

use antiphon_platform::{Arena, Platform};

/// The path of this file as the compiler got it: debug information contains such paths for
/// functions.
#[doc(hidden)]
pub const FILE: &str = file!();

/// Returns the arena of nodes, which the protocols of this crate use.
fn arena<P: Platform>() -> &'static Arena<P> {
    // SAFETY: this crate writes to nodes only while one of its locks or waits has them: each file
    // that calls this says what it writes, when and why it may, and which access pairs with that.
    unsafe { P::arena() }
}

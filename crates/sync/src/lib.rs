//! Locks and waiting, each written once, generic over the machine that they run on.
//!
//! Nothing here knows that Linux exists. [`lock`] holds the locks, a file each; [`policy`] says
//! which waiters may stand beside which in their queues; [`wait`] holds primitives to wait for
//! something other than a lock; [`queue`] holds queues of tasks; [`shared`] holds primitives for
//! memory that several processes share. Users import the `antiphon` crate, where the machine is
//! filled in.
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

/// The path of this file, as its compiler had it: debug information has it for functions of such
/// files.
#[doc(hidden)]
pub const FILE: &str = file!();

/// The nodes, as the protocols of this crate use them.
fn arena<P: Platform>() -> &'static Arena<P> {
    // SAFETY: they are written here only while a lock or a wait of this crate has them: each file
    // that asks says what it writes, when and why it may, and which access pairs with that.
    unsafe { P::arena() }
}

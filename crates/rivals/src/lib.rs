//! Locks to compare ours with, each written once, generic over the machine that they run on.
//!
//! The families are [`classic`], [`numa`], [`cst`], [`stock`] (the kernel's) and [`delegation`].
//! [`locks`] is the registry: from its rows each list of these locks is made, in the model checker,
//! the simulator, the benchmarks and the tests. Programs use the locks of `antiphon-sync`.
#![no_std]

pub mod classic;
pub mod cst;
pub mod delegation;
pub mod numa;
mod registry;
mod slice;
pub mod stock;

use antiphon_platform::{Arena, Platform};

/// The nodes, as the protocols of this crate use them.
fn arena<P: Platform>() -> &'static Arena<P> {
    // SAFETY: they are written here only while a lock of this crate has them: each file that asks
    // says what it writes, when and why it may, and which access pairs with that.
    unsafe { P::arena() }
}

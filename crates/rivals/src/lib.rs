//! Locks from the literature and the kernel, to compare ours with: each written once, generic over
//! the machine that it runs on.
//!
//! The families are [`classic`], [`numa`], [`cst`], [`stock`] (the kernel's) and [`delegation`].
//! [`locks`] is the registry: the model checker, the simulator, the benchmarks and the tests make
//! their lists of these locks from its rows. Programs use the locks of `antiphon-sync`.
#![no_std]

pub mod classic;
pub mod cst;
pub mod delegation;
pub mod numa;
mod registry;
mod slice;
pub mod stock;

use antiphon_platform::{Arena, Platform};

/// The arena of waiter nodes, as the protocols of this crate use it.
fn arena<P: Platform>() -> &'static Arena<P> {
    // SAFETY: this crate writes nodes only while one of its locks has them: each file that calls
    // this says what it writes, when and why it may, and which access pairs with that.
    unsafe { P::arena() }
}

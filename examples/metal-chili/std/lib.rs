//! The modules of Rust's standard library that chili uses, on the bare-metal kernel. Their names
//! and contracts are those of the library; what is under them is Antiphon's: its locks and waits on
//! the platform `Metal`, and the threads of its kernel.
//!
//! A package that names this crate `std` among its dependencies is compiled with it.
#![no_std]

extern crate alloc;

pub mod collections;
pub mod panic;
pub mod sync;
pub mod thread;
pub mod time;

pub use core::{cell, mem, num, ops, ptr};

/// What each module of a crate begins with.
pub mod prelude {
    /// That of the edition 2021.
    pub mod rust_2021 {
        pub use alloc::boxed::Box;
        pub use alloc::vec::Vec;
        pub use core::prelude::rust_2021::*;
    }
}

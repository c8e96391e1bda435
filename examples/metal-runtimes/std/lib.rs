//! The modules of Rust's standard library that chili and rayon use, on the bare-metal kernel. Their
//! names and contracts are those of the library; what is under them is Antiphon's: its locks and
//! waits on the platform `Metal`, and the threads of its kernel.
//!
//! A package that names this crate `std` among its dependencies is compiled with it.
#![no_std]

extern crate alloc as memory;

pub mod collections;
pub mod env;
pub mod hash;
pub mod io;
mod local;
pub mod panic;
pub mod process;
pub mod sync;
pub mod thread;
pub mod time;

pub use core::{
    any, assert, assert_eq, cell, cmp, convert, debug_assert, debug_assert_eq, error, fmt, iter,
    marker, matches, mem, num, ops, option, ptr, result, slice, str, todo, unimplemented,
    unreachable, write,
};
pub use memory::{alloc, boxed, format, string, vec};

pub use antiphon_metal::println as eprintln;

/// What each module of a crate begins with.
pub mod prelude {
    /// That of the edition 2021.
    pub mod rust_2021 {
        pub use core::prelude::rust_2021::*;
        pub use memory::borrow::ToOwned;
        pub use memory::boxed::Box;
        pub use memory::string::{String, ToString};
        pub use memory::vec::Vec;

        pub use crate::{eprintln, format, thread_local, vec};
    }
}

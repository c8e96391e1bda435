//! Antiphon's locks for C and C++: what `include/antiphon.h` declares.
//!
//! `README.md` beside this crate has the ABI; the headers say what each function does. Here each is
//! a line or two that calls the lock which Rust users have.
//!
//! | file | what |
//! |---|---|
//! | `export` | how a function becomes one of the library's |
//! | `abi` | sizes and alignments, the same as in the header |
//! | `mutex`, `spin`, `rw`, `cond` | a type each |
//! | `waits` | barrier, semaphore, once |
//! | `policy` | which waiter is served next |
//! | `pshared` | a readers-writer lock and a barrier for memory that processes share |
//! | `code` | error numbers and deadlines |
//!
//! An `extern "C"` function that panics aborts, in every profile; nothing unwinds into C.

mod abi;
mod code;
mod cond;
mod export;
mod mutex;
mod policy;
mod pshared;
mod rw;
mod spin;
mod waits;

use core::ffi::{c_char, c_int};

use export::exports;

exports! {
    /// The version of the library, as "0.1.0".
    fn antiphon_version() -> *const c_char {
        concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
    }

    /// Makes unlocking a mutex cheaper.
    fn antiphon_enable_light() -> c_int {
        code::unless(antiphon_linux::light::enable_light().is_ok(), libc::ENOTSUP)
    }
}

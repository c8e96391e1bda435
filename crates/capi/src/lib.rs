//! The C interface of Antiphon: what the headers in `include` declare.
//!
//! `README.md` beside this crate has the ABI; the headers say what each function does. Here each
//! function is a line or two that calls the Rust interface.
//!
//! | file | content |
//! |---|---|
//! | `export` | the macro that exports functions |
//! | `abi` | sizes and alignments, the same as in the header |
//! | `mutex`, `spin`, `rw`, `cond` | one type each |
//! | `waits` | barrier, semaphore, once |
//! | `event`, `event_count`, `broadcast` | signals between threads |
//! | `message/` | active messages |
//! | `clock` | timestamps without a shared counter |
//! | `pool` | threads that run tasks |
//! | `fiber` | pools whose tasks are fibers, and the calls by which fibers yield |
//! | `item` | the items of channels and stages: a fixed number of bytes |
//! | `channel`, `promise`, `token`, `select` | objects that fibers and threads wait for |
//! | `stage` | stages of pipelines |
//! | `file`, `net` | files and sockets that fibers wait for |
//! | `event_loop/` | event loops |
//! | `split` | timers in a separate thread |
//! | `coop/` | sharing a CPU, for our loops and for the caller's own |
//! | `policy` | the order in which locks serve their waiters |
//! | `pshared` | a readers-writer lock and a barrier for memory that processes share |
//! | `pshared_event` | an event, a latch and a broadcast for such memory |
//! | `code` | error numbers and deadlines |
//! | `cancel` | calls in which the calling thread is not cancelled |
//!
//! An `extern "C"` function that panics aborts, in every profile; nothing unwinds into C.

mod abi;
mod broadcast;
mod cancel;
mod channel;
mod clock;
mod code;
mod cond;
mod coop;
mod event;
mod event_count;
mod event_loop;
mod export;
mod fiber;
mod file;
mod item;
mod message;
mod mutex;
mod net;
mod policy;
mod pool;
mod promise;
mod pshared;
mod pshared_event;
mod rw;
mod select;
mod spin;
mod split;
mod stage;
mod token;
mod waits;

use core::ffi::{c_char, c_int};

use export::exports;

exports! {
    /// Returns the version of the library, such as "0.1.0".
    fn antiphon_version() -> *const c_char {
        concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
    }

    /// Makes unlocking a mutex cheaper.
    fn antiphon_enable_light() -> c_int {
        code::unless(antiphon_linux::light::enable_light().is_ok(), libc::ENOTSUP)
    }
}

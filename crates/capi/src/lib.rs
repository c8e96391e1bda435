//! Antiphon for C and C++: what the headers in `include` declare.
//!
//! `README.md` beside this crate has the ABI; the headers say what each function does. Here each is
//! a line or two that calls what Rust users have.
//!
//! | file | what |
//! |---|---|
//! | `export` | how a function becomes one of the library's |
//! | `abi` | sizes and alignments, the same as in the header |
//! | `mutex`, `spin`, `rw`, `cond` | a type each |
//! | `waits` | barrier, semaphore, once |
//! | `event`, `event_count`, `broadcast` | to tell threads that something has happened |
//! | `message/` | active messages |
//! | `clock` | timestamps without a shared counter |
//! | `pool` | threads that run tasks |
//! | `fiber` | pools whose tasks are fibers, and how those let others run |
//! | `item` | the items of channels and stages: bytes, of a fixed number |
//! | `channel`, `promise`, `token`, `select` | what fibers and threads wait by |
//! | `stage` | stages of pipelines |
//! | `file`, `net` | files and sockets that fibers wait for |
//! | `event_loop/` | events that are on time |
//! | `split` | timers in a thread of their own |
//! | `coop/` | how loops share a CPU, and threads that have loops of their own |
//! | `policy` | which waiter is served next |
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
    /// The version of the library, as "0.1.0".
    fn antiphon_version() -> *const c_char {
        concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
    }

    /// Makes unlocking a mutex cheaper.
    fn antiphon_enable_light() -> c_int {
        code::unless(antiphon_linux::light::enable_light().is_ok(), libc::ENOTSUP)
    }
}

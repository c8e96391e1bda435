//! The page of hints: what threads tell a scheduler in the kernel, and what it answers.
//!
//! A process has one page, which only it and the scheduler of `apps/scx` can map.
//! Each registered thread has one [slot](Slot) of it. A hint is a store to the slot, an answer is a
//! load from it; neither is a system call.
//!
//! | file | contents |
//! |---|---|
//! | `layout` | the page, its version, and the same as a header for C |
//! | `section` | beginning and ending a critical section in a slot |
//! | `client` | connecting to the scheduler, registering a thread |
//! | `descriptors` | the two that a scheduler sends to a process |
//! | `dial` | connections that don't wait, or for a bounded time |
//! | `mark` | tells a process from its children |
//! | `seat` | the same for an event loop: without waiting, and with an owner |
//!
//! # Trust
//!
//! The scheduler checks each hint when it reads it, and keeps everything that it decides by in
//! memory of its own. The page is writable by its process, so an answer is worth as much as the
//! process itself: a process can deceive no other. A wrong hint reorders the thread that gives
//! it within its own share of the CPU.
//!
//! # Use
//!
//! ```no_run
//! use antiphon_hints::{Hints, SOCKET, now_ns};
//!
//! let hints = Hints::connect(SOCKET)?;
//! let thread = hints.register()?;
//! let release_ns = now_ns() + 5_000_000;
//! thread.poll(Some(release_ns), None);
//! // … sleeps until then, and is run first when it is due.
//! if thread.is_served(now_ns()) {
//!     let next = thread.answer().next_release_ns;
//!     println!("another thread is due at {next:?}");
//! }
//! # std::io::Result::Ok(())
//! ```

mod client;
mod descriptors;
mod dial;
mod layout;
mod mark;
mod seat;
mod section;

pub use client::{Hints, PATIENCE, SOCKET, STATUS, Thread, now_ns};
pub use descriptors::send;
pub use layout::{
    Answer, FRESH_NS, Header, MAGIC, PAGE_BYTES, Page, SLOTS, Slot, Standing, VERSION, c_header,
};
pub use seat::{Connecting, Registered};

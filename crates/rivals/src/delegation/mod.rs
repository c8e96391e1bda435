//! Locks that bring the critical section to the data: a waiter hands its section over, and another
//! thread runs it where the data is in the cache already.
//!
//! | lock | bytes beside the value | runs a section | order |
//! |---|---|---|---|
//! | [`DsmSynch`] | 4 | the thread that came first, and then at most `BOUND` | as they come |
//! | [`Rcl`] | 8, and 4 for each CPU | the thread that was lent to it | round and round |
//!
//! and nodes of 64 bytes from the arena: for `DsmSynch` one for each thread inside, as in any queue
//! lock; for `Rcl` a mailbox for each CPU that has used it, which stays until the lock is dropped,
//! one for the server, and one for each client that sleeps.
//!
//! A queue lock moves the lock, and then each line that the section writes, from owner to owner.
//! Here the section moves, which is a line or two, and its result. That is worth it where sections
//! are short and write much, and many threads want them.
//!
//! # Why these two
//!
//! - **Flat combining** (SPAA 2010) has a list of publications, one for each thread and lock, that
//!   a combiner walks under a lock of its own, and now and then cleans of those whose threads have
//!   left. [`DsmSynch`] (PPoPP 2012) has a queue for that: it is in order, nothing in it outlives
//!   the wait, so nothing is cleaned, and a bound is a count of sections. So this is combining, and
//!   not flat combining.
//! - **RCL** (ATC 2012) has one server for any number of locks, threads in reserve for sections
//!   that wait, and a mailbox for each client. [`Rcl`] has one server for a lock, no reserve, and a
//!   mailbox for each CPU: no client registers, and none leaves anything behind.
//!
//! # What to know
//!
//! - **A section runs on another thread**: it and its result are `Send`. It sees that thread's
//!   thread-locals and identity, has its stack, and is charged to its time.
//! - **A section that waits** makes all wait that are behind it, as under a mutex.
//! - **A section of a lock inside a section of the same lock** waits for ever, as with a mutex that
//!   is not recursive. Sections of different locks may nest as mutexes may: always in the same
//!   order.
//! - **A section that panics**: the thread that runs it panics, and so does the thread that has
//!   come with it. Others are served as ever.
//! - **A wait has no deadline**: a section that may be running can't be taken back.
//! - **A thread that leaves** leaves nothing: it has no record of its own anywhere.
//! - **A fork**: a lock that a thread uses at a `fork` is of no use in the child, and a section
//!   that forks must not return there: it may be that of a thread which does not exist there.

mod dsm_synch;
mod mailbox;
mod rcl;
mod section;

pub use dsm_synch::DsmSynch;
pub use rcl::{Rcl, Server};

use antiphon_platform::{Atomic, Platform, Word};

use crate::slice::{self, ALONE, Spin};

/// How long a waiter spins before it asks again whether another thread wants its CPU, in
/// nanoseconds.
const PIECE_NS: u32 = 5_000;

/// Spins while `keep` holds, no other thread wants the caller's CPU, and for at most `most_ns`.
/// Acquires what it sees.
///
/// # Errors
///
/// The last value that it saw.
fn spin<P: Platform, W: Word>(
    word: &impl Atomic<W>,
    most_ns: u32,
    keep: impl Fn(W) -> bool,
) -> Result<W, W> {
    let spin = Spin { piece_ns: PIECE_NS.min(most_ns), margin_ns: ALONE, most_ns };
    slice::spin::<P, W>(word, spin, keep)
}

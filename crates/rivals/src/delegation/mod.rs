//! Delegation locks, which bring the critical section to the data: a waiter hands its section over,
//! and another thread runs it where the data is already in the cache.
//!
//! | lock | bytes beside the value | runs a section | order |
//! |---|---|---|---|
//! | [`DsmSynch`] | 4 | the thread that came first, and then at most `BOUND` | as they come |
//! | [`Rcl`] | 8, and 4 for each CPU | the thread that was lent to it | round and round |
//!
//! Both also take nodes of 64 bytes from the arena: for `DsmSynch` one for each thread inside, as
//! in any queue lock; for `Rcl` a mailbox for each CPU that has used it, which stays until the lock
//! is dropped, one for the server, and one for each client that sleeps.
//!
//! A queue lock moves the lock, and then each line that the section writes, from owner to owner.
//! Here only the section (a line or two) and its result move. That pays where sections are short,
//! write much, and are run by many threads.
//!
//! # Why these two
//!
//! - **Flat combining** (SPAA 2010) has a list of publications, one for each thread and lock. A
//!   combiner walks it under a separate lock and sometimes removes entries of threads that have
//!   left. [`DsmSynch`] (PPoPP 2012) uses a queue instead: it is ordered, its entries do not
//!   outlive the wait, so none are cleaned up, and a bound is a count of sections. So this is
//!   combining, but not flat combining.
//! - **RCL** (ATC 2012) has one server for any number of locks, threads in reserve for sections
//!   that wait, and a mailbox for each client. [`Rcl`] has one server per lock, no reserve threads,
//!   and a mailbox for each CPU: clients do not register and leave nothing behind.
//!
//! # Restrictions
//!
//! - **A section runs on another thread**: it and its result are `Send`. It sees that thread's
//!   thread-locals and identity, uses its stack, and its CPU time is charged to that thread.
//! - **A section that waits** delays all sections behind it, as under a mutex.
//! - **A section of a lock inside a section of the same lock** waits for ever, as with a mutex that
//!   is not recursive. Sections of different locks may nest as mutexes may: always in the same
//!   order.
//! - **A section that panics**: the thread that runs it panics, and so does the thread that
//!   submitted it. With [`DsmSynch`] the others are still served.
//! - **A wait has no deadline**: a section that may be running cannot be withdrawn.
//! - **A thread that exits** leaves nothing behind: no lock has a record of it.
//! - **A fork**: a lock that a thread uses at a `fork` is unusable in the child, and a section that
//!   forks must not return there: its owner may be a thread that does not exist in the child.

mod dsm_synch;
mod mailbox;
mod rcl;
mod section;

pub use dsm_synch::DsmSynch;
pub use rcl::{Rcl, Server};

use antiphon_platform::{Atomic, Platform, Word};

use crate::slice::{self, ALONE, Spin};

/// Length of one spin, in nanoseconds, after which a waiter asks again whether another thread wants
/// its CPU.
const PIECE_NS: u32 = 5_000;

/// Spins while `keep` holds, no other thread wants the caller's CPU, and for at most `most_ns`
/// nanoseconds. Loads with acquire.
///
/// # Errors
///
/// The last value that was seen.
fn spin<P: Platform, W: Word>(
    word: &impl Atomic<W>,
    most_ns: u32,
    keep: impl Fn(W) -> bool,
) -> Result<W, W> {
    let spin = Spin { piece_ns: PIECE_NS.min(most_ns), margin_ns: ALONE, most_ns };
    slice::spin::<P, W>(word, spin, keep)
}

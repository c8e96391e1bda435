//! CST: NUMA-aware blocking locks whose memory grows with the sockets that use them.
//!
//! Source: S. Kashyap, C. Min, T. Kim, "Scalable NUMA-aware Blocking Synchronization Primitives",
//! USENIX ATC 2017; its talk is `004_…`. Written from the public description, for comparison.
//!
//! | lock | bytes | and for each socket that has used it |
//! |---|---|---|
//! | [`CstMutex`] | 16 | 128 |
//! | [`CstRwLock`] | 16 | 192 |
//!
//! and a node of 64 bytes for the owner and for each waiter. A socket's memory stays until the lock
//! is dropped ("Snodes are active until the life-cycle of the lock").
//!
//! ```text
//!   tail ──────────────────────────────┐            the sockets' queue: MCS, a socket once
//!                                      ▼
//!   socket 3, serving ──next──► socket 0 ──► …
//!     │ queue                     │ queue
//!     ▼                           ▼                 a socket's queue: MCS, skips sleeping waiters
//!   owner ─► UW ─► PW ─► UW      head ─► UW
//!     │ parked
//!     └────► PW ─► PW                               sleeping waiters, in the queue or skipped
//! ```
//!
//! A waiter's state is L (has the lock), UW (spins) or PW (sleeps). The lock goes from waiter to
//! waiter of a socket, at most [`CstForm::BATCH`] times, and always to a waiter that is UW; waiters
//! that are PW are passed over. So a hand-off inside a socket never includes a wake-up. An owner
//! that ends the batch, or finds no waiter UW on its socket, wakes the waiter that has slept there
//! longest, which joins the queue anew.
//!
//! A waiter spins while no other thread wants its CPU ("Waiters park themselves if more than one
//! tasks are running on a CPU"), or, with [`Quantum`], to the end of its time slice ("Limit the
//! spinning up to a waiter's time quantum").
//! [`Hints::slice_left_ns`](antiphon_platform::Hints::slice_left_ns) says how exactly that is
//! known. A head always spins to the end of its slice, because it must acquire the lock for its
//! socket.
//!
//! Invariants:
//!
//! - CST-1: a socket's structure is found by walking a list that only grows. Each socket has one.
//! - CST-2: a socket is in the sockets' queue by one of two lines, used alternately. An owner that
//!   leaves does everything else first; the release of the line is the last touch of the lock, and
//!   no thread can use that line again before it.
//! - CST-3: only the owner takes waiters out of its socket's queue, and an owner or head is before
//!   all that are in it.
//! - CST-4: a waiter becomes PW by an exchange that only a grant can beat, and then puts itself on
//!   the parking list. It has been passed over (`OUT`) before that list is swept; so a waiter that
//!   comes to the list after the sweep finds itself `OUT`, and sweeps.
//! - CST-5: a waiter that sleeps is on the parking list, about to be, or being woken. An owner that
//!   closes a queue or ends a batch wakes one waiter of the list, and that waiter takes over this
//!   duty.
//!
//! Readers are counted by socket, and writers use the mutex:
//!
//! - CST-RW-1: a reader is in if its own addition has found its socket's word open. It leaves by
//!   the same word ([`Seat`]).
//! - CST-RW-2: words are closed when they are made. A writer that has the mutex from another of its
//!   batch finds all closed and empty; any other closes them and waits until they are empty. A
//!   writer that leaves the batch opens them before it leaves the mutex.
//! - CST-RW-3: a reader sleeps only if it has put itself on its socket's list by an exchange that
//!   finds the word closed; one exchange opens the word and takes the list.
//!
//! Defects of the published code that this form does not have:
//!
//! | there | here |
//! |---|---|
//! | a try says that it has the lock, and has not; or leaks a ticket | it is one exchange |
//! | an owner that has migrated releases another socket | the lock names its owner |
//! | a reader that has migrated is taken off another socket's count | CST-RW-1 |
//! | readers that wait spin on one word, and none sleeps | CST-RW-3 |
//! | structures leak when the lock is destroyed | `Drop` gives them back |
//! | at most 16 sockets | a list, of any length |
//! | a socket's queue is released after the lock, which may be gone | CST-2 |
//! | sleepers spin on a lock that protects their list | CST-4 |
//! | all sleepers of a socket are woken at once | one is woken, the first that came |
//!
//! As in the published lock, sleepers are overtaken until the batch ends, and possibly again each
//! time they have slept. In the child of a `fork`, a lock that was free, or held by the thread that
//! has forked, continues with new structures.

mod global;
mod local;
mod mutex;
mod parking;
mod readers;
mod rw;
mod snode;

use crate::registry::shows;
use crate::slice::ALONE;

crate::locks!(cst => shows);
pub use rw::{CstRwLock, Seat};

/// Constants of a CST lock.
pub trait CstForm: Send + Sync + 'static {
    /// Number of hand-overs inside a socket before another socket has its turn.
    const BATCH: u32;
    /// Length of one spin, in nanoseconds, after which a waiter asks again how long it may spin. 0:
    /// it does not spin.
    const PIECE_NS: u32;
    /// Remaining time of its slice, in nanoseconds, at which a waiter goes to sleep; the head of a
    /// socket goes to sleep when at most one piece is left.
    const MARGIN_NS: u32;
}

/// The published batch; a waiter sleeps as soon as another thread wants its CPU, a head when its
/// slice is over.
pub struct Standard;

impl CstForm for Standard {
    const BATCH: u32 = 128;
    const PIECE_NS: u32 = 5_000;
    const MARGIN_NS: u32 = ALONE;
}

/// A waiter spins to the end of its time slice. On a crowded machine, a waiter that was woken with
/// the lock then waits for the slices of the threads that wait for it.
pub struct Quantum;

impl CstForm for Quantum {
    const BATCH: u32 = 128;
    const PIECE_NS: u32 = 5_000;
    const MARGIN_NS: u32 = 5_000;
}

//! The events of each thread: the part of a recording of [`Scope::Events`].
//!
//! After the tables, the file has [`CHUNKS`] chunks of 64 KiB. A thread claims one, fills it with
//! events in the order of time, and claims the next. No other thread uses its chunk, so an event is
//! three plain stores. A process maps the chunks that it uses, the first ones first. The reader
//! takes full chunks ([`Recording::drain`]) while the program runs, and frees them. A thread that
//! ends gives its chunk back as it is; chunks of threads that were killed are taken when few are
//! free ([`Recording::reclaim`]). A thread that finds no free chunk drops its events, and counts
//! them, for itself and in total.
//!
//! ```text
//!        claims               is full              is read
//!  FREE ────────► OWNED(thread) ────────► FULL ────────────► FREE
//!                        │ or the thread ends
//!                        └ the program is gone, and it is read as it is
//! ```
//!
//! - **CHUNK-1** Only the thread that has claimed a chunk writes to it, until its state is `FULL`:
//!   the exchange of `FREE` for `OWNED` succeeds in one thread.
//! - **CHUNK-2** A reader that sees `FULL` (acquire) sees all of the chunk: `FULL` is stored last
//!   (release). A thread that claims a chunk is ordered after the reader that has read it.
//! - **CHUNK-3** The child of a fork, whose pen still names the parent's chunk, does not write
//!   there: the chunk names its owner.
//! - **CHUNK-4** One writer at a time writes to a chunk: a signal handler that finds its thread in
//!   the middle of writing drops its event. Otherwise it could fill the chunk, and the interrupted
//!   thread would continue in a chunk that another thread owns by then.
//! - **CHUNK-5** A chunk is consistent whenever its thread is killed: the owner is stored after the
//!   rest of the head, and an event is counted after it is written. A chunk that was claimed and
//!   not named stays without an owner and empty.
//! - **CHUNK-6** A chunk is taken from a thread only if it is full, was given back, or if the
//!   thread no longer exists. That can't be known of a thread whose id names another one here.
//!
//! The same lines run in the model checker (`antiphon lab check chunks`), which explores what
//! [`Memory`] allows: threads that write, one that reads, forks, signals and kills at any point.
//!
//! [`Scope::Events`]: crate::Scope::Events
//! [`Recording::drain`]: crate::Recording::drain
//! [`Recording::reclaim`]: crate::Recording::reclaim

mod drain;
mod memory;
mod note;
mod pen;
mod shelf;

pub use drain::{Clock, Place};
pub use memory::{Mapped, Memory, Word};
pub use note::{ALL, Code, NOTIFIED, Note, SHARED, TRIED, address_tag};
pub use pen::{Pen, Roll};
pub use shelf::{Batch, Head, Shelf, drain, reclaim};

use core::mem::size_of;

use crate::layout::{FILE_BYTES, GRANULE, Section};

/// Number of chunks.
pub const CHUNKS: usize = CHUNK.records;

/// Number of events in a chunk.
const EVENTS: usize = (CHUNK_BYTES - 64) / 16;
const CHUNK_BYTES: usize = 1 << 16;

/// States of a chunk.
const FREE: u32 = 0;
const OWNED: u32 = 1;
const FULL: u32 = 2;

/// Length of the events' part of the file, in bytes.
pub const ROLL_BYTES: u64 = CHUNK.end() - FILE_BYTES;

/// Length of the head of that part, in bytes.
pub(crate) const HEAD_BYTES: usize = size_of::<RollHead>().next_multiple_of(GRANULE);

/// The chunks, in pieces. They follow the head, whose length depends on their number.
pub(crate) const CHUNK: Section = {
    const COLUMN: Section = Section::column::<Shared>(0, 4, 8);
    const HEAD: usize = size_of::<RollHead<Mapped, { COLUMN.records }>>();
    Section { offset: FILE_BYTES + HEAD.next_multiple_of(GRANULE) as u64, ..COLUMN }
};

/// A chunk that processes share.
pub(crate) type Shared = Chunk<Mapped, EVENTS>;

/// The header of the chunks. All zero at first.
#[repr(C)]
pub struct RollHead<M: Memory = Mapped, const COUNT: usize = CHUNKS> {
    _reserved: u32,
    /// Number of threads that have a number.
    threads: M::U32,
    /// Number of events of all threads that found no room.
    dropped: M::U64,
    _padding: [u32; 12],
    /// The state of each chunk, separate from the chunks so that a reader finds full ones quickly.
    states: [M::U32; COUNT],
}

/// Some of the events of one thread.
#[repr(C)]
pub struct Chunk<M: Memory = Mapped, const ROOM: usize = EVENTS> {
    /// 1 + the process's record in the high half, the thread's number in the low one; 0 without an
    /// owner.
    owner: M::U64,
    /// Number of chunks that the thread had before.
    sequence: M::U32,
    /// Number of events that the thread dropped after its previous chunk.
    lost: M::U32,
    /// Number of events in the chunk.
    used: M::U32,
    /// The kernel's id of the thread.
    tid: M::U32,
    _padding: [u32; 10],
    events: [Record<M>; ROOM],
}

/// An event as it is written.
#[repr(C)]
struct Record<M: Memory = Mapped> {
    time: M::U64,
    /// Code, flags, 16 unused bits, and the object in the upper half.
    word: M::U64,
}

impl<M: Memory, const COUNT: usize> RollHead<M, COUNT> {
    /// The head of chunks that are all free, for callers without a file.
    pub const NEW: Self = Self {
        _reserved: 0,
        threads: M::U32::ZERO,
        dropped: M::U64::ZERO,
        _padding: [0; 12],
        states: [const { M::U32::ZERO }; COUNT],
    };
}

impl<M: Memory, const ROOM: usize> Chunk<M, ROOM> {
    /// A chunk that is free.
    pub const NEW: Self = Self {
        owner: M::U64::ZERO,
        sequence: M::U32::ZERO,
        lost: M::U32::ZERO,
        used: M::U32::ZERO,
        tid: M::U32::ZERO,
        _padding: [0; 10],
        events: [const { Record { time: M::U64::ZERO, word: M::U64::ZERO } }; ROOM],
    };
}

const _: () = assert!(size_of::<Chunk>() == CHUNK_BYTES);

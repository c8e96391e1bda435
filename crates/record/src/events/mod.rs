//! The events of each thread: the part of a recording of [`Scope::Events`].
//!
//! Behind the tables, the file has [`CHUNKS`] chunks of 64 KiB. A thread claims one, fills it with
//! events in the order of time, and claims the next; it shares it with no other, so an event is
//! three plain stores. A process maps the chunks that it uses, the first ones first. Full chunks
//! are taken by the reader ([`Recording::drain`]), while the program runs, and are free again. A
//! thread that ends gives its chunk back as it is; those of threads that were killed are taken when
//! few are free ([`Recording::reclaim`]). A thread that finds no chunk free drops its events, and
//! counts them, for itself and for all.
//!
//! ```text
//!        claims               is full              is read
//!  FREE ────────► OWNED(thread) ────────► FULL ────────────► FREE
//!                        │ or the thread ends
//!                        └ the program is gone, and it is read as it is
//! ```
//!
//! - **CHUNK-1** Only the thread that has claimed a chunk writes to it, until it says `FULL`: the
//!   exchange of `FREE` for `OWNED` is had by one.
//! - **CHUNK-2** A reader of a chunk that is `FULL` (acquire) sees all of it: that is stored last
//!   (release). A thread that claims one comes after the reader that has read it.
//! - **CHUNK-3** The child of a fork, whose pen still names the parent's chunk, does not write
//!   there: the chunk names its owner.
//! - **CHUNK-4** One writer at a time writes to a chunk: a signal handler that finds its thread in
//!   the middle of writing drops its event. Otherwise it could fill the chunk, and the thread that
//!   it came upon would go on in a chunk that is another's by then.
//! - **CHUNK-5** A chunk is sound whenever its thread is killed: its owner stands there after the
//!   rest of its head, and an event is counted after it was written. One that was claimed and not
//!   named stays without an owner, with nothing in it.
//! - **CHUNK-6** A chunk is taken from a thread only if it is full, was given back, or if the
//!   thread is no more. Of a thread whose id means another one here that can't be said.
//!
//! The same lines run in the model checker (`antiphon lab check chunks`), which goes through what
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

/// How many chunks there are.
pub const CHUNKS: usize = CHUNK.records;

/// Events that a chunk has room for.
const EVENTS: usize = (CHUNK_BYTES - 64) / 16;
const CHUNK_BYTES: usize = 1 << 16;

/// States of a chunk.
const FREE: u32 = 0;
const OWNED: u32 = 1;
const FULL: u32 = 2;

/// How long the part of the file is, in bytes.
pub const ROLL_BYTES: u64 = CHUNK.end() - FILE_BYTES;

/// The length of the part's head in the file.
pub(crate) const HEAD_BYTES: usize = size_of::<RollHead>().next_multiple_of(GRANULE);

/// The chunks, in pieces. Behind their head, whose length depends on how many they are.
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
    /// How many threads have a number.
    threads: M::U32,
    /// How many events found no room, of all threads.
    dropped: M::U64,
    _padding: [u32; 12],
    /// The state of each chunk, apart from the chunks so that a reader that looks for full ones
    /// reads little.
    states: [M::U32; COUNT],
}

/// Some of the events of one thread.
#[repr(C)]
pub struct Chunk<M: Memory = Mapped, const ROOM: usize = EVENTS> {
    /// 1 + the process's record, above the thread's number; 0 while it has no owner.
    owner: M::U64,
    /// How many chunks the thread had before.
    sequence: M::U32,
    /// Events that the thread dropped after the chunk before.
    lost: M::U32,
    /// How many events are there.
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
    /// Code, flags, 16 bits of nothing, and the object in the upper half.
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

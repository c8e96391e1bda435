//! What each thread did, event by event: the part of a recording of [`Scope::Events`].
//!
//! Behind the tables, the file has [`CHUNKS`] chunks of 64 KiB. A thread claims one, fills it with
//! events in the order of time, and claims the next; it shares it with nobody, so an event is three
//! plain stores. Full chunks are taken by who reads ([`Recording::drain`]), while the program runs,
//! and are free again. A thread that ends gives its chunk back as it is; those of threads that were
//! killed are taken when few are free ([`Recording::reclaim`]). A thread that finds no chunk free
//! drops its events, and counts them, for itself and for all.
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
//! - **CHUNK-2** Who reads a chunk that is `FULL` (acquire) sees all of it: that is stored last
//!   (release).
//! - **CHUNK-3** The child of a fork, whose pen still names the parent's chunk, does not write
//!   there: the chunk names its owner.
//! - **CHUNK-4** One writes to a chunk at a time: a signal handler that finds its thread in the
//!   middle of writing drops its event. Else it could fill the chunk, and the thread that it came
//!   upon would go on in what is another's by then.
//! - **CHUNK-5** A chunk is sound whenever its thread is killed: its owner stands there after the
//!   rest of its head, and an event is counted after it was written.
//!
//! [`Scope::Events`]: crate::Scope::Events
//! [`Recording::drain`]: crate::Recording::drain
//! [`Recording::reclaim`]: crate::Recording::reclaim

mod drain;
mod pen;

pub use drain::{Batch, Clock, Place};
pub use pen::{Pen, Roll};

use core::mem::size_of;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// How many chunks there are.
pub const CHUNKS: usize = 1024;

/// Events that a chunk has room for.
pub(crate) const EVENTS: usize = (CHUNK_BYTES - 64) / 16;
const CHUNK_BYTES: usize = 1 << 16;

/// States of a chunk.
pub(crate) const FREE: u32 = 0;
pub(crate) const OWNED: u32 = 1;
pub(crate) const FULL: u32 = 2;

/// How long the part of the file is, in bytes.
pub const ROLL_BYTES: u64 = size_of::<RollLayout>() as u64;

/// The part of the file.
#[repr(C)]
pub struct RollLayout {
    /// Where to look first for a free one.
    pub(crate) next: AtomicU32,
    /// How many threads have a number.
    pub(crate) threads: AtomicU32,
    /// How many events found no room, of all threads.
    pub(crate) dropped: AtomicU64,
    pub(crate) _padding: [u32; 12],
    /// Of each chunk, apart from them so that who looks for full ones reads little.
    pub(crate) states: [AtomicU32; CHUNKS],
    pub(crate) chunks: [Chunk; CHUNKS],
}

/// Some of the events of one thread.
#[repr(C)]
pub(crate) struct Chunk {
    /// 1 + the process's record, above the thread's number; 0 while it is nobody's.
    pub(crate) owner: AtomicU64,
    /// How many chunks the thread had before.
    pub(crate) sequence: AtomicU32,
    /// Events that the thread dropped since the chunk before.
    pub(crate) lost: AtomicU32,
    /// How many events are there.
    pub(crate) used: AtomicU32,
    /// The kernel's id of the thread.
    pub(crate) tid: AtomicU32,
    pub(crate) _padding: [u32; 10],
    pub(crate) events: [Record; EVENTS],
}

/// An event as it is written.
#[repr(C)]
pub(crate) struct Record {
    pub(crate) time: AtomicU64,
    /// Code, flags, 16 bits of nothing, and the object in the upper half.
    pub(crate) word: AtomicU64,
}

const _: () = assert!(size_of::<Chunk>() == CHUNK_BYTES);

/// What a thread did, as it is noted in passing: objects are numbers of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// When, in ticks; for [`Code::Ran`] nanoseconds of the CPU.
    pub time: u64,
    /// What.
    pub code: Code,
    /// Further bits: see [`Code`].
    pub flags: u8,
    /// To what: see [`Code`].
    pub object: u32,
}

/// What a [`Note`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// A thread begins.
    Begins = 1,
    /// It ends.
    Ends,
    /// It waits for a lock; object: the row.
    Waits,
    /// It has a lock; object: the row; flags: [`SHARED`], [`TRIED`].
    Takes,
    /// It gives up to wait for a lock; object: the row.
    GivesUp,
    /// It releases a lock; object: the row at which it was taken.
    Releases,
    /// It releases a lock whose row is not known; object: a key of the address.
    ReleasesAt,
    /// It waits on a condition variable; object: the row.
    Sleeps,
    /// That wait is over; object: the row; flag: [`NOTIFIED`].
    Wakes,
    /// It notifies; object: the row; flag: [`ALL`].
    Notifies,
    /// It has made a thread; object: that one's number.
    Creates,
    /// It waits for the end of a thread; object: that one's number.
    Joins,
    /// That wait is over; object: the same.
    Joined,
    /// Since the note before, it had the CPU for so long; object: how often it left that of its own
    /// accord.
    Ran,
    /// What the thread does; object: 1 + the record of the site at which it begins.
    Role,
}

impl Code {
    const ALL: [Self; 15] = [
        Self::Begins,
        Self::Ends,
        Self::Waits,
        Self::Takes,
        Self::GivesUp,
        Self::Releases,
        Self::ReleasesAt,
        Self::Sleeps,
        Self::Wakes,
        Self::Notifies,
        Self::Creates,
        Self::Joins,
        Self::Joined,
        Self::Ran,
        Self::Role,
    ];
}

/// Of [`Code::Takes`]: beside others, to read.
pub const SHARED: u8 = 1;
/// Of [`Code::Takes`]: it would not have waited.
pub const TRIED: u8 = 2;
/// Of [`Code::Wakes`].
pub const NOTIFIED: u8 = 1;
/// Of [`Code::Notifies`]: all who wait.
pub const ALL: u8 = 1;

/// What tells the address of an object from others that a thread holds.
#[must_use]
pub const fn address_tag(address: usize) -> u32 {
    // Aligned to four bytes at least; of the upper half all is mixed in.
    (address >> 2) as u32 ^ (address >> 34) as u32
}

impl Note {
    pub(crate) const fn word(self) -> u64 {
        self.code as u64 | (self.flags as u64) << 8 | (self.object as u64) << 32
    }

    pub(crate) fn of(time: u64, word: u64) -> Option<Self> {
        let code = usize::from(word as u8).checked_sub(1)?;
        let code = *Code::ALL.get(code)?;
        Some(Self { time, code, flags: (word >> 8) as u8, object: (word >> 32) as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        for (at, code) in Code::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, at + 1);
            let note = Note { time: u64::MAX, code, flags: 3, object: u32::MAX - 7 };
            assert_eq!(Note::of(note.time, note.word()), Some(note));
        }
        assert_eq!(Note::of(1, 0), None);
        assert_eq!(Note::of(1, 16), None);
    }
}

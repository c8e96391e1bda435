//! The recorder's note in a lock: where it was initialised, and its last hold.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

use antiphon_record::RowWriter;

/// The bit of [`Note::since`] that marks the call site where the lock was initialised, beside its
/// address. No time in ticks has it.
const MADE: u64 = 1 << 63;

/// The recorder's note in a lock. All zero: as far as is known, no thread has held the lock yet.
#[repr(C)]
pub(crate) struct Note {
    /// When the exclusive owner took the lock, in ticks. Until the first recorded hold, where the
    /// lock was initialised: see [`MADE`].
    pub(super) since: AtomicU64,
    /// The row of the last acquisition.
    pub(super) row: AtomicU32,
    /// The tag of that row's call site and process, 0 for none.
    pub(super) tag: AtomicU32,
}

impl Note {
    /// An empty note.
    pub(crate) const fn new() -> Self {
        Self { since: AtomicU64::new(0), row: AtomicU32::new(0), tag: AtomicU32::new(0) }
    }

    /// Stores that the lock was initialised by a call from `site`, before any other thread knows
    /// the lock.
    pub(crate) fn made(&self, site: usize) {
        self.since.store(site as u64 | MADE, Relaxed);
    }

    /// The call site where the lock was initialised, until its first recorded hold.
    pub(super) fn made_at(&self) -> Option<usize> {
        // Relaxed: a hold that begins meanwhile replaces the word as a whole.
        let since = self.since.load(Relaxed);
        (since & MADE != 0).then_some((since & !MADE) as usize)
    }

    /// In a condition variable: the row of its notifications from `site`, which `find` looks up if
    /// the last one came from another site. Several threads may notify at once, so row and tag are
    /// in one word.
    pub(super) fn notifies(
        &self,
        process: Option<u32>,
        site: usize,
        find: impl FnOnce() -> RowWriter,
    ) -> RowWriter {
        let tag = tag(process, site);
        let kept = self.since.load(Relaxed);
        if let Some(row) = RowWriter::from_bits((kept >> 32) as u32).filter(|_| kept as u32 == tag)
        {
            return row;
        }
        let row = find();
        self.since.store(u64::from(row.bits()) << 32 | u64::from(tag), Relaxed);
        row
    }
}

/// A lock that has a note.
#[derive(Clone, Copy)]
pub(crate) struct Noted<'a> {
    pub(crate) address: usize,
    pub(crate) note: &'a Note,
}

/// A hash of call site and process. Never zero.
pub(super) fn tag(process: Option<u32>, site: usize) -> u32 {
    // All processes without a record count as one.
    let process = process.unwrap_or(u32::MAX);
    (site as u32 ^ process.wrapping_mul(0x9e37_79b1)) | 1
}

//! Records the locks that each thread holds, in the full mode.
//!
//! A lock that is held exclusively stores the beginning of the hold in itself, where its owner may
//! write ([`Note`]). A lock that several threads hold to read can't, so each thread stores its own
//! holds ([`Slot`]). A thread also remembers which locks it holds, for the order of locks.
//!
//! Rows are looked up by hash; therefore the row of the last acquisition is cached with a tag of
//! its site, which is usually the same again. For a lock held exclusively the cache is in the note;
//! for a shared lock in the slot, which keeps its content when the lock is released.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_record::events::{Code, SHARED, TRIED as TRIED_TO};
use antiphon_record::{Kind, RowWriter};

use super::note::{Noted, tag};
use super::stint::Stint;
use super::{Visit, events, process, thread_record, visit_of, writer};
use crate::thread::{self, HELD, Slot, Thread};
use crate::{mode, ticks};

/// A bit of [`Slot::row`], beside the row: the lock was only tried.
const TRIED: u32 = 1 << 31;

/// The rows of the locks that the calling thread holds, the latest first; in the full mode only.
pub(super) fn rows() -> impl Iterator<Item = RowWriter> {
    let thread = thread::current();
    let holding = if mode::records_all() { thread.holding.load(Relaxed) as usize } else { 0 };
    let held = thread.held[..holding.min(HELD)].iter().rev();
    held.filter_map(|slot| RowWriter::from_bits(slot.row.load(Relaxed) & !TRIED))
}

impl Visit {
    /// Records that the visitor has the lock exclusively, after a wait. In the full mode the hold
    /// begins.
    pub(crate) fn acquired_alone(self, lock: Noted<'_>, site: usize) {
        if !mode::records_all() {
            return self.acquired();
        }
        self.note(lock, tag(process(self.writer), site));
        self.begin_alone(lock, false);
    }

    /// [`acquired_alone`](Self::acquired_alone) for a lock that the visitor holds to read.
    pub(crate) fn acquired_shared(self, lock: Noted<'_>, site: usize) {
        if !mode::records_all() {
            return self.acquired();
        }
        self.begin_shared(lock, tag(process(self.writer), site), false);
    }

    /// Stores the row in a lock that the visitor holds exclusively.
    fn note(self, lock: Noted<'_>, tag: u32) {
        // An empty note means a new lock, even if another lock was at this address before.
        if lock.note.row.load(Relaxed) == 0 {
            self.renews(lock);
        }
        lock.note.row.store(self.row.bits(), Relaxed);
        lock.note.tag.store(tag, Relaxed);
    }

    /// For a lock that several threads may hold to read: if it is new, the first holder records
    /// that.
    fn renews_shared(self, lock: Noted<'_>) {
        let row = &lock.note.row;
        if row.load(Relaxed) == 0
            && row.compare_exchange(0, self.row.bits(), Relaxed, Relaxed).is_ok()
        {
            self.renews(lock);
        }
    }

    /// Records that the lock is new. If no call has initialised it, one may have initialised the
    /// earlier lock at its address.
    fn renews(self, lock: Noted<'_>) {
        self.writer.renewed(self.row);
        if lock.note.made_at().is_none() {
            self.writer.made(self.row, 0);
        }
    }

    /// Counts the acquisition, and begins the hold of the lock; `tried` if the visitor would not
    /// have waited for it.
    fn begin_alone(self, lock: Noted<'_>, tried: bool) {
        let _ = self.push(lock.address, 0, tried);
        lock.note.since.store(ticks::now(), Relaxed);
    }

    fn begin_shared(self, lock: Noted<'_>, tag: u32, tried: bool) {
        self.renews_shared(lock);
        if let Some(slot) = self.push(lock.address, tag, tried) {
            slot.since.store(ticks::now(), Relaxed);
        }
    }

    /// Counts the acquisition, remembers that the thread holds the lock, and records after which
    /// others it was taken. `None` if the thread holds more locks than it has slots.
    fn push(self, address: usize, tag: u32, tried: bool) -> Option<&'static Slot> {
        let thread = thread::current();
        let holding = thread.holding.load(Relaxed) as usize;
        let way = if self.row.is_shared() { SHARED } else { 0 };
        events::at_row(Code::Takes, way | if tried { TRIED_TO } else { 0 }, self.row);
        let nested = if holding == 0 { 1 } else { thread.nested.load(Relaxed).saturating_add(1) };
        thread.nested.store(nested, Relaxed);
        self.writer.acquired_to_hold(self.thread, self.row, holding, u64::from(nested));
        if holding != 0 && !tried {
            self.order_after(&thread.held[..holding.min(HELD)]);
        }
        let slot = thread.held.get(holding)?;
        // Counted first: a signal handler that locks takes the next slot.
        thread.holding.store(holding as u32 + 1, Relaxed);
        slot.lock.store(address as u64, Relaxed);
        slot.row.store(self.row.bits() | if tried { TRIED } else { 0 }, Relaxed);
        slot.tag.store(tag, Relaxed);
        Some(slot)
    }

    /// Records that this lock was taken after those of `held`: after the last of them; and if that
    /// was only tried, which orders it after no other, also after the one before it.
    #[cold]
    fn order_after(self, held: &[Slot]) {
        let row = |held: &Slot| RowWriter::from_bits(held.row.load(Relaxed) & !TRIED);
        for last in held.iter().rev() {
            if let Some(last) = row(last) {
                self.writer.ordered(last, self.row, held.iter().filter_map(row));
            }
            if last.row.load(Relaxed) & TRIED == 0 {
                return;
            }
        }
    }
}

/// Counts an acquisition without a wait, in the full mode: the caller has the lock exclusively.
///
/// Usually the site is that of the last acquisition, and no look-up is needed; the owner of the
/// lock may read and write its note.
pub(crate) fn alone_at_once(lock: Noted<'_>, kind: Kind, site: usize, tried: bool) {
    let Some(writer) = writer() else { return };
    let stint = Stint::begins();
    let process = process(writer);
    let tag = tag(process, site);
    let kept = RowWriter::from_bits(lock.note.row.load(Relaxed));
    let kept = kept.filter(|_| lock.note.tag.load(Relaxed) == tag);
    let visit = match kept {
        Some(row) => Visit { writer, thread: thread_record(writer, process), row, kind },
        None => {
            let visit = visit_of(writer, kind, (lock.address, lock.note.made_at()), site);
            visit.note(lock, tag);
            visit
        }
    };
    visit.begin_alone(lock, tried);
    stint.ends(Code::Takes);
}

/// [`alone_at_once`] for a lock that the caller holds to read: if its thread last acquired the same
/// lock from the same site at this depth, no look-up is needed.
pub(crate) fn shared_at_once(lock: Noted<'_>, site: usize, tried: bool) {
    let Some(writer) = writer() else { return };
    let stint = Stint::begins();
    let process = process(writer);
    let tag = tag(process, site);
    let thread = thread::current();
    let kept = thread.held.get(thread.holding.load(Relaxed) as usize).filter(|slot| {
        slot.lock.load(Relaxed) == lock.address as u64 && slot.tag.load(Relaxed) == tag
    });
    let row = kept.and_then(|slot| RowWriter::from_bits(slot.row.load(Relaxed) & !TRIED));
    let kind = Kind::Read;
    let visit = match row {
        Some(row) => Visit { writer, thread: thread_record(writer, process), row, kind },
        None => visit_of(writer, kind, (lock.address, lock.note.made_at()), site),
    };
    visit.begin_shared(lock, tag, tried);
    stint.ends(Code::Takes);
}

/// Records that the caller is about to release a lock that it holds exclusively.
#[inline]
pub(crate) fn releases(lock: Noted<'_>) {
    let since = lock.note.since.load(Relaxed);
    // The hold of a lock with the mark `MADE` has not been recorded.
    if since.cast_signed() > 0 {
        hold_ends(lock, since);
    }
}

#[inline(never)]
fn hold_ends(lock: Noted<'_>, since: u64) {
    let stint = Stint::begins();
    lock.note.since.store(0, Relaxed);
    let Some(row) = RowWriter::from_bits(lock.note.row.load(Relaxed)) else { return };
    if let Some(writer) = writer() {
        writer.held(row, ticks::ns_since(since));
        events::at_row(Code::Releases, 0, row);
    }
    // There is no slot if another thread took the lock: that thread's slot then remains.
    let thread = thread::current();
    if let Some(at) = position(thread, lock.address) {
        remove(thread, at);
    }
    stint.ends(Code::Releases);
}

/// Records that the caller is about to release a lock that it holds to read.
pub(crate) fn releases_shared(address: usize) {
    let stint = Stint::begins();
    let thread = thread::current();
    // There is no slot if another thread took the lock, or if this thread held more locks than it
    // has slots.
    let Some(at) = position(thread, address) else { return };
    let slot = &thread.held[at];
    let row = RowWriter::from_bits(slot.row.load(Relaxed) & !TRIED);
    if let Some((row, writer)) = row.zip(writer()) {
        writer.held(row, ticks::ns_since(slot.since.load(Relaxed)));
        events::at_row(Code::Releases, 0, row);
    }
    remove(thread, at);
    stint.ends(Code::Releases);
}

/// The index of the thread's slot for that lock; the last, if there are several.
fn position(thread: &Thread, address: usize) -> Option<usize> {
    let holding = (thread.holding.load(Relaxed) as usize).min(HELD);
    thread.held[..holding].iter().rposition(|held| held.lock.load(Relaxed) == address as u64)
}

/// Removes the slot at `at`.
fn remove(thread: &Thread, at: usize) {
    let holding = (thread.holding.load(Relaxed) as usize).min(HELD);
    for pair in thread.held[at..holding].windows(2) {
        pair[0].copy(&pair[1]);
    }
    thread.holding.store(holding as u32 - 1, Relaxed);
}

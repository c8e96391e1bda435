//! A growing array of records in a mapped file.
//!
//! A recording has room for thousands of locks, and most programs use a few. So only the used part
//! of each table is mapped: the first piece from the beginning, and each further piece, twice as
//! long as the previous one, when a record in it is first needed.
//!
//! ```text
//!   records   0 … F      F … 3F          3F … 7F                        F: a power of two
//!   pieces    │  0  │    1      │        2            │  …
//! ```
//!
//! The pieces follow each other in the file. So the next one is mapped from the previous one, by
//! `mremap` of its last page with a length of 0, which maps the same pages of a shared file once
//! more, and those that follow. This needs neither a descriptor, which a daemon closes, nor the
//! file's name, which has no meaning in another root directory.
//!
//! If a piece can't be mapped (a limit on memory, a filter of system calls), the next access tries
//! again; until then its records are lost, and counted by the caller.

use core::mem::size_of;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr};

use crate::layout::GRANULE;

/// Most pieces of a column.
pub(crate) const PIECES: usize = 10;

/// Whether this process must map nothing more.
static FROZEN: AtomicBool = AtomicBool::new(false);

/// Keeps this process from mapping more of its recording: a filter of system calls may kill it for
/// that.
pub fn freeze() {
    // Relaxed: the flag publishes no other data.
    FROZEN.store(true, Relaxed);
}

/// An array of records of type `T`, as far as this process has mapped it.
///
/// A `T` consists of atomic words, for which any bits are valid.
pub struct Column<T> {
    /// Number of records in the first piece, a power of two.
    first: usize,
    /// Number of pieces in the file.
    count: usize,
    /// The address of each piece; null while it is not mapped.
    pieces: [AtomicPtr<T>; PIECES],
}

impl<T: 'static> Column<T> {
    /// A column without mapped pieces.
    pub(crate) const fn new(first: usize, count: usize) -> Self {
        assert!(first.is_power_of_two() && count <= PIECES && count > 0);
        assert!((first * size_of::<T>()).is_multiple_of(GRANULE));
        Self { first, count, pieces: [const { AtomicPtr::new(null_mut()) }; PIECES] }
    }

    /// A column of one piece, in static memory: for callers without a file.
    pub const fn whole(records: &'static [T]) -> Self {
        assert!(records.len().is_power_of_two());
        let mut pieces = [const { AtomicPtr::new(null_mut()) }; PIECES];
        pieces[0] = AtomicPtr::new(records.as_ptr().cast_mut());
        Self { first: records.len(), count: 1, pieces }
    }

    /// The length of the first piece, in bytes.
    pub(crate) const fn first_bytes(&self) -> usize {
        self.first * size_of::<T>()
    }

    /// Sets the address of the first piece.
    ///
    /// # Safety
    ///
    /// The first piece is mapped at `base`, shared, readable and writable, for as long as the
    /// process lives, and the other pieces follow in the file.
    pub(crate) unsafe fn begins_at(&self, base: *mut T) {
        // Release: pairs with the acquire in `piece`.
        self.pieces[0].store(base, Release);
    }

    /// The record at `index`; `None` if it does not exist, or its memory can't be mapped.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> Option<&'static T> {
        let (piece, at) = self.place(index);
        // Acquire: the mapping; pairs with the release in `begins_at` and `extend`.
        let base = self.pieces.get(piece)?.load(Acquire);
        if base.is_null() {
            return self.get_first(piece, at);
        }
        // SAFETY: never unmapped, with room for the records of the piece, of which `at` is one; a
        // record is atomic, and any bits are valid for it.
        Some(unsafe { &*base.add(at) })
    }

    /// The first record that is needed of a piece.
    #[cold]
    fn get_first(&self, piece: usize, at: usize) -> Option<&'static T> {
        self.piece(piece)?.get(at)
    }

    /// The piece of a record, and its position in the piece.
    #[inline]
    const fn place(&self, index: usize) -> (usize, usize) {
        // At least the first power of two; an index that is too large is in no piece.
        let number = index.saturating_add(self.first);
        let piece = number.ilog2() - self.first.ilog2();
        (piece as usize, number - (self.first << piece))
    }

    /// The index of the first record of a piece.
    pub(crate) const fn begin(&self, piece: usize) -> usize {
        (self.first << piece) - self.first
    }

    /// Number of pieces in the file.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// The records of a piece, which is mapped first if necessary; `None` if it can't be mapped.
    pub(crate) fn piece(&self, piece: usize) -> Option<&'static [T]> {
        if piece >= self.count {
            return None;
        }
        if self.mapped(piece).is_none() {
            (1..=piece).try_for_each(|piece| self.extend(piece))?;
        }
        self.mapped(piece)
    }

    /// The records of a piece, if it is mapped.
    pub(crate) fn mapped(&self, piece: usize) -> Option<&'static [T]> {
        // Acquire: as in `get`.
        let base = self.pieces.get(piece)?.load(Acquire);
        // SAFETY: never unmapped, in its full length; as in `get`.
        (!base.is_null()).then(|| unsafe { core::slice::from_raw_parts(base, self.first << piece) })
    }

    /// Maps a piece, if it is not mapped. The previous piece must be mapped.
    #[cold]
    fn extend(&self, piece: usize) -> Option<()> {
        // Acquire: the mapping of another thread, as in `get`.
        if !self.pieces[piece].load(Acquire).is_null() {
            return Some(());
        }
        let before = self.mapped(piece - 1)?;
        let page = before.as_ptr_range().end.wrapping_byte_sub(GRANULE);
        let bytes = (self.first << piece) * size_of::<T>();
        let new =
            if FROZEN.load(Relaxed) { None } else { map_behind(page.cast_mut().cast(), bytes) };
        let new = new?.cast::<T>();
        // Release: publishes the mapping, pairs with the acquire in `get`. Acquire: another
        // thread's mapping.
        if self.pieces[piece].compare_exchange(null_mut(), new, AcqRel, Acquire).is_err() {
            unmap(new.cast(), bytes);
        }
        Some(())
    }
}

/// Maps the `bytes` of a file that follow the granule mapped at `page`.
fn map_behind(page: *mut u8, bytes: usize) -> Option<*mut u8> {
    errno_kept(|| {
        let length = GRANULE + bytes;
        // SAFETY: with a length of 0 the old mapping stays; the new one is at an address of the
        // kernel's choice, and affects no memory in use.
        let new = unsafe { libc::mremap(page.cast(), 0, length, libc::MREMAP_MAYMOVE) };
        if new == libc::MAP_FAILED {
            return None;
        }
        // The granule that was mapped again.
        unmap(new.cast(), GRANULE);
        Some(new.cast::<u8>().wrapping_add(GRANULE))
    })
}

fn unmap(at: *mut u8, bytes: usize) {
    errno_kept(|| {
        // SAFETY: mapped by `map_behind` just now, and unknown to other code.
        unsafe { libc::munmap(at.cast(), bytes) };
    });
}

/// Runs `f` and restores `errno`, which a lock function must not change.
pub(crate) fn errno_kept<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: `errno` of this thread always exists.
    let place = unsafe { &mut *libc::__errno_location() };
    let saved = *place;
    let result = f();
    *place = saved;
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;
    use std::os::fd::AsRawFd as _;

    type Words = [AtomicU64; 8];
    const FIRST: usize = GRANULE / size_of::<Words>();

    /// A column of a file, whose descriptor is closed by now.
    fn column(pieces: usize) -> &'static Column<Words> {
        let name = format!("antiphon-column-{}-{pieces}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut options = std::fs::File::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.expect("a file");
        std::fs::remove_file(&path).expect("it was there");
        file.set_len(((FIRST * size_of::<Words>()) << pieces) as u64).expect("its length");
        let column = Box::leak(Box::new(Column::new(FIRST, pieces)));
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let (bytes, fd) = (column.first_bytes(), file.as_raw_fd());
        // SAFETY: a new mapping at an address of the kernel's choice; it outlives the descriptor.
        let base = unsafe { libc::mmap(null_mut(), bytes, access, libc::MAP_SHARED, fd, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        // SAFETY: mapped above and never unmapped, and the file has the length of all pieces.
        unsafe { column.begins_at(base.cast()) };
        column
    }

    #[test]
    fn each_record_has_a_place_of_its_own_and_keeps_what_it_is_told() {
        let column = column(4);
        let all = FIRST * 15;
        let word = |index: usize| column.get(index).map(|words| &words[7]);
        for index in (0..all).rev() {
            word(index).expect("a record").store(index as u64 + 1, Relaxed);
        }
        for index in 0..all {
            assert_eq!(word(index).map(|word| word.load(Relaxed)), Some(index as u64 + 1));
        }
        assert!(column.get(all).is_none() && column.get(usize::MAX).is_none());
        assert_eq!(
            (0..4).map(|piece| column.begin(piece)).collect::<Vec<_>>(),
            [0, FIRST, 3 * FIRST, 7 * FIRST]
        );
    }

    #[test]
    fn a_piece_is_mapped_when_it_is_wanted_and_not_before() {
        let column = column(3);
        assert!(column.mapped(0).is_some() && column.mapped(1).is_none());
        assert!(column.get(FIRST - 1).is_some() && column.mapped(1).is_none());
        assert!(column.get(FIRST).is_some() && column.mapped(1).is_some());
        assert!(column.mapped(2).is_none());
        assert_eq!(column.piece(2).map(<[_]>::len), Some(4 * FIRST));
    }

    #[test]
    fn threads_that_want_the_same_piece_get_one() {
        let column = column(5);
        let add = || {
            for index in 0..FIRST * 31 {
                column.get(index).expect("a record")[0].fetch_add(1, Relaxed);
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(add)));
        let counts = (0..FIRST * 31).filter_map(|index| column.get(index));
        assert!(counts.map(|words| words[0].load(Relaxed)).all(|count| count == 4));
    }
}

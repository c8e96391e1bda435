//! Where everything stands in the file.
//!
//! Records are made of 64-bit words in the byte order of the machine, all zero at first. A record's
//! first word is its key: zero while the record is free, and written once, by an exchange. The rest
//! of a record is written after its key, so a reader may see a fresh record half filled in.
//!
//! ```text
//!  0      header, costs, the row of all the rest
//!         processes, modules, sites, locks, threads, edges, programs, stacks: by the hash of a key
//!         the index of rows: which row has a key
//!         rows, in the order in which they were made
//! ```
//!
//! Each table is a [`Column`](crate::Column): a process maps the begin of it, and more as it uses
//! more. So tables are searched piece by piece, and what has no room in one has its place in the
//! next.

use core::mem::{offset_of, size_of};
use core::sync::atomic::AtomicU64;

use crate::Kind;
use crate::histogram::BUCKETS;

/// The first bytes of the file: "ANTIPHON" and the version of this layout.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"ANTIPHON");
/// Changes with every change of this file.
pub const VERSION: u64 = 9;

/// Bytes of a module's path; a longer one keeps its end.
pub const PATH_BYTES: usize = 248;
/// Words of a module's build id: its length in a byte, and 23 bytes of it.
pub(crate) const BUILD_WORDS: usize = 3;
/// Bytes of a program's path; a longer one has no place.
pub const PROGRAM_BYTES: usize = 472;
/// Levels of nesting that are told apart.
pub const DEPTHS: usize = 16;

pub(crate) const COSTS: usize = 32;
pub(crate) const PROCESSES: usize = PROCESS.records;
pub(crate) const MODULES: usize = MODULE.records;
pub(crate) const ROWS: usize = BODY.records;

/// The size of pieces of the file is a multiple of this: a page of any size that the machine may
/// have.
pub(crate) const GRANULE: usize = if cfg!(target_arch = "x86_64") { 4 << 10 } else { 64 << 10 };

/// The length of the file, in bytes; [`events`](crate::events) stand behind it.
pub const FILE_BYTES: u64 = BODY.end();

/// The beginning of the file, which every process maps.
#[repr(C)]
pub struct Base {
    pub(crate) header: Header,
    /// By [`crate::events::Code`].
    pub(crate) costs: [CostRecord; COSTS],
    /// The row that stands for all that were not to be had.
    pub(crate) rest: RowBody,
}

#[repr(C)]
pub(crate) struct Header {
    pub(crate) magic: u64,
    pub(crate) version: u64,
    /// Of [`crate::Scope`].
    pub(crate) scope: u64,
    pub(crate) bytes: u64,
    /// Full tables: events that were not counted where they belong.
    pub(crate) dropped: [AtomicU64; DROPS],
    /// Programs that have loaded the library.
    pub(crate) started: AtomicU64,
    /// How often a program loaded objects that find the C library's functions before ours.
    pub(crate) bypasses: AtomicU64,
    /// How often another process's waiters were found at a mutex that is not flagged as shared.
    pub(crate) strangers: AtomicU64,
    /// The address of the last such mutex.
    pub(crate) strange_lock: AtomicU64,
    /// Of [`crate::Scope::Events`]: nanoseconds in 2^32 ticks, 0 until it is known.
    pub(crate) rate: AtomicU64,
    /// When the first process was ready, in ticks. Written before the rate.
    pub(crate) origin: AtomicU64,
    /// Cost of one reading of the clock of ticks, in 1024ths of a tick. Written before the rate.
    pub(crate) look: AtomicU64,
    /// How many rows have been made.
    pub(crate) rows: AtomicU64,
    pub(crate) _reserved: [u64; 64 - 4 - DROPS - 8],
}

/// The time that recording events of one kind took, as far as it was measured. In ticks.
#[repr(C)]
pub(crate) struct CostRecord {
    /// How many were timed.
    pub(crate) count: AtomicU64,
    /// From the beginning of the recorder's work to the time that the events have, summed up.
    pub(crate) before: AtomicU64,
    /// From there to its end.
    pub(crate) after: AtomicU64,
    pub(crate) _reserved: u64,
}

/// Counters of what found a table full.
pub(crate) const DROPS: usize = 9;

/// Which table was full.
#[derive(Clone, Copy)]
pub(crate) enum Full {
    Processes,
    Modules,
    Sites,
    Locks,
    Rows,
    Threads,
    Edges,
    Programs,
    Stacks,
}

#[repr(C)]
pub(crate) struct ProcessRecord {
    /// The kernel's process id, plus a serial number above it: ids are used again.
    pub(crate) key: AtomicU64,
    /// 1 + the record of the process that this one was forked from, 0 for none.
    pub(crate) parent: AtomicU64,
    /// Monotonic clock.
    pub(crate) began_ns: AtomicU64,
    /// 1 if its mutexes are in the light form.
    pub(crate) light: AtomicU64,
    /// The namespace in which its ids mean something, by the kernel's number of that; 0 if unknown.
    pub(crate) namespace: AtomicU64,
    pub(crate) _reserved: [u64; 3],
}

#[repr(C)]
pub(crate) struct ModuleRecord {
    /// A hash of the path, the device and the inode.
    pub(crate) key: AtomicU64,
    /// The length of the path.
    pub(crate) length: AtomicU64,
    /// As the mappings of a process have it.
    pub(crate) device: AtomicU64,
    pub(crate) inode: AtomicU64,
    /// When the file was written last, wall clock; 0 if unknown, or not needed.
    pub(crate) modified_ns: AtomicU64,
    pub(crate) _reserved: u64,
    /// All zero if there is none.
    pub(crate) build: [AtomicU64; BUILD_WORDS],
    pub(crate) path: [AtomicU64; PATH_BYTES / 8],
}

#[repr(C)]
pub(crate) struct SiteRecord {
    /// Process above address.
    pub(crate) key: AtomicU64,
    /// 1 + the module's record, 0 if it is not known (yet).
    pub(crate) module: AtomicU64,
    /// The offset of the site, in the module's file.
    pub(crate) offset: AtomicU64,
    pub(crate) _reserved: u64,
}

#[repr(C)]
pub(crate) struct LockRecord {
    /// Process above kind above address.
    pub(crate) key: AtomicU64,
    /// 1 + the site that was seen first, 0 if there was no room for one.
    pub(crate) first_site: AtomicU64,
    /// How many locks have stood at that address, one after the other, as far as was seen.
    pub(crate) lives: AtomicU64,
    pub(crate) _reserved: u64,
}

#[repr(C)]
pub(crate) struct ThreadRecord {
    /// Process above thread id.
    pub(crate) key: AtomicU64,
    /// By kind of wait: mutexes, condition variables, spinlocks.
    pub(crate) blocked_ns: [AtomicU64; 3],
    pub(crate) waits: AtomicU64,
    /// 1 + the row for which the thread waits now, 0 for none.
    pub(crate) waiting: AtomicU64,
    /// When that wait began, monotonic clock.
    pub(crate) since_ns: AtomicU64,
    pub(crate) acquisitions: AtomicU64,
    /// How often it took a lock while it held none.
    pub(crate) nests: AtomicU64,
    /// How many locks it took from then on until it held none again: in all, and most.
    pub(crate) nested: AtomicU64,
    pub(crate) nested_max: AtomicU64,
    /// As `blocked_ns`, by readers-writer locks.
    pub(crate) rwlock_ns: AtomicU64,
    /// 1 + the rows of the locks that it held when the wait began that goes on now, the one that it
    /// took last first; 0 for none. Of [`crate::Scope::Full`].
    pub(crate) held: [AtomicU64; WAIT_HELD],
    /// 1 + the stack of that wait, 0 for none.
    pub(crate) stack: AtomicU64,
    /// When a stack of the thread was taken last, monotonic clock.
    pub(crate) stack_ns: AtomicU64,
    pub(crate) _reserved: [u64; 15],
}

/// The callers of a call site, the innermost first, and the waits that began with them.
#[repr(C)]
pub(crate) struct StackRecord {
    /// A hash of the row and the frames.
    pub(crate) key: AtomicU64,
    /// 1 + the row.
    pub(crate) row: AtomicU64,
    /// How many frames there are, above whether they reach to where the thread began.
    pub(crate) length: AtomicU64,
    /// How many waits have ended, and how long they were.
    pub(crate) waits: AtomicU64,
    pub(crate) wait_ns: AtomicU64,
    /// Numbers of sites as [`Writer::site`](crate::Writer::site) has them, two in a word.
    pub(crate) frames: [AtomicU64; FRAMES / 2],
}

/// Frames of a stack that are kept.
pub const FRAMES: usize = 22;

/// Locks that a thread which waits is remembered to hold.
pub const WAIT_HELD: usize = 3;

/// Locks that are held beside the two of an edge and remembered.
pub(crate) const GUARDS: usize = 3;

/// All but the key and the count is of the present life of both locks, and of the last life in
/// which both orders were seen, once that is so.
#[repr(C)]
pub(crate) struct EdgeRecord {
    /// 1 + the lock that was held, above 1 + the lock that was taken.
    pub(crate) key: AtomicU64,
    pub(crate) count: AtomicU64,
    /// The lives of both, in the same order; zero until the rest is filled in.
    pub(crate) lives: AtomicU64,
    /// 1 + the row at which each was taken first.
    pub(crate) rows: AtomicU64,
    /// 1 + each of the locks that were held every time, beside that one; 0 for none.
    pub(crate) guards: [AtomicU64; GUARDS],
    /// 1 once both orders were seen in one life.
    pub(crate) inverted: AtomicU64,
}

/// A program that a process was about to execute.
#[repr(C)]
pub(crate) struct ProgramRecord {
    /// A hash of all the rest but the count.
    pub(crate) key: AtomicU64,
    pub(crate) count: AtomicU64,
    /// The real group of the process that executes it, above the real user.
    pub(crate) caller: AtomicU64,
    /// Of [`crate::HandedOn`].
    pub(crate) handed_on: AtomicU64,
    pub(crate) length: AtomicU64,
    pub(crate) path: [AtomicU64; PROGRAM_BYTES / 8],
}

/// Where the row of a key is.
#[repr(C)]
pub(crate) struct RowRecord {
    /// 1 + lock, above [`READS`], above 1 + site (or 0).
    pub(crate) key: AtomicU64,
    /// 1 + the row; 0 while it is being made.
    pub(crate) row: AtomicU64,
}

/// In the key of a row: a readers-writer lock was taken to read.
pub(crate) const READS: u64 = 1 << 31;

/// Takes the key of a row apart: 1 + lock, whether it [`READS`], 1 + site (or 0).
pub(crate) fn split_row_key(key: u64) -> (u64, bool, u64) {
    (key >> 32, key & READS != 0, key & (READS - 1))
}

/// The fields that every acquisition writes are in the first cache line, except for one bucket: a
/// lock's holders hand these lines to each other with the lock.
#[repr(C)]
pub(crate) struct RowBody {
    pub(crate) acquisitions: AtomicU64,
    pub(crate) hold: Total,
    /// How many other locks the thread held when it took this one here; the last is "or more".
    pub(crate) depths: [AtomicU64; DEPTHS],
    pub(crate) contended: AtomicU64,
    /// Waits that ended without the lock: timeouts, cancellations.
    pub(crate) gave_up: AtomicU64,
    pub(crate) wait: Total,
    /// The key of its [`RowRecord`]; 0 for none: nothing was counted here.
    pub(crate) key: AtomicU64,
    pub(crate) holds: [AtomicU64; BUCKETS],
    pub(crate) waits: [AtomicU64; BUCKETS],
    pub(crate) _padding: [u64; 8],
}

/// The fields of a histogram beside its counts.
#[repr(C)]
pub(crate) struct Total {
    pub(crate) sum_ns: AtomicU64,
    pub(crate) max_ns: AtomicU64,
}

/// A table as the reader finds it.
#[derive(Clone, Copy)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) records: usize,
    /// The number of words in a record.
    pub(crate) words: usize,
    /// The records of its first piece; each further piece has twice as many.
    pub(crate) first: usize,
    pub(crate) pieces: usize,
}

impl Section {
    /// A part of [`Base`].
    const fn part<T>(offset: usize, records: usize) -> Self {
        let words = size_of::<T>() / 8;
        Self { offset: offset as u64, records, words, first: records, pieces: 1 }
    }

    /// A column of `pieces` pieces that begins at `offset`. The first has `first` records, or as
    /// many as a granule has.
    pub(crate) const fn column<T>(offset: u64, first: usize, pieces: usize) -> Self {
        let granule = GRANULE / size_of::<T>();
        let first = if granule > first { granule.next_power_of_two() } else { first };
        assert!(first.is_power_of_two() && (first * size_of::<T>()).is_multiple_of(GRANULE));
        let records = (first << pieces) - first;
        Self { offset, records, words: size_of::<T>() / 8, first, pieces }
    }

    /// Where it ends.
    pub(crate) const fn end(self) -> u64 {
        self.offset + (self.records * self.words * 8) as u64
    }

    /// The pieces: the index of the first record of each, and how many there are.
    pub(crate) fn pieces(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.pieces).map(move |piece| ((self.first << piece) - self.first, self.first << piece))
    }
}

/// The length of [`Base`] in the file.
pub(crate) const BASE_BYTES: usize = size_of::<Base>().next_multiple_of(GRANULE);

pub(crate) const HEADER: Section = Section::part::<Header>(offset_of!(Base, header), 1);
pub(crate) const COST: Section = Section::part::<CostRecord>(offset_of!(Base, costs), COSTS);
pub(crate) const REST: Section = Section::part::<RowBody>(offset_of!(Base, rest), 1);
pub(crate) const PROCESS: Section = Section::column::<ProcessRecord>(BASE_BYTES as u64, 64, 6);
pub(crate) const MODULE: Section = Section::column::<ModuleRecord>(PROCESS.end(), 64, 3);
pub(crate) const SITE: Section = Section::column::<SiteRecord>(MODULE.end(), 128, 9);
pub(crate) const LOCK: Section = Section::column::<LockRecord>(SITE.end(), 128, 9);
pub(crate) const THREAD: Section = Section::column::<ThreadRecord>(LOCK.end(), 32, 8);
pub(crate) const EDGE: Section = Section::column::<EdgeRecord>(THREAD.end(), 64, 8);
pub(crate) const PROGRAM: Section = Section::column::<ProgramRecord>(EDGE.end(), 8, 6);
pub(crate) const STACK: Section = Section::column::<StackRecord>(PROGRAM.end(), 32, 10);
pub(crate) const ROW: Section = Section::column::<RowRecord>(STACK.end(), 256, 6);
pub(crate) const BODY: Section = Section::column::<RowBody>(ROW.end(), 8, 10);

/// Bits of an address in a key: what user space has on every 64-bit Linux without larger tables.
pub(crate) const ADDRESS_BITS: u32 = 48;

/// Bits of 1 + a process in a key. Above it there is room for a kind of locks.
const PROCESS_BITS: u32 = 13;

/// A key of something at an address. The lock kind stands above the process, which is never zero.
pub(crate) fn address_key(process: u64, kind: u64, address: u64) -> u64 {
    let address = address & ((1 << ADDRESS_BITS) - 1);
    (kind << PROCESS_BITS | (process + 1)) << ADDRESS_BITS | address
}

/// Takes an [`address_key`] apart: process, kind, address.
pub(crate) fn split_address_key(key: u64) -> (u64, u64, u64) {
    let high = key >> ADDRESS_BITS;
    // A program may have written over its recording: what names no process names one that is not.
    let process = (high & ((1 << PROCESS_BITS) - 1)).wrapping_sub(1);
    (process, high >> PROCESS_BITS, key & ((1 << ADDRESS_BITS) - 1))
}

const _: () = assert!(size_of::<Header>() == 512 && PROCESSES < (1 << PROCESS_BITS) - 1);
const _: () = assert!((Kind::RwLock as u64) < 1 << (64 - ADDRESS_BITS - PROCESS_BITS));
const _: () = assert!(size_of::<ModuleRecord>() == 320 && size_of::<ThreadRecord>() == 256);
const _: () = assert!(size_of::<StackRecord>() == 128 && FRAMES.is_multiple_of(2));
const _: () = assert!(size_of::<EdgeRecord>() == 64 && size_of::<LockRecord>() == 32);
const _: () = assert!(size_of::<ProgramRecord>() == 512 && size_of::<ProcessRecord>() == 64);
const _: () = assert!(size_of::<RowRecord>() == 16 && size_of::<RowBody>() == 10 << 10);
const _: () = assert!(offset_of!(Base, rest).is_multiple_of(64) && FILE_BYTES < 256 << 20);
// Locks and sites fit into their halves of a row's key.
const _: () = assert!(LOCK.records < 1 << 31 && (SITE.records as u64) < READS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_apart_as_they_were_put_together() {
        for (process, kind, address) in [(0, 0, 1), (4095, 7, 0x7fff_ffff_f000), (5, 3, 1 << 47)] {
            let key = address_key(process, kind, address);
            assert_ne!(key, 0);
            assert_eq!(split_address_key(key), (process, kind, address));
        }
    }

    #[test]
    fn keys_of_rows_come_apart_too() {
        let (lock, site) = (LOCK.records as u64, SITE.records as u64);
        assert_eq!(split_row_key(lock << 32 | READS | site), (lock, true, site));
        assert_eq!(split_row_key(lock << 32 | site), (lock, false, site));
    }

    #[test]
    fn tables_follow_each_other_and_their_pieces_too() {
        let tables = [PROCESS, MODULE, SITE, LOCK, THREAD, EDGE, PROGRAM, STACK, ROW, BODY];
        let mut end = BASE_BYTES as u64;
        for table in tables {
            assert_eq!(table.offset, end);
            end += (table.records * table.words * 8) as u64;
            let mut next = 0;
            for (begin, records) in table.pieces() {
                assert_eq!(begin, next);
                assert!((records * table.words * 8).is_multiple_of(GRANULE));
                next += records;
            }
            assert_eq!(next, table.records);
        }
        assert_eq!(end, FILE_BYTES);
    }

    #[test]
    fn a_program_of_one_lock_maps_little() {
        let tables = [PROCESS, MODULE, SITE, LOCK, THREAD, EDGE, PROGRAM, STACK, ROW, BODY];
        let bytes: usize = tables.iter().map(|table| table.first * table.words * 8).sum();
        assert!(bytes + BASE_BYTES <= if GRANULE == 4096 { 160 << 10 } else { 1 << 20 }, "{bytes}");
    }
}

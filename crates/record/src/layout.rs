//! Layout of the file: its records, tables and keys.
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
//! Each table is a [`Column`](crate::Column): a process maps its beginning, and more as it uses
//! more. So tables are searched piece by piece, and a record that has no room in one piece goes
//! into the next.

use core::mem::{offset_of, size_of};
use core::sync::atomic::AtomicU64;

use crate::Kind;
use crate::histogram::BUCKETS;

/// The first bytes of the file: "ANTIPHON" and the version of this layout.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"ANTIPHON");
/// Must change with every change of this file.
pub const VERSION: u64 = 11;

/// Bytes of a module's path; of a longer path the end is kept.
pub const PATH_BYTES: usize = 248;
/// Words of a module's build id: its length in a byte, and 23 bytes of it.
pub(crate) const BUILD_WORDS: usize = 3;
/// Bytes of a program's path; a longer path is not recorded.
pub const PROGRAM_BYTES: usize = 472;
/// Levels of nesting that are counted separately.
pub const DEPTHS: usize = 16;

pub(crate) const COSTS: usize = 32;
pub(crate) const PROCESSES: usize = PROCESS.records;
pub(crate) const MODULES: usize = MODULE.records;
pub(crate) const ROWS: usize = BODY.records;

/// Unit of the pieces' sizes: at least a page, whatever page size the machine has.
pub(crate) const GRANULE: usize = if cfg!(target_arch = "x86_64") { 4 << 10 } else { 64 << 10 };

/// The length of the file, in bytes; [`events`](crate::events) follow after it.
pub const FILE_BYTES: u64 = BODY.end();

/// The beginning of the file, which every process maps.
#[repr(C)]
pub struct Base {
    pub(crate) header: Header,
    /// Indexed by [`crate::events::Code`].
    pub(crate) costs: [CostRecord; COSTS],
    /// The row for events whose own row has no room.
    pub(crate) rest: RowBody,
}

#[repr(C)]
pub(crate) struct Header {
    pub(crate) magic: u64,
    pub(crate) version: u64,
    /// The bits of a [`crate::Scope`].
    pub(crate) scope: u64,
    pub(crate) bytes: u64,
    /// Events that found a table full, by table ([`Full`]).
    pub(crate) dropped: [AtomicU64; DROPS],
    /// Programs that have loaded the library.
    pub(crate) started: AtomicU64,
    /// Number of times that a program loaded objects which find the C library's functions before
    /// ours.
    pub(crate) bypasses: AtomicU64,
    /// Number of times that waiters of another process were found at a mutex that is not flagged as
    /// shared.
    pub(crate) strangers: AtomicU64,
    /// The address of the last such mutex.
    pub(crate) strange_lock: AtomicU64,
    /// For [`crate::Scope::Events`]: nanoseconds in 2^32 ticks, 0 until known.
    pub(crate) rate: AtomicU64,
    /// The time at which the first process was ready, in ticks. Written before the rate.
    pub(crate) origin: AtomicU64,
    /// Cost of one reading of the clock of ticks, in 1024ths of a tick. Written before the rate.
    pub(crate) look: AtomicU64,
    /// Number of rows created.
    pub(crate) rows: AtomicU64,
    pub(crate) _reserved: [u64; 64 - 4 - DROPS - 8],
}

/// The time that recording events of one kind took, as far as it was measured. In ticks.
#[repr(C)]
pub(crate) struct CostRecord {
    /// Number of events that were timed.
    pub(crate) count: AtomicU64,
    /// Sum of the times from the beginning of the recorder's work to the event's own time.
    pub(crate) before: AtomicU64,
    /// Sum of the times from the event's own time to the end of the recorder's work.
    pub(crate) after: AtomicU64,
    pub(crate) _reserved: u64,
}

/// Number of counters of full tables.
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
    /// The kernel's process id, with a serial number in the high bits, because ids are reused.
    pub(crate) key: AtomicU64,
    /// 1 + the record of the process that this one was forked from, 0 for none.
    pub(crate) parent: AtomicU64,
    /// Beginning of the process's records, by the monotonic clock.
    pub(crate) began_ns: AtomicU64,
    /// 1 if its mutexes are in the light form.
    pub(crate) light: AtomicU64,
    /// The namespace in which its ids are valid, by its inode number; 0 if unknown.
    pub(crate) namespace: AtomicU64,
    pub(crate) _reserved: [u64; 3],
}

#[repr(C)]
pub(crate) struct ModuleRecord {
    /// A hash of the path, the device and the inode.
    pub(crate) key: AtomicU64,
    /// The length of the path.
    pub(crate) length: AtomicU64,
    /// The device, as shown in the mappings of a process.
    pub(crate) device: AtomicU64,
    pub(crate) inode: AtomicU64,
    /// Modification time of the file, wall clock; 0 if unknown, or not needed.
    pub(crate) modified_ns: AtomicU64,
    pub(crate) _reserved: u64,
    /// The build id; all zero if there is none.
    pub(crate) build: [AtomicU64; BUILD_WORDS],
    pub(crate) path: [AtomicU64; PATH_BYTES / 8],
}

#[repr(C)]
pub(crate) struct SiteRecord {
    /// Process in the high bits, address in the low ones.
    pub(crate) key: AtomicU64,
    /// 1 + the module's record, 0 if it is not known (yet).
    pub(crate) module: AtomicU64,
    /// The offset of the site, in the module's file.
    pub(crate) offset: AtomicU64,
    pub(crate) _reserved: u64,
}

#[repr(C)]
pub(crate) struct LockRecord {
    /// Kind in the highest bits, then process, then address: see [`address_key`].
    pub(crate) key: AtomicU64,
    /// 1 + the site that was seen first, 0 if there was no room for it.
    pub(crate) first_site: AtomicU64,
    /// Number of locks that have been at that address, one after the other, as far as observed.
    pub(crate) lives: AtomicU64,
    /// 1 + the site where the latest of them was initialised; 0 if none was, or if that is not
    /// known.
    pub(crate) made: AtomicU64,
}

#[repr(C)]
pub(crate) struct ThreadRecord {
    /// Process in the high bits, thread id in the low ones.
    pub(crate) key: AtomicU64,
    /// Blocked time by kind of wait: mutexes, condition variables, spinlocks.
    pub(crate) blocked_ns: [AtomicU64; 3],
    pub(crate) waits: AtomicU64,
    /// 1 + the row at which the thread waits now, 0 for none.
    pub(crate) waiting: AtomicU64,
    /// When that wait began, monotonic clock.
    pub(crate) since_ns: AtomicU64,
    pub(crate) acquisitions: AtomicU64,
    /// Number of times that it took a lock while it held none.
    pub(crate) nests: AtomicU64,
    /// Number of locks that it took from then on until it held none again: sum and maximum.
    pub(crate) nested: AtomicU64,
    pub(crate) nested_max: AtomicU64,
    /// Time blocked by readers-writer locks.
    pub(crate) rwlock_ns: AtomicU64,
    /// 1 + the rows of the locks that it held when its current wait began, the latest first; 0 for
    /// none. Only with [`crate::Scope::Full`].
    pub(crate) held: [AtomicU64; WAIT_HELD],
    /// 1 + the stack of the current wait, 0 for none.
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
    /// Number of frames, and the bit `WHOLE` if they reach to where the thread began.
    pub(crate) length: AtomicU64,
    /// Number and total length of the waits that have ended.
    pub(crate) waits: AtomicU64,
    pub(crate) wait_ns: AtomicU64,
    /// Numbers of sites as returned by [`Writer::site`](crate::Writer::site), two in a word.
    pub(crate) frames: [AtomicU64; FRAMES / 2],
}

/// Most frames of a stack that are recorded.
pub const FRAMES: usize = 22;

/// Most locks recorded as held by a waiting thread.
pub const WAIT_HELD: usize = 3;

/// Most guards of an edge: locks that are held beside its two.
pub(crate) const GUARDS: usize = 3;

/// An edge between two locks. All fields but key and count are of the current life of both locks;
/// once both orders were seen in one life, they are of the last such life.
#[repr(C)]
pub(crate) struct EdgeRecord {
    /// 1 + the lock that was held in the high half, 1 + the lock that was taken in the low one.
    pub(crate) key: AtomicU64,
    pub(crate) count: AtomicU64,
    /// The lives of both locks, in the same order; zero until the rest is filled in.
    pub(crate) lives: AtomicU64,
    /// 1 + the row at which each lock was taken first.
    pub(crate) rows: AtomicU64,
    /// 1 + each of the other locks that were always held; 0 for none.
    pub(crate) guards: [AtomicU64; GUARDS],
    /// 1 after both orders were seen in one life.
    pub(crate) inverted: AtomicU64,
}

/// A program that a process was about to execute.
#[repr(C)]
pub(crate) struct ProgramRecord {
    /// A hash of all other fields but the count.
    pub(crate) key: AtomicU64,
    pub(crate) count: AtomicU64,
    /// The real group of the executing process in the high half, the real user in the low one.
    pub(crate) caller: AtomicU64,
    /// The value of a [`crate::HandedOn`].
    pub(crate) handed_on: AtomicU64,
    pub(crate) length: AtomicU64,
    pub(crate) path: [AtomicU64; PROGRAM_BYTES / 8],
}

/// An entry of the index of rows: a key and its row.
#[repr(C)]
pub(crate) struct RowRecord {
    /// 1 + lock in the high half, then [`READS`], then 1 + site (or 0).
    pub(crate) key: AtomicU64,
    /// 1 + the row; 0 while the row is being created.
    pub(crate) row: AtomicU64,
}

/// Bit in the key of a row: a readers-writer lock was taken to read.
pub(crate) const READS: u64 = 1 << 31;

/// Splits the key of a row: 1 + lock, whether [`READS`] is set, 1 + site (or 0).
pub(crate) fn split_row_key(key: u64) -> (u64, bool, u64) {
    (key >> 32, key & READS != 0, key & (READS - 1))
}

/// The fields that every acquisition writes are in the first cache line, except for one bucket: a
/// lock's holders hand these lines to each other with the lock.
#[repr(C)]
pub(crate) struct RowBody {
    pub(crate) acquisitions: AtomicU64,
    pub(crate) hold: Total,
    /// Acquisitions by the number of other locks that the thread held; the last counts "or more".
    pub(crate) depths: [AtomicU64; DEPTHS],
    pub(crate) contended: AtomicU64,
    /// Number of waits that ended without the lock: timeouts, cancellations.
    pub(crate) gave_up: AtomicU64,
    pub(crate) wait: Total,
    /// The key of its [`RowRecord`]; 0 if nothing was counted here.
    pub(crate) key: AtomicU64,
    pub(crate) holds: [AtomicU64; BUCKETS],
    pub(crate) waits: [AtomicU64; BUCKETS],
    /// Number of calls that did not wait, and found the lock taken.
    pub(crate) refused: AtomicU64,
    pub(crate) _padding: [u64; 7],
}

/// The fields of a histogram other than its counts.
#[repr(C)]
pub(crate) struct Total {
    pub(crate) sum_ns: AtomicU64,
    pub(crate) max_ns: AtomicU64,
}

/// The position of a table in the file, for the reader.
#[derive(Clone, Copy)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) records: usize,
    /// The number of words in a record.
    pub(crate) words: usize,
    /// Number of records in the first piece; each further piece has twice as many.
    pub(crate) first: usize,
    pub(crate) pieces: usize,
}

impl Section {
    /// A part of [`Base`].
    const fn part<T>(offset: usize, records: usize) -> Self {
        let words = size_of::<T>() / 8;
        Self { offset: offset as u64, records, words, first: records, pieces: 1 }
    }

    /// A column of `pieces` pieces that begins at `offset`. The first has `first` records, or at
    /// least as many as fill a granule.
    pub(crate) const fn column<T>(offset: u64, first: usize, pieces: usize) -> Self {
        let granule = GRANULE / size_of::<T>();
        let first = if granule > first { granule.next_power_of_two() } else { first };
        assert!(first.is_power_of_two() && (first * size_of::<T>()).is_multiple_of(GRANULE));
        let records = (first << pieces) - first;
        Self { offset, records, words: size_of::<T>() / 8, first, pieces }
    }

    /// The end of the section in the file.
    pub(crate) const fn end(self) -> u64 {
        self.offset + (self.records * self.words * 8) as u64
    }

    /// The pieces: the index of the first record of each, and its number of records.
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

/// Bits of an address in a key: the size of user space on 64-bit Linux without extended page
/// tables.
pub(crate) const ADDRESS_BITS: u32 = 48;

/// Bits of 1 + a process in a key. The higher bits hold a kind of lock.
const PROCESS_BITS: u32 = 13;

/// A key of an object at an address. The kind of lock is above the bits of 1 + the process, which
/// are never zero.
pub(crate) fn address_key(process: u64, kind: u64, address: u64) -> u64 {
    let address = address & ((1 << ADDRESS_BITS) - 1);
    (kind << PROCESS_BITS | (process + 1)) << ADDRESS_BITS | address
}

/// Splits an [`address_key`]: process, kind, address.
pub(crate) fn split_address_key(key: u64) -> (u64, u64, u64) {
    let high = key >> ADDRESS_BITS;
    // A program may have overwritten its recording: a key without a process gives one that doesn't
    // exist.
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

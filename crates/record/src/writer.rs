//! The writer of a recording: only atomic additions to the mapped file.
//!
//! All accesses are `Relaxed`, except those to the rate of the clock and to the index of rows: each
//! word is a counter or is written once, the reader tolerates any interleaving, and the kernel
//! makes the writes visible to the process that reads the file.
//!
//! The owner of a lock counts acquisitions, in words that belong to that lock, so a plain addition
//! is enough. Waits, and acquisitions by readers, of which several hold a lock at a time, are
//! counted atomically.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::histogram::bucket;
use crate::layout::{
    DEPTHS, Full, PATH_BYTES, PROCESSES, READS, ROWS, RowBody, RowRecord, THREAD, address_key,
};
use crate::mapping::Mapping;
use crate::module::FileId;
use crate::path::{path_key, store_path};
use crate::stacks::StackWriter;
use crate::table::{Found, find};
use crate::{Kind, Scope};

/// Writes into a mapped recording. Never blocks or allocates; makes no system call except to map
/// more of the file when a table grows. May be used by all threads, in signal handlers, and by
/// several processes that map the same file.
#[derive(Clone, Copy)]
pub struct Writer {
    /// The mapping, whose beginning is mapped.
    pub(crate) map: &'static Mapping,
}

/// A row: one lock at one site, taken in one mode. Valid for as long as the file is mapped, in this
/// process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowWriter(u32);

/// Bit of a [`RowWriter`], above the index: several threads may hold the row's lock at a time.
const SHARED: u32 = 1 << 30;

impl RowWriter {
    /// A number that identifies it; never zero, and below 2^31.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0 + 1
    }

    pub(crate) const fn index(self) -> usize {
        (self.0 & !SHARED) as usize
    }

    /// 1 + the index, as other records refer to it.
    pub(crate) const fn number(self) -> u64 {
        self.index() as u64 + 1
    }

    /// Returns whether several threads may hold the row's lock at a time.
    #[must_use]
    pub const fn is_shared(self) -> bool {
        self.0 & SHARED != 0
    }

    /// The common row of events that found a table full.
    pub const REST: Self = Self(ROWS as u32 | SHARED);

    /// The row of a number from [`bits`](Self::bits), and `None` for zero.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        match bits.checked_sub(1) {
            Some(bits) if Self(bits).index() <= ROWS => Some(Self(bits)),
            _ => None,
        }
    }
}

/// A thread's record, or none if there was no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadWriter(u32);

impl ThreadWriter {
    /// The thread of a process that found no room.
    pub const NONE: Self = Self(NO_THREAD);

    /// A number that identifies it; never zero.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The thread of a number from [`bits`](Self::bits), and `None` for zero.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        if bits == 0 || bits > NO_THREAD { None } else { Some(Self(bits)) }
    }
}

const NO_THREAD: u32 = THREAD.records as u32 + 1;

impl Writer {
    /// The scope of the recording.
    #[must_use]
    pub fn scope(self) -> Scope {
        Scope::from_bits(self.map.base().header.scope).unwrap_or(Scope::Contended)
    }

    /// Counts a program that has loaded the library. Returns whether it may enter itself before it
    /// has anything to record: true as long as there is ample room for processes that have.
    #[must_use]
    pub fn started(self) -> bool {
        self.map.base().header.started.fetch_add(1, Relaxed) < PROCESSES as u64 / 2
    }

    /// Counts that a program has loaded objects which find the C library's functions before ours.
    pub fn bypassed(self) {
        self.map.base().header.bypasses.fetch_add(1, Relaxed);
    }

    /// Counts that waiters of another process were found at the mutex at `address`, which is in
    /// shared memory but not flagged as shared.
    pub fn found_strangers(self, address: u64) {
        self.map.base().header.strangers.fetch_add(1, Relaxed);
        self.map.base().header.strange_lock.store(address, Relaxed);
    }

    /// The record of the calling process, which was forked from the process with the record
    /// `parent`; `light` if its mutexes are in the light form. `None` if there is no room: then its
    /// counts go to [`RowWriter::REST`], and its events are [`lost`](crate::events::Roll::lost).
    #[must_use]
    pub fn process(self, pid: u32, parent: Option<u32>, began_ns: u64, light: bool) -> Option<u32> {
        // The time distinguishes processes that had the same id one after the other.
        let key = (began_ns >> 10) << 32 | u64::from(pid);
        let processes = &self.map.processes;
        let index = find(processes, key, |record| &record.key).index();
        let Some((index, record)) = index.and_then(|at| Some((at, processes.get(at)?))) else {
            self.dropped(Full::Processes);
            return None;
        };
        record.parent.store(parent.map_or(0, |parent| u64::from(parent) + 1), Relaxed);
        record.began_ns.store(began_ns, Relaxed);
        record.light.store(u64::from(light), Relaxed);
        Some(index as u32)
    }

    /// Sets the process namespace of `process`, by its inode number: in another namespace the ids
    /// of the process and its threads may name others.
    pub fn lives_in(self, process: u32, namespace: u64) {
        if let Some(record) = self.map.processes.get(process as usize) {
            record.namespace.store(namespace, Relaxed);
        }
    }

    /// The record of thread `tid` of `process`.
    #[must_use]
    pub fn thread(self, process: u32, tid: u32) -> ThreadWriter {
        let key = address_key(u64::from(process), 0, u64::from(tid));
        let found = find(&self.map.threads, key, |record| &record.key);
        found.index().map_or(ThreadWriter::NONE, |index| ThreadWriter(index as u32 + 1))
    }

    /// The row of a lock at a site, both given by their addresses in `process`. The second value is
    /// the site if it is new: the caller must then find its file and call [`place`](Self::place).
    #[must_use]
    pub fn row(self, process: u32, kind: Kind, lock: u64, site: u64) -> (RowWriter, Option<u32>) {
        let (site, fresh) = self.site(process, site);
        let (process, site) = (u64::from(process), u64::from(site));
        let key = address_key(process, kind.of_lock().bits(), lock);
        let locks = &self.map.locks;
        let lock = match find(locks, key, |record| &record.key) {
            Found::Old(index) => index as u64,
            Found::New(index) => {
                if let Some(record) = locks.get(index) {
                    record.first_site.store(site, Relaxed);
                }
                index as u64
            }
            Found::Full => {
                self.dropped(Full::Locks);
                return (RowWriter::REST, fresh);
            }
        };
        let (way, shared) = if kind == Kind::Read { (READS, SHARED) } else { (0, 0) };
        let (rows, key) = (&self.map.rows, (lock + 1) << 32 | way | site);
        let index = find(rows, key, |record| &record.key).index();
        match index.and_then(|index| self.row_of(rows.get(index)?, key)) {
            Some(row) => (RowWriter(row | shared), fresh),
            None => {
                self.dropped(Full::Rows);
                (RowWriter::REST, fresh)
            }
        }
    }

    /// The row of a record of the index, which has that key; creates it if it does not exist yet.
    /// Rows are numbered in the order of creation, so that few rows take little room.
    fn row_of(self, record: &RowRecord, key: u64) -> Option<u32> {
        // Acquire: for the key in the row's body; pairs with the release below.
        let known = record.row.load(Acquire);
        if known != 0 {
            return u32::try_from(known - 1).ok();
        }
        let made = &self.map.base().header.rows;
        if made.load(Relaxed) >= ROWS as u64 {
            return None;
        }
        let row = made.fetch_add(1, Relaxed);
        let body = self.map.bodies.get(usize::try_from(row).ok()?)?;
        body.key.store(key, Relaxed);
        match record.row.compare_exchange(0, row + 1, Release, Acquire) {
            Ok(_) => u32::try_from(row).ok(),
            Err(theirs) => {
                // Another thread was faster. The row created here stays unused.
                body.key.store(0, Relaxed);
                u32::try_from(theirs - 1).ok()
            }
        }
    }

    /// 1 + the record of the site at that address in `process`, or 0 if there is no room. The
    /// second value is as in [`row`](Self::row).
    #[must_use]
    pub fn site(self, process: u32, address: u64) -> (u32, Option<u32>) {
        let key = address_key(u64::from(process), 0, address);
        match find(&self.map.sites, key, |record| &record.key) {
            Found::Old(index) => (index as u32 + 1, None),
            Found::New(index) => (index as u32 + 1, Some(index as u32)),
            Found::Full => {
                self.dropped(Full::Sites);
                (0, None)
            }
        }
    }

    /// Nanoseconds in 2^32 ticks; 0 if no process has measured them yet.
    #[must_use]
    pub fn rate(self) -> u64 {
        // Acquire: for origin and cost of a reading; pairs with the release below.
        self.map.base().header.rate.load(Acquire)
    }

    /// Sets the nanoseconds in 2^32 ticks, the current time in ticks, and the cost of a reading of
    /// the clock, in 1024ths of a tick. Only the first call has an effect.
    pub fn set_rate(self, rate: u64, now: u64, look: u64) {
        let header = &self.map.base().header;
        if header.origin.compare_exchange(0, now, Relaxed, Relaxed).is_ok() {
            header.look.store(look, Relaxed);
            // Release: pairs with the acquire above.
            header.rate.store(rate, Release);
        }
    }

    /// Records that `site` is at `offset` in the file of that path, device and inode. For the first
    /// site in a file, `about` returns what else identifies the file.
    pub fn place(
        self,
        site: u32,
        path: &[u8],
        offset: u64,
        file: FileId,
        about: impl FnOnce(FileId) -> FileId,
    ) {
        let Some(record) = self.map.sites.get(site as usize) else { return };
        record.offset.store(offset, Relaxed);
        let path = &path[path.len().saturating_sub(PATH_BYTES)..];
        let key = path_key(file.key(path.len() as u64), path);
        let modules = &self.map.modules;
        let index = match find(modules, key, |module| &module.key) {
            Found::Old(index) => index,
            Found::New(index) => {
                if let Some(module) = modules.get(index) {
                    about(file).store(module);
                    store_path(&module.path, path);
                    module.length.store(path.len() as u64, Relaxed);
                }
                index
            }
            Found::Full => return self.dropped(Full::Modules),
        };
        record.module.store(index as u64 + 1, Relaxed);
    }

    /// Records that `thread` waits with this stack, if one was taken, and holds the locks of the
    /// rows `held`, the latest first; only the first few are recorded.
    pub fn waits_with(
        self,
        thread: ThreadWriter,
        stack: Option<StackWriter>,
        held: impl Iterator<Item = RowWriter>,
    ) {
        let Some(record) = self.record(thread) else { return };
        let held = held.map(RowWriter::number).chain(core::iter::repeat(0));
        for (noted, held) in record.held.iter().zip(held) {
            noted.store(held, Relaxed);
        }
        record.stack.store(stack.map_or(0, StackWriter::number), Relaxed);
    }

    /// Records that `thread` begins to wait at `row`, at `now_ns` of the monotonic clock.
    pub fn wait_begins(self, thread: ThreadWriter, row: RowWriter, now_ns: u64) {
        if let Some(record) = self.record(thread) {
            record.since_ns.store(now_ns, Relaxed);
            record.waiting.store(row.number(), Relaxed);
        }
    }

    /// Records the end of the wait after `waited_ns`; `had` says whether the thread has the lock
    /// or, for a condition variable, was notified.
    pub fn wait_ends(
        self,
        thread: ThreadWriter,
        row: RowWriter,
        kind: Kind,
        waited_ns: u64,
        had: bool,
    ) {
        self.clear(thread, kind, waited_ns);
        let body = self.body(row);
        body.contended.fetch_add(1, Relaxed);
        body.waits[bucket(waited_ns)].fetch_add(1, Relaxed);
        body.wait.sum_ns.fetch_add(waited_ns, Relaxed);
        raise(&body.wait.max_ns, waited_ns);
        if !had {
            body.gave_up.fetch_add(1, Relaxed);
        }
    }

    /// Records that `thread` no longer waits, after `waited_ns`.
    ///
    /// Done before the wait is counted at its row: if a thread is killed in between, one wait is
    /// lost, but none is counted twice.
    fn clear(self, thread: ThreadWriter, kind: Kind, waited_ns: u64) {
        let Some(record) = self.record(thread) else { return self.dropped(Full::Threads) };
        // The count first: a reader that reads before and after sees one of the two changes, see
        // `Lookout`.
        record.waits.fetch_add(1, Relaxed);
        record.waiting.store(0, Relaxed);
        let [mutex, condition, spin] = &record.blocked_ns;
        let blocked = match kind {
            Kind::Condition => condition,
            Kind::Spin => spin,
            Kind::Read | Kind::Write => &record.rwlock_ns,
            _ => mutex,
        };
        blocked.fetch_add(waited_ns, Relaxed);
    }

    /// Counts that `thread` has taken the lock of `row`, which it holds.
    pub fn acquired(self, thread: ThreadWriter, row: RowWriter) {
        add_as_holder(row, &self.body(row).acquisitions, 1);
        if let Some(record) = self.record(thread) {
            add_alone(&record.acquisitions, 1);
        }
    }

    /// Counts a notification of the condition variable of `row`; `in_vain` if no thread waits for
    /// it.
    pub fn notified(self, row: RowWriter, in_vain: bool) {
        // The common row also counts locks.
        if row.index() >= ROWS {
            return;
        }
        let body = self.body(row);
        body.acquisitions.fetch_add(1, Relaxed);
        if in_vain {
            body.gave_up.fetch_add(1, Relaxed);
        }
    }

    /// Counts a call that did not wait for the lock of `row`, and found it taken.
    pub fn refused(self, row: RowWriter) {
        self.body(row).refused.fetch_add(1, Relaxed);
    }

    /// Counts a hold of `held_ns` of the lock that was taken at `row`. The caller is about to
    /// release it.
    pub fn held(self, row: RowWriter, held_ns: u64) {
        let body = self.body(row);
        add_as_holder(row, &body.holds[bucket(held_ns)], 1);
        add_as_holder(row, &body.hold.sum_ns, held_ns);
        raise(&body.hold.max_ns, held_ns);
    }

    /// Counts that `thread` has taken the lock of `row`, which it must release, while it held
    /// `holding` others. It is the lock with the number `count` since the thread held none.
    pub fn acquired_to_hold(
        self,
        thread: ThreadWriter,
        row: RowWriter,
        holding: usize,
        count: u64,
    ) {
        let body = self.body(row);
        add_as_holder(row, &body.acquisitions, 1);
        add_as_holder(row, &body.depths[holding.min(DEPTHS - 1)], 1);
        let Some(record) = self.record(thread) else { return };
        add_alone(&record.acquisitions, 1);
        if count == 1 {
            add_alone(&record.nests, 1);
        }
        add_alone(&record.nested, 1);
        if record.nested_max.load(Relaxed) < count {
            record.nested_max.store(count, Relaxed);
        }
    }

    /// Records that the lock of `row`, which the caller holds, is new: an earlier lock at its
    /// address was another one.
    pub fn renewed(self, row: RowWriter) {
        if let Some(lives) = self.lock(row).and_then(|lock| self.lives(lock)) {
            add_as_holder(row, lives, 1);
        }
    }

    /// Records that the lock of `row` was initialised at `site`, a number from
    /// [`site`](Self::site); 0 if no call has initialised it.
    pub fn made(self, row: RowWriter, site: u32) {
        let lock = self.lock(row).and_then(|lock| self.map.locks.get(lock as usize - 1));
        if let Some(lock) = lock {
            lock.made.store(u64::from(site), Relaxed);
        }
    }

    /// 1 + the lock of a row; `None` for the common row.
    pub(crate) fn lock(self, row: RowWriter) -> Option<u64> {
        if row.index() >= ROWS {
            return None;
        }
        // Relaxed: acquired with the row, or written by this thread.
        let key = self.map.bodies.get(row.index())?.key.load(Relaxed);
        (key != 0).then_some(key >> 32)
    }

    /// The number of locks that have been at the address of this one; `lock` is 1 + its record.
    pub(crate) fn lives(self, lock: u64) -> Option<&'static AtomicU64> {
        let index = usize::try_from(lock).ok()?.checked_sub(1)?;
        self.map.locks.get(index).map(|lock| &lock.lives)
    }

    #[inline]
    pub(crate) fn record(
        self,
        thread: ThreadWriter,
    ) -> Option<&'static crate::layout::ThreadRecord> {
        if thread == ThreadWriter::NONE {
            return None;
        }
        self.map.threads.get(thread.0 as usize - 1)
    }

    /// The counts of a row.
    #[inline]
    fn body(self, row: RowWriter) -> &'static RowBody {
        // The common row has the index after all others, and is not part of the table.
        self.map.bodies.get(row.index()).unwrap_or(&self.map.base().rest)
    }

    pub(crate) fn dropped(self, table: Full) {
        self.map.base().header.dropped[table as usize].fetch_add(1, Relaxed);
    }
}

/// Adds to a counter that only holders of the lock of `row` write to: one at a time, unless the
/// lock is shared or the row is the common one.
#[inline]
pub(crate) fn add_as_holder(row: RowWriter, counter: &AtomicU64, more: u64) {
    if row.is_shared() {
        counter.fetch_add(more, Relaxed);
    } else {
        add_alone(counter, more);
    }
}

/// Adds to a counter that no other thread writes to now: without a locked instruction.
#[inline]
fn add_alone(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
}

/// Raises `word` to at least `value`; reads it first, because it is rarely raised.
fn raise(word: &AtomicU64, value: u64) {
    if word.load(Relaxed) < value {
        word.fetch_max(value, Relaxed);
    }
}

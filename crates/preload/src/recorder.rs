//! Writes the library's entries into the recording, if there is one.
//!
//! Reached from slow paths only. Each lock call that is recorded is a [`Visit`]: the thread that
//! came, the lock, and the call site. The clock is read twice for a wait, and in the full mode
//! twice for a hold ([`holds`]).
//!
//! A child of `fork` detects by its epoch that it is not the process noted here, and enters itself.
//! A thread's record and the locks that it holds (full mode) are in thread-local memory of
//! `shim.c`.

pub(crate) mod events;
pub(crate) mod holds;
pub(crate) mod note;
pub(crate) mod span;
mod stacks;
mod stint;

use core::ffi::CStr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _, LightUnlock as _, Platform, WaiterId};
use antiphon_record::door::Which;
use antiphon_record::events::{Code, SHARED};
use antiphon_record::layout::PROGRAM_BYTES;
use antiphon_record::{
    HandedOn, Kind, Mapping, RowWriter, StackWriter, ThreadWriter, VARIABLE, Writer,
};

use crate::{aside, door, maps, mode, sys, thread, ticks};
use note::{Note, Noted};
use stint::Stint;

/// The mapping of the recording.
static MAPPING: Mapping = Mapping::NEW;

/// The epoch of the process that is entered in the recording in the high bits, and 1 + its record
/// in the low ones (0: no room).
static PROCESS: AtomicU64 = AtomicU64::new(0);

/// Maps the recording, if the environment names one, and enters this process. Called at load.
/// Returns whether every acquisition must be recorded.
pub(crate) fn start() -> bool {
    let Some(writer) = map() else { return false };
    if writer.started() {
        process(writer);
    }
    let full = writer.scope().is_full();
    if full {
        ticks::calibrate(writer);
    }
    full
}

/// Counts this program as one in which nothing is replaced, because of the tool that is in it, if
/// the environment names a recording. Called at load. The programs that it executes are noted as
/// usual.
pub(crate) fn steps_aside() {
    let Some(writer) = map() else { return };
    MAPPING.close_events();
    // The program has loaded the library, although without effect.
    let _ = writer.started();
    let Some(tool) = aside::tool().filter(|&tool| !aside::is_in_file(tool)) else { return };
    let mut path = [0; PROGRAM_BYTES];
    let length = sys::leads_to(c"/proc/self/exe", &mut path);
    // SAFETY: neither takes an argument or fails.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    writer.stepped_aside(&path[..length], tool, user, group);
}

/// Maps the recording that the environment names.
fn map() -> Option<Writer> {
    const { assert!(VARIABLE.len() < 32) };
    let mut name = [0; 32];
    name[..VARIABLE.len()].copy_from_slice(VARIABLE.as_bytes());
    let variable = CStr::from_bytes_until_nul(&name).ok()?;
    let file = door::open(mode::environment(variable)?, Which::Recording)?;
    MAPPING.open(file.descriptor()).ok()
}

#[inline]
fn writer() -> Option<Writer> {
    MAPPING.writer()
}

/// Enters the process and the calling thread, if there is a recording.
pub(crate) fn enter() {
    if let Some(writer) = writer() {
        let _ = thread_record(writer, process(writer));
    }
}

/// Stops recording, because the clock that it uses is forbidden.
pub(crate) fn stop() {
    MAPPING.close();
}

/// Returns whether there is a recording.
#[inline]
pub(crate) fn is_on() -> bool {
    writer().is_some()
}

fn now_ns() -> u64 {
    Linux::now(Clock::Monotonic)
}

/// The record of this process; `None` if there was no room for it.
fn process(writer: Writer) -> Option<u32> {
    let epoch = u64::from(Linux::epoch());
    let seen = PROCESS.load(Relaxed);
    if seen >> 32 == epoch {
        return (seen as u32).checked_sub(1);
    }
    let parent = (seen as u32).checked_sub(1);
    let record = writer.process(sys::pid(), parent, began_ns(epoch), Linux::light());
    if let (Some(record), Some((namespace, _))) = (record, sys::number(c"/proc/self/ns/pid")) {
        writer.lives_in(record, namespace);
    }
    let new = epoch << 32 | record.map_or(0, |record| u64::from(record) + 1);
    match PROCESS.compare_exchange(seen, new, Relaxed, Relaxed) {
        Ok(_) => record,
        Err(theirs) => (theirs as u32).checked_sub(1),
    }
}

/// The time at which this process began to record, the same for all of its threads, so that threads
/// which race enter the process once. The low bits are the epoch, which distinguishes a child from
/// its parent.
fn began_ns(epoch: u64) -> u64 {
    const EPOCH_MASK: u64 = 1023;
    static BEGAN: AtomicU64 = AtomicU64::new(0);
    let seen = BEGAN.load(Relaxed);
    if seen & EPOCH_MASK == epoch {
        return seen;
    }
    let new = now_ns() & !EPOCH_MASK | epoch;
    match BEGAN.compare_exchange(seen, new, Relaxed, Relaxed) {
        Ok(_) => new,
        Err(theirs) => theirs,
    }
}

fn thread_record(writer: Writer, process: Option<u32>) -> ThreadWriter {
    let Some(process) = process else { return ThreadWriter::NONE };
    let kept = &thread::current().record;
    let seen = kept.load(Relaxed);
    if seen >> 32 == u64::from(process) + 1
        && let Some(record) = ThreadWriter::from_bits(seen as u32)
    {
        return record;
    }
    let record = writer.thread(process, Linux::thread().0);
    kept.store((u64::from(process) + 1) << 32 | u64::from(record.bits()), Relaxed);
    record
}

/// A thread at a lock.
#[derive(Clone, Copy)]
pub(crate) struct Visit {
    writer: Writer,
    thread: ThreadWriter,
    row: RowWriter,
    kind: Kind,
}

/// A visit to the lock at `address` by the caller, from the call site `site`. `None` if nothing is
/// recorded.
pub(crate) fn visit(kind: Kind, address: usize, site: usize) -> Option<Visit> {
    Some(visit_of(writer()?, kind, (address, None), site))
}

/// Like [`visit`], to a lock with a note, which may say where it was initialised.
pub(crate) fn visit_noted(kind: Kind, lock: Noted<'_>, site: usize) -> Option<Visit> {
    Some(visit_of(writer()?, kind, (lock.address, lock.note.made_at()), site))
}

/// Records a call from `site` that did not wait, and found the lock taken.
#[cold]
#[inline(never)]
pub(crate) fn refused(kind: Kind, lock: Noted<'_>, site: usize) {
    if let Some(visit) = visit_noted(kind, lock, site) {
        visit.refused();
    }
}

/// Waits for a lock by `acquire`, which returns whether it was acquired. Returns that, and the
/// visit under which the wait is recorded. `last` is the thread that was last in the lock's queue
/// before.
pub(crate) fn waits(
    kind: Kind,
    lock: Noted<'_>,
    last: Option<WaiterId>,
    site: usize,
    acquire: impl FnOnce() -> bool,
) -> (bool, Option<Visit>) {
    let wait = wait(kind, site, || visit_noted(kind, lock, site));
    look_for_strangers(lock.address, last);
    let had = acquire();
    if let Some(wait) = wait {
        wait.ends(had);
    }
    (had, wait.map(|wait| wait.visit))
}

/// Records that the caller begins to wait for the condition variable at `address`, at the call site
/// `site`. `None` if nothing is recorded.
pub(crate) fn waits_for_condition(address: usize, site: usize) -> Option<Wait> {
    wait(Kind::Condition, site, || visit(Kind::Condition, address, site))
}

fn wait(kind: Kind, site: usize, visit: impl FnOnce() -> Option<Visit>) -> Option<Wait> {
    let stint = Stint::begins();
    let wait = visit()?.wait(site);
    stint.ends(code_of_wait(kind));
    Some(wait)
}

fn code_of_wait(kind: Kind) -> Code {
    if kind == Kind::Condition { Code::Sleeps } else { Code::Waits }
}

/// A visit to the lock at `address`, which was initialised at `made`, if that is known.
#[cold]
fn visit_of(
    writer: Writer,
    kind: Kind,
    (address, made): (usize, Option<usize>),
    site: usize,
) -> Visit {
    let process = process(writer);
    let thread = thread_record(writer, process);
    // Without a record, the process only counts in the sums, and can't be distinguished from
    // others.
    let Some(process) = process else {
        return Visit { writer, thread, row: RowWriter::REST, kind };
    };
    let (row, fresh) = writer.row(process, kind, address as u64, site as u64);
    if let Some(fresh) = fresh {
        maps::place(writer, fresh, site);
    }
    if let Some(made) = made {
        let (number, fresh) = writer.site(process, made as u64);
        if let Some(fresh) = fresh {
            maps::place(writer, fresh, made);
        }
        writer.made(row, number);
    }
    Visit { writer, thread, row, kind }
}

impl Visit {
    /// Records that the visitor, called from `site`, begins to wait.
    pub(crate) fn wait(self, site: usize) -> Wait {
        events::at_row(code_of_wait(self.kind), 0, self.row);
        // The wait begins here, whatever was noted before.
        let since_ns = now_ns();
        let stack = if self.kind == Kind::Condition {
            // Its mutex is still held: see `Wait::settles`.
            self.writer.waits_with(self.thread, None, core::iter::empty());
            None
        } else {
            self.takes_stack(site)
        };
        self.writer.wait_begins(self.thread, self.row, since_ns);
        Wait { visit: self, since_ns, stack }
    }

    /// Records the callers of the visitor, and the locks that it holds while it waits.
    fn takes_stack(self, site: usize) -> Option<StackWriter> {
        let process = process(self.writer);
        let stack =
            process.and_then(|of| stacks::take(self.writer, of, self.thread, self.row, site));
        self.writer.waits_with(self.thread, stack, holds::rows());
        stack
    }

    /// Records that the visitor did not wait, and found the lock taken.
    pub(crate) fn refused(self) {
        self.writer.refused(self.row);
    }

    /// Records that the visitor has acquired a lock whose holds are not recorded.
    pub(crate) fn acquired_unheld(self) {
        let way = if self.row.is_shared() { SHARED } else { 0 };
        events::at_row(Code::Takes, way, self.row);
        self.acquired();
    }

    /// Records that the visitor has acquired the lock.
    fn acquired(self) {
        self.writer.acquired(self.thread, self.row);
    }
}

/// A wait in progress.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    visit: Visit,
    since_ns: u64,
    stack: Option<StackWriter>,
}

impl Wait {
    /// Records that the waiter for a condition, which called from `site`, has released its mutex.
    pub(crate) fn settles(&mut self, site: usize) {
        self.stack = self.visit.takes_stack(site);
    }

    /// Records the end of the wait; `had` says whether it was successful.
    pub(crate) fn ends(self, had: bool) {
        let stint = Stint::begins();
        let waited_ns = now_ns().saturating_sub(self.since_ns);
        let Visit { writer, thread, row, kind } = self.visit;
        writer.wait_ends(thread, row, kind, waited_ns, had);
        if let Some(stack) = self.stack {
            writer.stack_ends(stack, waited_ns);
        }
        match kind {
            Kind::Condition => {
                events::at_row(Code::Wakes, events::notified(had), row);
                stint.ends(Code::Wakes);
            }
            _ if !had => events::at_row(Code::GivesUp, 0, row),
            _ => {}
        }
    }
}

/// Records that our condition variable at `address` is about to be notified from `site`; `in_vain`
/// if no thread waits for it. Only where everything is recorded. `note` caches the last row.
#[cold]
pub(crate) fn notifies(address: usize, note: &Note, site: usize, all: bool, in_vain: bool) {
    let Some(writer) = writer() else { return };
    let stint = Stint::begins();
    let row = note.notifies(process(writer), site, || {
        visit_of(writer, Kind::Condition, (address, None), site).row
    });
    writer.notified(row, in_vain);
    events::notifies(row, all);
    stint.ends(Code::Notifies);
}

/// Like [`notifies`], for a condition variable of the C library: recorded as an event only.
#[inline]
pub(crate) fn notifies_theirs(address: usize, site: usize, all: bool) {
    if events::are_on() {
        let stint = Stint::begins();
        let Some(visit) = visit(Kind::Condition, address, site) else { return };
        events::notifies(visit.row, all);
        stint.ends(Code::Notifies);
    }
}

/// Counts the lock at `address` if `last`, the last waiter of its queue, belongs to another
/// process: the lock is in shared memory, but not flagged as shared. A thread contends for it, or
/// did.
pub(crate) fn look_for_strangers(address: usize, last: Option<WaiterId>) {
    let Some(writer) = writer() else { return };
    let stranger = last.is_some_and(|last| last.epoch() != Linux::epoch());
    // The child of a fork finds its parent's waiters in memory of its own.
    if stranger && maps::is_shared(address) {
        writer.found_strangers(address as u64);
    }
}

/// Counts a program that this one is about to execute, with the library or without. A path that is
/// empty or too long is counted without its name.
pub(crate) fn executes(path: &[u8], handed_on: HandedOn) {
    let Some(writer) = writer() else { return };
    let (user, group) = sys::user();
    writer.executes(path, user, group, handed_on);
}

/// Counts that the program is about to load objects that don't find our functions.
pub(crate) fn bypassed() {
    if let Some(writer) = writer() {
        writer.bypassed();
    }
}

//! The events of each thread, one by one, if the recording wants that.
//!
//! A thread's events lie in time that is its own, but a span between two of them is CPU time only
//! if it was not taken off the CPU. A span that is short can't have been: leaving a CPU and coming
//! back takes longer. Of a span that is long the kernel is asked how much of it the thread ran, and
//! how often it left of its own accord. So the clock of the CPU costs a system call for each span
//! of over [`LONG_NS`](super::span::LONG_NS), and nothing else.
//!
//! The time of the asking is noted too, and is no part of the span that then begins: otherwise one
//! question would make the next span long enough for another. Where it took so long itself that it
//! may have been interrupted, it is part of that span, and the kernel is asked for both.
//!
//! A thread that left of its own accord waited for something, and then perhaps for a CPU: on
//! another machine the second may be nothing. Linux counts it, in a file that takes a microsecond
//! to read; that is done where the thread was away anyway, and not at the end of a wait for a lock.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_linux::filtered;
use antiphon_record::RowWriter;
use antiphon_record::events::{ALL, Code, NOTIFIED, Note, Roll, address_tag};

use super::span::Asked;
use super::stint::Stint;
use super::{MAPPING, process, writer};
use crate::real::{self, forward};
use crate::sys::File;
use crate::thread::{self, Thread};
use crate::{maps, mode, priority, sys, ticks};

/// Threads that were made and don't know their number yet. A hint: what a fork leaves is forgotten.
static UNBEGUN: AtomicU32 = AtomicU32::new(0);
/// The number of looks whether a thread that is joined has begun.
const LOOKS: u32 = 100_000;

/// Whether events are recorded.
#[inline]
pub(crate) fn are_on() -> bool {
    roll().is_some()
}

#[inline]
fn roll() -> Option<Roll> {
    MAPPING.roll()
}

/// Notes what the calling thread does to the lock of a row.
#[inline]
pub(super) fn at_row(code: Code, flags: u8, row: RowWriter) {
    if are_on() {
        note(code, flags, row.bits());
    }
}

/// Notes that the calling thread releases the lock at an address, whose row is not known.
#[inline]
pub(crate) fn releases_at(address: usize) {
    if are_on() {
        let stint = Stint::begins();
        note(Code::ReleasesAt, 0, address_tag(address));
        stint.ends(Code::Releases);
    }
}

/// Notes that the condition variable of `row` is about to be notified.
#[inline]
pub(super) fn notifies(row: RowWriter, all: bool) {
    if are_on() {
        note(Code::Notifies, if all { ALL } else { 0 }, row.bits());
    }
}

#[cold]
#[inline(never)]
fn note(code: Code, flags: u8, object: u32) {
    let (Some(roll), Some(writer)) = (roll(), writer()) else { return };
    let Some(process) = process(writer) else { return roll.lost() };
    let thread = thread::current();
    let now = ticks::now();
    let write = |time, code, flags, object| {
        let tid = thread::exact_id();
        roll.write(&thread.pen, process, tid, Note { time, code, flags, object });
    };
    if thread.pen.number() == 0 {
        // Made before the recording began, or not by `pthread_create`.
        thread.pen.hand_over(roll.number());
        write(now, Code::Begins, 0, 0);
    }
    let waited = thread.span.waits.load(Relaxed) != 0;
    if thread.span.is_first() {
        queued_ns().into_iter().for_each(|ns| write(ns, Code::Queued, 0, 0));
    }
    let asked = thread.span.ends(now);
    if let Asked::Ran(ran_ns, left) = asked {
        write(ran_ns, Code::Ran, 0, left);
        let queued_ns = if left == 0 || waited { None } else { queued_ns() };
        queued_ns.into_iter().for_each(|ns| write(ns, Code::Queued, 0, 0));
    }
    let waits = matches!(code, Code::Waits | Code::Sleeps | Code::Joins);
    thread.span.waits.store(waits.into(), Relaxed);
    if code == Code::Ends {
        thread.pen.ends();
    }
    write(now, code, flags, object);
    if !matches!(asked, Asked::Nothing)
        && let Some(ticks) = thread.span.begins(ticks::now())
        // A wait is no work, whatever it was; and nothing comes behind the end.
        && !waits
        && code != Code::Ends
    {
        write(ticks, Code::Asked, 0, 0);
    }
}

/// The time for which the calling thread has wanted a CPU and had none, in nanoseconds; `None` if
/// the kernel does not count that. The second number of `schedstat`
/// ("Documentation/scheduler/sched-stats.rst" of Linux).
fn queued_ns() -> Option<u64> {
    let mut text = [0; 64];
    let length = File::open(c"/proc/thread-self/schedstat", libc::O_RDONLY)?.read(&mut text)?;
    let number = text[..length].split(|&byte| byte == b' ').nth(1)?;
    number.iter().try_fold(0_u64, |sum, &digit| {
        let digit = (digit as char).to_digit(10)?;
        sum.checked_mul(10)?.checked_add(digit.into())
    })
}

/// A function that a thread begins in.
type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

// SAFETY: `shim.c` defines it so.
unsafe extern "C" {
    /// The function in which a recorded thread begins: notes that, calls the start function that is
    /// in its argument, and notes the end. Frees its argument.
    fn antiphon_thread_began(begin: *mut c_void) -> *mut c_void;
}

/// The argument of [`antiphon_thread_began`]; `shim.c` has the same.
#[repr(C)]
struct Begin {
    start: Start,
    argument: *mut c_void,
    /// The number of the new thread.
    number: u64,
}

/// `pthread_create`.
///
/// # Safety
///
/// As POSIX says.
pub(crate) unsafe extern "C" fn create(
    thread: *mut libc::pthread_t,
    attributes: *const c_void,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    priority::note_attributes(attributes);
    // 0 is not recorded.
    let number = roll().map_or(0, Roll::number);
    // Behind a filter, the end of a thread without a number has to be seen, too.
    let is_followed = number != 0 || filtered() && !mode::theirs();
    let begin: *mut Begin = if is_followed {
        // SAFETY: the C library's, which makes a thread with it, too.
        unsafe { libc::malloc(size_of::<Begin>()) }.cast()
    } else {
        null_mut()
    };
    if begin.is_null() {
        return forward!(THREAD_CREATE(thread, attributes, start, argument));
    }
    // SAFETY: room for one, and no other code's.
    unsafe { begin.write(Begin { start, argument, number: number.into() }) };
    let recorded = u32::from(number != 0);
    UNBEGUN.fetch_add(recorded, Relaxed);
    let code = forward!(THREAD_CREATE(thread, attributes, antiphon_thread_began, begin.cast()));
    if code != 0 {
        UNBEGUN.fetch_sub(recorded, Relaxed);
        // SAFETY: no thread was made that would free it.
        unsafe { libc::free(begin.cast()) };
    } else if number != 0 {
        note(Code::Creates, 0, number);
    }
    code
}

/// The calling thread, which has that number (0: it is not recorded), begins in the function at
/// that address.
// SAFETY: `shim.c` declares the name so, and no other function has one of this prefix.
#[unsafe(no_mangle)]
extern "C" fn antiphon_thread_begins(start: usize, number: u64) {
    if number == 0 {
        return;
    }
    thread::current().pen.hand_over(number as u32);
    // Release: the number; pairs with the acquire in `number_of`.
    UNBEGUN.fetch_sub(1, Release);
    note(Code::Begins, 0, 0);
    let Some(writer) = writer() else { return };
    let Some(process) = process(writer) else { return };
    let (role, fresh) = writer.site(process, start as u64);
    if let Some(fresh) = fresh {
        maps::place(writer, fresh, start);
    }
    note(Code::Role, 0, role);
}

/// The calling thread ends.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn antiphon_thread_ends() {
    if thread::current().pen.number() != 0 {
        note(Code::Ends, 0, 0);
    }
    if !mode::theirs() {
        antiphon_linux::end_thread();
    }
}

/// The calling thread is about to wait for the end of another. Returns that one's number; 0 if
/// nothing is recorded of it.
///
/// # Safety
///
/// The handle is one that may be given to `pthread_join`.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn antiphon_joins(handle: libc::pthread_t) -> u32 {
    if !are_on() {
        return 0;
    }
    // SAFETY: the caller's promise.
    let number = number_of(unsafe { thread::of(handle) });
    if number != 0 {
        note(Code::Joins, 0, number);
    }
    number
}

/// The number of a thread that is about to be joined. One that was just made may not know it yet;
/// because the caller will wait for its end, it may as well wait for its beginning.
fn number_of(thread: &Thread) -> u32 {
    for _ in 0..LOOKS {
        // Acquire: pairs with the release in `antiphon_thread_begins`.
        let all_begun = UNBEGUN.load(Acquire) == 0;
        let number = thread.pen.number();
        if number != 0 || all_begun {
            return number;
        }
        sys::yield_now();
    }
    0
}

/// Notes the end of a wait for a joined thread.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn antiphon_joined(number: u32) {
    note(Code::Joined, 0, number);
}

/// The C library's `pthread_join`.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn antiphon_real_join() -> *const c_void {
    real::THREAD_JOIN.get().map_or(core::ptr::null(), |function| function as *const c_void)
}

/// The end of a wait on a condition variable, as a flag.
pub(super) const fn notified(had: bool) -> u8 {
    if had { NOTIFIED } else { 0 }
}

impl Thread {
    /// Makes the state that of another thread, in the child of a fork.
    pub(crate) fn begins_anew(&self) {
        self.pen.hand_over(0);
        UNBEGUN.store(0, Relaxed);
        self.span.last.store(0, Relaxed);
        self.span.waits.store(0, Relaxed);
    }
}

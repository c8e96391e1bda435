//! Records the events of each thread, one by one, if the recording asks for them.
//!
//! The span between two events of a thread is CPU time only if the thread was not taken off the CPU
//! meanwhile. In a short span it can't have been: leaving a CPU and coming back takes longer. For a
//! long span the kernel is asked how much of it the thread ran, and how often it left the CPU
//! voluntarily. So the clock of the CPU costs a system call for each span of over
//! [`LONG_NS`](super::span::LONG_NS), and nothing else.
//!
//! The time of that query is noted too, and is not part of the span that follows: otherwise one
//! query would make the next span long enough for another. Where the query took so long that it may
//! have been interrupted, it is part of the next span, and the kernel is asked for both.
//!
//! A thread that left voluntarily waited for something, and then perhaps for a CPU: on another
//! machine the second wait may be zero. Linux counts it, in a file that takes a microsecond to
//! read; the file is read where the thread was off the CPU anyway, and not at the end of a wait for
//! a lock.

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
use crate::real::forward;
use crate::sys::File;
use crate::thread::{self, Thread};
use crate::{maps, mode, priority, sys, ticks};

/// Number of created threads that don't know their number yet. A hint: it is reset after a fork.
static UNBEGUN: AtomicU32 = AtomicU32::new(0);
/// How often to check whether a thread that is joined has begun.
const LOOKS: u32 = 100_000;

/// Returns whether events are recorded.
#[inline]
pub(crate) fn are_on() -> bool {
    roll().is_some()
}

#[inline]
fn roll() -> Option<Roll> {
    MAPPING.roll()
}

/// Records an event of the calling thread at the lock of a row.
#[inline]
pub(super) fn at_row(code: Code, flags: u8, row: RowWriter) {
    if are_on() {
        note(code, flags, row.bits());
    }
}

/// Records that the calling thread releases the lock at an address, whose row is not known.
#[inline]
pub(crate) fn releases_at(address: usize) {
    if are_on() {
        let stint = Stint::begins();
        note(Code::ReleasesAt, 0, address_tag(address));
        stint.ends(Code::Releases);
    }
}

/// Records that the condition variable of `row` is about to be notified.
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
        // Created before the recording began, or not by `pthread_create`.
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
        // The time of a wait doesn't matter, and no event follows the end.
        && !waits
        && code != Code::Ends
    {
        write(ticks, Code::Asked, 0, 0);
    }
}

/// The time for which the calling thread was runnable without a CPU, in nanoseconds; `None` if the
/// kernel does not count that. The second number of `schedstat`
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

/// The start function of a thread.
type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

// SAFETY: `shim.c` defines the function with this signature.
unsafe extern "C" {
    /// The start function of a recorded thread: records the beginning, calls the start function in
    /// its argument, and records the end. Frees its argument.
    fn antiphon_thread_began(begin: *mut c_void) -> *mut c_void;
}

/// The argument of [`antiphon_thread_began`]; `shim.c` declares the same layout.
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
/// The conditions of POSIX.
pub(crate) unsafe extern "C" fn create(
    thread: *mut libc::pthread_t,
    attributes: *const c_void,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    priority::note_attributes(attributes);
    // 0 is not recorded.
    let number = roll().map_or(0, Roll::number);
    // Behind a filter, the end of a thread without a number must be seen, too.
    let is_followed = number != 0 || filtered() && !mode::theirs();
    let begin: *mut Begin = if is_followed {
        // SAFETY: the C library's allocator, which it uses to create a thread, too.
        unsafe { libc::malloc(size_of::<Begin>()) }.cast()
    } else {
        null_mut()
    };
    if begin.is_null() {
        return forward!(THREAD_CREATE(thread, attributes, start, argument));
    }
    // SAFETY: memory for a `Begin`, which no other code uses.
    unsafe { begin.write(Begin { start, argument, number: number.into() }) };
    let recorded = u32::from(number != 0);
    UNBEGUN.fetch_add(recorded, Relaxed);
    let code = forward!(THREAD_CREATE(thread, attributes, antiphon_thread_began, begin.cast()));
    if code != 0 {
        UNBEGUN.fetch_sub(recorded, Relaxed);
        // SAFETY: no thread was created that would free it.
        unsafe { libc::free(begin.cast()) };
    } else if number != 0 {
        note(Code::Creates, 0, number);
    }
    code
}

/// Records that the calling thread begins, with this number (0: not recorded), in the function at
/// the address `start`.
// SAFETY: `shim.c` declares this name and signature, and no other object uses this prefix.
#[unsafe(no_mangle)]
extern "C" fn antiphon_thread_begins(start: usize, number: u64) {
    if number == 0 {
        return;
    }
    thread::current().pen.hand_over(number as u32);
    // Release: publishes the number; pairs with the acquire in `number_of`.
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

/// Records that the calling thread ends.
// SAFETY: `shim.c` declares this name and signature, as of `antiphon_thread_begins`.
#[unsafe(no_mangle)]
extern "C" fn antiphon_thread_ends() {
    if thread::current().pen.number() != 0 {
        note(Code::Ends, 0, 0);
    }
    if !mode::theirs() {
        antiphon_linux::end_thread();
    }
}

/// Records that the calling thread is about to wait for the end of another. Returns the number of
/// the other; 0 if that is not recorded.
///
/// # Safety
///
/// The handle is valid for `pthread_join`.
// SAFETY: `shim.c` declares this name and signature, as of `antiphon_thread_begins`.
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

/// The number of a thread that is about to be joined. A thread just created may not know its number
/// yet; because the caller will wait for its end, it may as well wait for its beginning.
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

/// Records the end of the wait for a joined thread.
// SAFETY: `shim.c` declares this name and signature, as of `antiphon_thread_begins`.
#[unsafe(no_mangle)]
extern "C" fn antiphon_joined(number: u32) {
    note(Code::Joined, 0, number);
}

/// The end of a wait on a condition variable, as a flag.
pub(super) const fn notified(had: bool) -> u8 {
    if had { NOTIFIED } else { 0 }
}

impl Thread {
    /// Resets the state for a new thread, in the child of a fork.
    pub(crate) fn begins_anew(&self) {
        self.pen.hand_over(0);
        UNBEGUN.store(0, Relaxed);
        self.span.last.store(0, Relaxed);
        self.span.waits.store(0, Relaxed);
    }
}

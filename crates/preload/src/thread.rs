//! The state of each thread, and whether there is more than one.
//!
//! The storage is in `shim.c`, under the initial-exec model: it is addressed by an offset from the
//! thread pointer, without a call that could allocate, and usable before the first constructor and
//! after the last destructor. It has no destructor.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64};

use antiphon_linux::Linux;
use antiphon_platform::Platform;
use antiphon_record::events::Pen;

use crate::recorder::span::Span;

/// Number of held locks that a thread can remember.
pub(crate) const HELD: usize = 15;

/// The state of a thread; `shim.c` declares the same size. Only the thread and its signal handlers
/// access it. All zero at first.
#[repr(C)]
pub(crate) struct Thread {
    /// Used by the recorder: 1 + the process's record in the high bits, the thread's in the low
    /// ones.
    pub(crate) record: AtomicU64,
    /// The kernel's id, 0 until it is asked for.
    id: AtomicU32,
    /// The epoch of the process when the id was asked for.
    epoch: AtomicU32,
    /// The id, if calls of this thread may take the fast path; otherwise 0.
    ready: AtomicU32,
    /// Used by the recorder: the number of locks held, the number taken since no lock was held, and
    /// the locks held.
    pub(crate) holding: AtomicU32,
    pub(crate) nested: AtomicU32,
    pub(crate) held: [Slot; HELD],
    /// Used by the recorder: the state for writing events, and the times of the current span.
    pub(crate) pen: Pen,
    pub(crate) span: Span,
}

/// A lock that a thread holds, or the last lock in this slot.
#[repr(C)]
pub(crate) struct Slot {
    /// The lock's address.
    pub(crate) lock: AtomicU64,
    /// For a lock held to read: when it was taken, in ticks.
    pub(crate) since: AtomicU64,
    /// The row of the acquisition.
    pub(crate) row: AtomicU32,
    /// For a lock held to read: the tag of the call site of that row.
    pub(crate) tag: AtomicU32,
}

impl Slot {
    /// Copies the contents of `other`.
    pub(crate) fn copy(&self, other: &Self) {
        self.lock.store(other.lock.load(Relaxed), Relaxed);
        self.since.store(other.since.load(Relaxed), Relaxed);
        self.row.store(other.row.load(Relaxed), Relaxed);
        self.tag.store(other.tag.load(Relaxed), Relaxed);
    }
}

const _: () = assert!(size_of::<Thread>() == 464);

/// The state of the calling thread.
#[inline]
pub(crate) fn current() -> &'static Thread {
    let thread: *const Thread;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: adds the object's offset, which the loader has stored in the global offset table, to
    // the thread pointer, which the ABI keeps at `fs:0`. Reads nothing else.
    unsafe {
        core::arch::asm!(
            "mov {thread}, qword ptr fs:[0]",
            "add {thread}, qword ptr [rip + antiphon_thread@GOTTPOFF]",
            thread = out(reg) thread,
            options(nostack, readonly, pure),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: adds the object's offset from the global offset table to the thread pointer, which is
    // in `tpidr_el0`.
    unsafe {
        core::arch::asm!(
            "mrs {thread}, tpidr_el0",
            "adrp {offset}, :gottprel:antiphon_thread",
            "ldr {offset}, [{offset}, :gottprel_lo12:antiphon_thread]",
            "add {thread}, {thread}, {offset}",
            thread = out(reg) thread,
            offset = out(reg) _,
            options(nostack, readonly, pure),
        );
    }
    // SAFETY: `shim.c` gives it the size and alignment of `Thread`; it lives as long as the calling
    // thread, which outlives every use in this crate, and consists of atomics, for which zero is
    // valid.
    unsafe { &*thread }
}

/// The state of the thread with that handle.
///
/// A thread's own state is at the same distance from its handle in all threads: the C library's
/// descriptor of a thread, which the handle points to, is at a fixed offset from the thread
/// pointer, and so do variables under the initial-exec model.
///
/// # Safety
///
/// The thread has not been joined, nor has it ended detached.
pub(crate) unsafe fn of(handle: libc::pthread_t) -> &'static Thread {
    let mine: *const Thread = current();
    // SAFETY: takes nothing.
    let distance = mine.addr().wrapping_sub(unsafe { libc::pthread_self() } as usize);
    let theirs = mine.with_addr((handle as usize).wrapping_add(distance));
    // SAFETY: the thread exists by the caller's promise, and with it its state, whose fields are
    // all atomics.
    unsafe { &*theirs }
}

/// The id of the calling thread, if it may take a free mutex of the normal kind without any check
/// or recording; otherwise 0. One load of a thread-local word instead of loads of the mode and the
/// id.
#[inline]
pub(crate) fn ready() -> u32 {
    current().ready.load(Relaxed)
}

/// Makes the calling thread [`ready`] from now on.
#[inline]
pub(crate) fn make_ready() {
    if ready() == 0 {
        current().ready.store(id(), Relaxed);
    }
}

/// The id of the calling thread, for `__owner` of a mutex that does not act on it.
///
/// In the child of a fork [`forked`] corrects it; in the child of `_Fork` or of a raw `clone`,
/// which run no handlers, it may be the parent's.
#[inline]
pub(crate) fn id() -> u32 {
    let kept = current().id.load(Relaxed);
    if kept == 0 { ask() } else { kept }
}

/// The id of the calling thread, for mutexes that act on it: correct in every kind of child.
#[inline]
pub(crate) fn exact_id() -> u32 {
    let thread = current();
    let kept = thread.id.load(Relaxed);
    if kept == 0 || thread.epoch.load(Relaxed) != Linux::epoch() { ask() } else { kept }
}

#[cold]
fn ask() -> u32 {
    let id = Linux::thread().0;
    current().epoch.store(Linux::epoch(), Relaxed);
    current().id.store(id, Relaxed);
    id
}

/// Resets the ids in the child of a fork, whose thread has another id.
pub(crate) fn forked() {
    current().id.store(0, Relaxed);
    current().ready.store(0, Relaxed);
    current().begins_anew();
}

static NEVER: AtomicU8 = AtomicU8::new(0);
/// The C library's variable that says whether the process has one thread (from 2.32 on), or
/// `NEVER`.
static SINGLE: AtomicPtr<AtomicU8> = AtomicPtr::new((&raw const NEVER).cast_mut());

/// Returns whether the caller is the only thread. The C library clears its variable before it
/// creates a second one, and sets it again only in the child of a fork, if at all.
#[inline]
pub(crate) fn alone() -> bool {
    let single = SINGLE.load(Relaxed);
    // SAFETY: `NEVER`, or the C library's variable: a byte with plain writes, which C programs read
    // plainly (`sys/single_threaded.h`).
    unsafe { &*single }.load(Relaxed) != 0
}

/// Stores the address of the C library's variable on threads, if it has one.
pub(crate) fn find_single(variable: *mut u8) {
    if !variable.is_null() {
        SINGLE.store(variable.cast(), Relaxed);
    }
}

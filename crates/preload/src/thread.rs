//! The state of each thread, and whether there is more than one.
//!
//! The storage is in `shim.c`, under the initial-exec model: reached by an offset from the thread
//! pointer, without a call that could allocate, before the first constructor and after the last
//! destructor. It has no destructor itself.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64};

use antiphon_linux::Linux;
use antiphon_platform::Platform;
use antiphon_record::events::Pen;

use crate::recorder::span::Span;

/// How many locks a thread remembers to hold.
pub(crate) const HELD: usize = 15;

/// A thread's own; `shim.c` has the same. Only its thread and signal handlers on it touch it. All
/// zero at first.
#[repr(C)]
pub(crate) struct Thread {
    /// The recorder's: 1 + the process's record, above the bits of the thread's.
    pub(crate) record: AtomicU64,
    /// The kernel's id, 0 until it is asked for.
    id: AtomicU32,
    /// The epoch of the process when the id was asked for.
    epoch: AtomicU32,
    /// The id once more, if calls of this thread may take the shortest way; 0 if they may not.
    ready: AtomicU32,
    /// The recorder's: how many locks are held, how many were taken after the last moment without
    /// one, and which are held.
    pub(crate) holding: AtomicU32,
    pub(crate) nested: AtomicU32,
    pub(crate) held: [Slot; HELD],
    /// The recorder's: the state by which events are written, and when it was taken.
    pub(crate) pen: Pen,
    pub(crate) span: Span,
}

/// A lock that a thread holds, or the last that it held here.
#[repr(C)]
pub(crate) struct Slot {
    /// The lock's address.
    pub(crate) lock: AtomicU64,
    /// If the thread has it to read: when it took it, in ticks.
    pub(crate) since: AtomicU64,
    /// The row that it was taken at.
    pub(crate) row: AtomicU32,
    /// If the thread has it to read: what tells the call site of that row.
    pub(crate) tag: AtomicU32,
}

impl Slot {
    /// Takes over what `other` has.
    pub(crate) fn copy(&self, other: &Self) {
        self.lock.store(other.lock.load(Relaxed), Relaxed);
        self.since.store(other.since.load(Relaxed), Relaxed);
        self.row.store(other.row.load(Relaxed), Relaxed);
        self.tag.store(other.tag.load(Relaxed), Relaxed);
    }
}

const _: () = assert!(size_of::<Thread>() == 464);

/// The calling thread's.
#[inline]
pub(crate) fn current() -> &'static Thread {
    let thread: *const Thread;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: adds the object's offset, which the loader has put in the global offset table, to the
    // thread pointer, which the ABI keeps at `fs:0`. Reads nothing else.
    unsafe {
        core::arch::asm!(
            "mov {thread}, qword ptr fs:[0]",
            "add {thread}, qword ptr [rip + antiphon_thread@GOTTPOFF]",
            thread = out(reg) thread,
            options(nostack, readonly, pure),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; the thread pointer is in `tpidr_el0`.
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
    // SAFETY: as large and aligned as `Thread` by `shim.c`, there as long as the calling thread is,
    // which outlives every use in this crate, and made of atomics, for which zero is valid.
    unsafe { &*thread }
}

/// The state that is kept for the thread with that handle.
///
/// A thread's own state is at the same distance from its handle in all threads: the C library's
/// descriptor of a thread, which the handle points to, stands at a fixed place beside the thread
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
    // SAFETY: as above, by the caller's promise; all of its fields are atomics.
    unsafe { &*theirs }
}

/// The id of the calling thread, if nothing has to be asked and nothing recorded for a free mutex
/// of the normal kind; otherwise 0. One look at a word of the thread's own instead of one at the
/// mode and one at the id.
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
/// The child of a fork has it right through [`forked`]; that of `_Fork` or of a raw `clone`, which
/// run no handlers, may show its parent's.
#[inline]
pub(crate) fn id() -> u32 {
    let kept = current().id.load(Relaxed);
    if kept == 0 { ask() } else { kept }
}

/// The id of the calling thread, for mutexes that act on it: right in every kind of child.
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

/// The child of a fork: its thread has another id.
pub(crate) fn forked() {
    current().id.store(0, Relaxed);
    current().ready.store(0, Relaxed);
    current().begins_anew();
}

static NEVER: AtomicU8 = AtomicU8::new(0);
/// The C library's word on whether the process has one thread (from 2.32 on), or `NEVER`.
static SINGLE: AtomicPtr<AtomicU8> = AtomicPtr::new((&raw const NEVER).cast_mut());

/// Whether the caller is the only thread. The C library clears its word before it makes a second
/// one, and sets it at most in the child of a fork.
#[inline]
pub(crate) fn alone() -> bool {
    let single = SINGLE.load(Relaxed);
    // SAFETY: `NEVER`, or the C library's variable: a byte that it writes plainly, as C programs
    // read it plainly (`sys/single_threaded.h`).
    unsafe { &*single }.load(Relaxed) != 0
}

/// Takes note of the C library's word on threads, if it has one.
pub(crate) fn find_single(variable: *mut u8) {
    if !variable.is_null() {
        SINGLE.store(variable.cast(), Relaxed);
    }
}

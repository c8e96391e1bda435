//! Thread-local state, all zero at first, without destructor or registration.
//!
//! A lock may be the first or the last action of a thread, and may be used inside `malloc`, a
//! signal handler or a destructor of another thread-local. So the state must be accessible without
//! a call that could allocate. `std::thread_local!` works in a program, but a shared library (the
//! preload) reaches it through `__tls_get_addr`: `objdump -d` of a `cdylib` with a `const`
//! thread-local of no destructor shows that call, and glibc's version of it, after any `dlopen`,
//! may grow the thread's table of modules with `malloc`, which may be the caller of the lock.
//!
//! So the storage is a separate `.tbss` object, accessed by its offset from the thread pointer, as
//! with C's `tls_model("initial-exec")`: two instructions and no call, in programs (where the
//! linker makes the offset a constant) and in libraries that are loaded at start. Machines other
//! than x86-64 and AArch64 use `std::thread_local!`. The crates above use
//! [`thread_state`](crate::thread_state) for their state, too.

use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64};

use antiphon_hints::{Header, Slot};
use antiphon_platform::Local;

use crate::Linux;

/// The state that this crate keeps for each thread.
///
/// Only its own thread and the signal handlers on it access it: `Relaxed` is enough everywhere.
pub(crate) struct Thread {
    /// The thread state that the platform trait requires.
    pub(crate) local: Local<Linux>,
    /// The epoch above the kernel's id; 0 means not asked yet.
    pub(crate) id: AtomicU64,
    /// The time of the last count of switches, in ticks.
    pub(crate) counted_at: AtomicU64,
    /// Number of involuntary and, in the next field, of voluntary switches at the last count.
    pub(crate) taken: AtomicU32,
    pub(crate) given: AtomicU32,
    /// CPU time of the thread at the last count, in µs; wraps around.
    pub(crate) ran_us: AtomicU32,
    /// Whether the last count was a sign of crowding.
    pub(crate) switched: AtomicU32,
    /// Whether [`crate::cpus`] knows the affinity of this thread.
    pub(crate) counted: AtomicU32,
    /// Whether this thread may unlock lightly; see [`crate::light`].
    pub(crate) light: AtomicU32,
    /// Number of open spins of this thread and of signal handlers on it.
    pub(crate) spins: AtomicI32,
    /// The lock that the thread's current fiber waits for, or 0; the next field has the kind of the
    /// wait.
    pub(crate) lock: AtomicU64,
    pub(crate) lock_kind: AtomicU32,
    /// The time at which that fiber checks its condition again, before the end of its wait.
    pub(crate) looks_at_ns: AtomicU64,
    /// Number of critical sections that the thread is in, and what heeds them;
    /// [`crate::section`].
    pub(crate) sections: AtomicU32,
    pub(crate) heeded_by: AtomicU32,
    /// The thread's slot in the scheduler's page, and the epoch of the process that mapped it.
    pub(crate) slot: AtomicPtr<Slot>,
    pub(crate) slot_epoch: AtomicU32,
    /// The head of that page.
    pub(crate) slot_header: AtomicPtr<Header>,
    /// Since when the thread may expect the scheduler to write there, and the number of the
    /// connection that there was when it last asked for a slot.
    pub(crate) slot_since_ns: AtomicU64,
    pub(crate) slot_asked: AtomicU32,
    /// Number of sections that the pretended listener was told to have begun and not to have
    /// ended.
    #[cfg(feature = "pretend")]
    pub(crate) pretended: AtomicU32,
}

impl Thread {
    /// The state of a thread that has never waited: all zero bytes, as `.tbss` is.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    const NEW: Self = Self {
        local: Local::NEW,
        id: AtomicU64::new(0),
        counted_at: AtomicU64::new(0),
        taken: AtomicU32::new(0),
        given: AtomicU32::new(0),
        ran_us: AtomicU32::new(0),
        switched: AtomicU32::new(0),
        counted: AtomicU32::new(0),
        light: AtomicU32::new(0),
        spins: AtomicI32::new(0),
        lock: AtomicU64::new(0),
        lock_kind: AtomicU32::new(0),
        looks_at_ns: AtomicU64::new(0),
        sections: AtomicU32::new(0),
        heeded_by: AtomicU32::new(0),
        slot: AtomicPtr::new(core::ptr::null_mut()),
        slot_epoch: AtomicU32::new(0),
        slot_header: AtomicPtr::new(core::ptr::null_mut()),
        slot_since_ns: AtomicU64::new(0),
        slot_asked: AtomicU32::new(0),
        #[cfg(feature = "pretend")]
        pretended: AtomicU32::new(0),
    };
}

/// Runs `f` on the state of the calling thread. `f` must not wait, because a fiber could then move
/// to another thread.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&Thread) -> R) -> R {
    storage::with(f)
}

crate::thread_state!(mod storage: super::Thread, super::Thread::NEW, "antiphon_linux_thread");

/// Whether a fiber may resume on another thread: [`thread_state`](crate::thread_state) then
/// computes its address anew at each use.
pub const FIBERS_MAY_MOVE: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Defines a module with `fn with`, which runs a closure on the state of the calling thread. Takes
/// a type without a destructor, its initial value, which must be all zero bytes, and a symbol name
/// that is unique in the program. An access takes two instructions and no call. On x86-64 and
/// AArch64 no address is kept between two calls, because a fiber may have moved to another thread.
/// Within the closure it must not move.
#[macro_export]
macro_rules! thread_state {
    (mod $storage:ident: $type:ty, $new:expr, $symbol:literal) => {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        mod $storage {
            core::arch::global_asm!(
                concat!(".pushsection .tbss.", $symbol, ", \"awT\", @nobits"),
                concat!(".hidden ", $symbol),
                concat!(".globl ", $symbol),
                concat!(".type ", $symbol, ", @object"),
                concat!(".size ", $symbol, ", {size}"),
                ".balign {align}",
                concat!($symbol, ":"),
                ".zero {size}",
                ".popsection",
                size = const size_of::<$type>(),
                align = const align_of::<$type>(),
            );

            #[inline(always)]
            pub(super) fn with<R>(f: impl FnOnce(&$type) -> R) -> R {
                const { assert!(!core::mem::needs_drop::<$type>()) };
                let thread: *const $type;
                // Not `pure`: a fiber may ask again on another thread, and must not get the old
                // address.
                #[cfg(target_arch = "x86_64")]
                // SAFETY: adds the object's offset, which the loader has put in the global offset
                // table, to the thread pointer, which the ABI keeps at `fs:0`. Reads nothing else.
                unsafe {
                    core::arch::asm!(
                        "mov {thread}, qword ptr fs:[0]",
                        concat!("add {thread}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                        thread = out(reg) thread,
                        options(nostack, readonly),
                    );
                }
                #[cfg(target_arch = "aarch64")]
                // SAFETY: adds the object's offset to the thread pointer, which is in `tpidr_el0`.
                unsafe {
                    core::arch::asm!(
                        "mrs {thread}, tpidr_el0",
                        concat!("adrp {offset}, :gottprel:", $symbol),
                        concat!("ldr {offset}, [{offset}, :gottprel_lo12:", $symbol, "]"),
                        "add {thread}, {thread}, {offset}",
                        thread = out(reg) thread,
                        offset = out(reg) _,
                        options(nostack, readonly),
                    );
                }
                // SAFETY: the object is as large and aligned as the type, lives as long as the
                // calling thread, to which it belongs, is written only through cells and atomics,
                // and its zero bytes are a valid value.
                f(unsafe { &*thread })
            }
        }

        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        mod $storage {
            std::thread_local! {
                static STATE: $type = const { $new };
            }

            #[inline]
            pub(super) fn with<R>(f: impl FnOnce(&$type) -> R) -> R {
                const { assert!(!core::mem::needs_drop::<$type>()) };
                // Without a destructor it is always accessible, before and after everything else.
                STATE.with(f)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering::Relaxed;

    fn address() -> usize {
        with(|thread| core::ptr::from_ref(thread) as usize)
    }

    #[test]
    fn each_thread_has_its_own_zeroed_state() {
        with(|thread| thread.counted_at.store(7, Relaxed));
        let here = address();
        assert!(here.is_multiple_of(align_of::<Thread>()));
        let there = std::thread::spawn(|| {
            assert_eq!(with(|thread| thread.counted_at.load(Relaxed)), 0);
            with(|thread| thread.taken.store(u32::MAX, Relaxed));
            address()
        });
        assert_ne!(there.join().ok(), Some(here));
        assert_eq!(with(|thread| thread.counted_at.load(Relaxed)), 7);
        assert_eq!(here, address());
    }
}

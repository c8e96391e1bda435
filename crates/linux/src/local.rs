//! State of one thread, all zero at first, with no destructor and nothing to register.
//!
//! A lock may be the first thing that a thread does and the last, inside `malloc`, a signal handler
//! or a destructor of another thread-local. So the state must be there without a call that could
//! allocate. `std::thread_local!` is right in a program, but a shared library (the preload) reaches
//! it through `__tls_get_addr`: `objdump -d` of a `cdylib` with a `const` thread-local of no
//! destructor shows that call, and glibc's version of it, after any `dlopen`, may grow the thread's
//! table of modules with `malloc`, which may be where the lock is.
//!
//! So the storage is a `.tbss` object of our own, reached by its offset from the thread pointer, as
//! C's `tls_model("initial-exec")` does it: two instructions, no call, in programs (where the
//! linker makes the offset a constant) and in libraries that are loaded at start. Another machine
//! than x86-64 and AArch64 has `std::thread_local!`. By [`thread_state`](crate::thread_state) the
//! crates above have theirs so, too.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use antiphon_platform::Local;

use crate::Linux;

/// The state that this crate keeps for each thread.
///
/// Touched by its own thread and the signal handlers on it: `Relaxed` is enough everywhere.
pub(crate) struct Thread {
    /// The thread state that the platform trait requires.
    pub(crate) local: Local<Linux>,
    /// The epoch above the kernel's id; 0 is not asked yet.
    pub(crate) id: AtomicU64,
    /// When the switches were last counted, in ticks.
    pub(crate) counted_at: AtomicU64,
    /// How often the kernel has taken its CPU, and how often it has given it up, as last counted.
    pub(crate) taken: AtomicU32,
    pub(crate) given: AtomicU32,
    /// How long it had run by then, in µs; wraps around.
    pub(crate) ran_us: AtomicU32,
    /// Whether the last count looked crowded.
    pub(crate) switched: AtomicU32,
    /// Whether [`crate::cpus`] knows the affinity of this thread.
    pub(crate) counted: AtomicU32,
    /// Whether this thread may unlock lightly; see [`crate::light`].
    pub(crate) light: AtomicU32,
    /// How many spins of this thread are open: its own and those of signal handlers on it.
    pub(crate) spins: AtomicI32,
    /// The lock that the fiber which it runs waits for, or 0; and, in the next field, as what it
    /// waits.
    pub(crate) lock: AtomicU64,
    pub(crate) lock_kind: AtomicU32,
    /// When that fiber looks again, whatever its wait.
    pub(crate) looks_at_ns: AtomicU64,
}

impl Thread {
    /// A thread that has never waited. All of it is zero bytes, as `.tbss` is.
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
    };
}

/// Runs `f` on the state of the calling thread. `f` must not move to another thread (a fiber
/// could), that is, must not wait.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&Thread) -> R) -> R {
    storage::with(f)
}

crate::thread_state!(mod storage: super::Thread, super::Thread::NEW, "antiphon_linux_thread");

/// Whether a fiber may go on on another thread: [`thread_state`](crate::thread_state) is asked for
/// anew each time.
pub const FIBERS_MAY_MOVE: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// A module with `fn with`, which runs a closure on the state of the calling thread: a type without
/// a destructor, of zero bytes at first, as its value is that is given; and a symbol, which is this
/// state's alone in the program. Two instructions and no call. On x86-64 and AArch64 no address is
/// kept from one call to the next: a fiber may have moved to another thread between. Within the
/// closure it must not.
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
                // Not `pure`: a fiber may ask again on another thread, and must not be given the
                // old answer.
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
                // SAFETY: as above; the thread pointer is in `tpidr_el0`.
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
                // calling thread, whose own it is, is written only through cells and atomics, and
                // its zero bytes are a valid value.
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
                // Without a destructor it can always be had, before and after everything else.
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

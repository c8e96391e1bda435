//! Restartable sequences: a few instructions that the kernel aborts if it interrupts them.
//!
//! A thread registers an area with the kernel (glibc does, from 2.35 on) and points it at a
//! description of the sequence before it enters: where it starts, where it has committed, where to
//! go instead. If the thread is preempted, migrated, given a signal or fenced by
//! [`crate::membarrier`] between the two, it goes on at the third place. So the last instruction, a
//! store, happens only if nothing has come in between after the first.
//!
//! The rules of the kernel, kept by the assembly below: the four bytes before the abort handler are
//! the signature that was registered; the handler lies outside the sequence; no system call inside;
//! the description is data of its own that stays mapped, and the pointer to it is cleared
//! afterwards, so that a library may be unloaded.
//!
//! x86-64 only. Elsewhere there is no area, so no thread gets as far as a sequence.

use core::sync::atomic::AtomicIsize;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::Unsupported;

use crate::sys::{self, Errno};

/// The signature that glibc registers on x86-64, and that stands before each abort handler.
const SIGNATURE: u32 = 0x5305_3053;
/// The length of the area that glibc registers as long as the kernel's features fit in it.
const LENGTH: usize = 32;
const UNREGISTER: usize = 1;

/// Where each thread's area is, from its thread pointer on; set by [`find`].
static OFFSET: AtomicIsize = AtomicIsize::new(0);

/// Looks for glibc's areas. Uses the dynamic linker, so never on a lock's path.
///
/// # Errors
///
/// [`Unsupported`] if there are none: another machine, an older glibc, or rseq turned off.
pub(crate) fn find() -> Result<(), Unsupported> {
    if !cfg!(target_arch = "x86_64") {
        return Err(Unsupported);
    }
    let symbol = |name: &core::ffi::CStr| {
        // SAFETY: the name is a string that ends in zero.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    };
    let (offset, size) = (symbol(c"__rseq_offset"), symbol(c"__rseq_size"));
    // SAFETY: null, or glibc's constants of these types.
    let (offset, size) =
        unsafe { (offset.cast::<isize>().as_ref(), size.cast::<core::ffi::c_uint>().as_ref()) };
    let (Some(&offset), Some(1..)) = (offset, size) else { return Err(Unsupported) };
    OFFSET.store(offset, Relaxed);
    Ok(())
}

/// Whether the kernel knows the calling thread's area. Asks it: what the area itself says can be a
/// leftover, in a thread or child that `clone` made without glibc.
///
/// Only after [`find`] was successful.
pub(crate) fn registered() -> bool {
    let register = |flags| {
        let args = [area(), LENGTH, flags, SIGNATURE as usize];
        // SAFETY: the area is glibc's, 32 bytes aligned to 32, alive as long as the thread.
        unsafe { sys::call(libc::SYS_rseq, args) }
    };
    match register(0) {
        // It is, at this address, with this length and this signature.
        Err(Errno(libc::EBUSY)) => true,
        // It was not, and is now by mistake; if that can't be undone, it stays registered and
        // right.
        Ok(_) => register(UNREGISTER).is_err(),
        Err(_) => false,
    }
}

#[cfg(target_arch = "x86_64")]
mod sequence {
    use super::*;

    pub(super) fn area() -> usize {
        let thread: usize;
        // SAFETY: the ABI keeps the thread pointer there.
        unsafe {
            core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) thread,
                options(nostack, readonly, preserves_flags));
        }
        thread.wrapping_add_signed(OFFSET.load(Relaxed))
    }

    /// Stores `value` in `word` if `flag` is zero. `false`: not stored, the flag is up or the
    /// sequence was aborted.
    ///
    /// # Safety
    ///
    /// The calling thread is [`registered`]. Both words are valid until the store takes effect.
    #[inline]
    pub(crate) unsafe fn store_unless(word: *const u8, value: u8, flag: *const u16) -> bool {
        let stored: u32;
        // SAFETY: the area is the registered one of this thread, whose pointer to a sequence (at 8)
        // is ours to write while no other sequence runs, and none does: a signal handler's ends
        // before it returns. The two words are valid by the caller's promise. On x86-64 the load
        // and the store are an acquire and a release as they stand.
        unsafe {
            core::arch::asm!(
                ".pushsection .data.antiphon_rseq, \"aw\", @progbits",
                ".balign 32",
                "21:",
                ".long 0, 0",           // version, flags
                ".quad 22f",            // the first instruction
                ".quad 23f - 22f",      // length up to the commit, which is the last
                ".quad 25f",            // the abort handler
                ".popsection",
                "xor {stored:e}, {stored:e}",
                "lea {scratch}, [rip + 21b]",
                "mov qword ptr fs:[{offset} + 8], {scratch}",
                "22:",
                "cmp word ptr [{flag}], 0",
                "jne 24f",
                "mov byte ptr [{word}], {value}",
                "23:",
                "mov {stored:e}, 1",
                "24:",
                "mov qword ptr fs:[{offset} + 8], 0",
                ".pushsection .text.antiphon_rseq_abort, \"ax\", @progbits",
                // An undefined instruction whose operand is the signature, as the ABI suggests.
                ".byte 0x0f, 0xb9, 0x3d",
                ".long {signature}",
                "25:",
                "jmp 24b",
                ".popsection",
                stored = out(reg) stored,
                scratch = out(reg) _,
                offset = in(reg) OFFSET.load(Relaxed),
                flag = in(reg) flag,
                word = in(reg) word,
                value = in(reg_byte) value,
                signature = const SIGNATURE,
                options(nostack),
            );
        }
        stored != 0
    }

    /// Stays in a sequence until it is aborted or has gone round `rounds` times (not 0). Says
    /// whether it was aborted.
    ///
    /// # Safety
    ///
    /// The calling thread is [`registered`].
    pub(crate) unsafe fn aborted_within(rounds: u64) -> bool {
        let aborted: u32;
        // SAFETY: as in `store_unless`, without words.
        unsafe {
            core::arch::asm!(
                ".pushsection .data.antiphon_rseq, \"aw\", @progbits",
                ".balign 32",
                "21:",
                ".long 0, 0",
                ".quad 22f",
                ".quad 23f - 22f",
                ".quad 25f",
                ".popsection",
                "xor {aborted:e}, {aborted:e}",
                "lea {scratch}, [rip + 21b]",
                "mov qword ptr fs:[{offset} + 8], {scratch}",
                "22:",
                "pause",
                "dec {rounds}",
                "jnz 22b",
                "23:",
                "24:",
                "mov qword ptr fs:[{offset} + 8], 0",
                ".pushsection .text.antiphon_rseq_abort, \"ax\", @progbits",
                ".byte 0x0f, 0xb9, 0x3d",
                ".long {signature}",
                "25:",
                "mov {aborted:e}, 1",
                "jmp 24b",
                ".popsection",
                aborted = out(reg) aborted,
                scratch = out(reg) _,
                rounds = inout(reg) rounds => _,
                offset = in(reg) OFFSET.load(Relaxed),
                signature = const SIGNATURE,
                options(nostack),
            );
        }
        aborted != 0
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod sequence {
    pub(super) fn area() -> usize {
        0
    }

    /// There are no sequences here, so nothing is stored.
    ///
    /// # Safety
    ///
    /// Nothing is asked.
    pub(crate) unsafe fn store_unless(_: *const u8, _: u8, _: *const u16) -> bool {
        false
    }

    /// There are no sequences here, so none is aborted.
    ///
    /// # Safety
    ///
    /// Nothing is asked.
    pub(crate) unsafe fn aborted_within(_: u64) -> bool {
        false
    }
}

use sequence::area;
pub(crate) use sequence::{aborted_within, store_unless};

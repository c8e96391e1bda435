//! Restartable sequences: a few instructions that the kernel aborts if it interrupts them.
//!
//! A thread registers an area with the kernel (glibc does, from 2.35 on) and, before it enters a
//! sequence, points the area at a description with three addresses: the start, the commit and the
//! abort handler. If the thread is preempted, migrated, given a signal or fenced by
//! [`crate::membarrier`] between start and commit, it continues at the abort handler. So the last
//! instruction, a store, happens only if none of these came after the first instruction.
//!
//! The assembly below keeps the kernel's rules: the four bytes before the abort handler are the
//! registered signature; the handler is outside the sequence; there is no system call inside; the
//! description is static data that stays mapped, and the pointer to it is cleared afterwards, so
//! that a library may be unloaded.
//!
//! x86-64 only. Elsewhere there is no area, so no thread ever runs a sequence.

use core::sync::atomic::AtomicIsize;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::Unsupported;

use crate::sys::{self, Errno};

/// The signature that glibc registers on x86-64, and that precedes each abort handler.
const SIGNATURE: u32 = 0x5305_3053;
/// The first length of the area, which glibc before 2.41 registers on each kernel.
const LENGTH: usize = 32;
const UNREGISTER: usize = 1;

/// The offset of each thread's area from its thread pointer; set by [`find`].
static OFFSET: AtomicIsize = AtomicIsize::new(0);

/// Finds glibc's areas. Uses the dynamic linker, so it must not be called on a lock's path.
///
/// # Errors
///
/// [`Unsupported`] if there are none: another machine, an older glibc, or rseq turned off.
pub(crate) fn find() -> Result<(), Unsupported> {
    if !cfg!(target_arch = "x86_64") {
        return Err(Unsupported);
    }
    let symbol = |name: &core::ffi::CStr| {
        // SAFETY: the name is a zero-terminated string.
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

/// Makes the areas be where no memory can be, for this process.
#[cfg(test)]
pub(crate) fn misplace() {
    // The middle of the kernel's half of the addresses.
    OFFSET.store(isize::MIN + (1 << 40), Relaxed);
}

/// Returns whether the kernel knows the calling thread's area. Asks the kernel, because the content
/// of the area can be stale in a thread or child that `clone` made without glibc.
///
/// Must be called only after [`find`] was successful.
pub(crate) fn registered() -> bool {
    let register = |length, flags| {
        let args = [area(), length, flags, SIGNATURE as usize];
        // SAFETY: the area is glibc's, 32 bytes aligned to 32 at least, alive as long as the
        // thread. A greater length is only tried where the thread has registered an area already:
        // then the kernel compares it, and writes nothing.
        unsafe { sys::call(libc::SYS_rseq, args) }
    };
    match register(LENGTH, 0) {
        // It is registered, at this address, with this length and this signature.
        Err(Errno(libc::EBUSY)) => true,
        // It was not registered, and now is by mistake; if that can't be undone, it stays
        // registered, which is correct.
        Ok(_) => register(LENGTH, UNREGISTER).is_err(),
        // An area is registered: another one, or this one with another length.
        Err(Errno(libc::EINVAL)) => {
            longer().into_iter().any(|length| register(length, 0) == Err(Errno(libc::EBUSY)))
        }
        Err(_) => false,
    }
}

/// The lengths that glibc may have registered if the kernel's features do not fit in the first one:
/// that of the features, and that of the whole area.
fn longer() -> [usize; 2] {
    // Since Linux 6.3; the kernel's numbers of the two. SAFETY: reads the process's own vector.
    let (feature, align) = unsafe { (libc::getauxval(27), libc::getauxval(28)) };
    let (feature, align) = (feature as usize, (align as usize).max(LENGTH));
    [feature.max(LENGTH), feature.next_multiple_of(align).max(LENGTH)]
}

#[cfg(target_arch = "x86_64")]
mod sequence {
    use super::*;

    /// The address of the calling thread's area. Must be called only after [`find`] was successful.
    pub(crate) fn area() -> usize {
        let thread: usize;
        // SAFETY: the ABI keeps the thread pointer there.
        unsafe {
            core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) thread,
                options(nostack, readonly, preserves_flags));
        }
        thread.wrapping_add_signed(OFFSET.load(Relaxed))
    }

    /// Stores `value` in `word` if `flag` is zero. Returns `false` if it did not store: the flag is
    /// up, or the sequence was aborted.
    ///
    /// # Safety
    ///
    /// The calling thread is [`registered`]. Both words are valid until the store takes effect.
    #[inline]
    pub(crate) unsafe fn store_unless(word: *const u8, value: u8, flag: *const u16) -> bool {
        let stored: u32;
        // SAFETY: the area is the registered one of this thread, whose pointer to a sequence (at 8)
        // may be written while no other sequence runs, and none does: a signal handler's sequence
        // ends before the handler returns. The two words are valid by the caller's promise. On
        // x86-64 a plain load is an acquire, and a plain store a release.
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

    /// Stays in a sequence until it is aborted or has looped `rounds` times (not 0). Returns
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
    /// There are no areas here.
    pub(crate) fn area() -> usize {
        0
    }

    /// There are no sequences here, so nothing is stored.
    ///
    /// # Safety
    ///
    /// None; `unsafe` only to match the function for x86-64.
    pub(crate) unsafe fn store_unless(_: *const u8, _: u8, _: *const u16) -> bool {
        false
    }

    /// There are no sequences here, so none is aborted.
    ///
    /// # Safety
    ///
    /// None; `unsafe` only to match the function for x86-64.
    pub(crate) unsafe fn aborted_within(_: u64) -> bool {
        false
    }
}

pub(crate) use sequence::{aborted_within, area, store_unless};

//! Waiting for a store without spinning: `umonitor` and `umwait` (Intel SDM volume 2, both under
//! U).
//!
//! A CPU with these instructions watches the cache line of a word and stops until the line is
//! written, an interrupt comes, or the counter has reached a deadline; meanwhile another thread on
//! its core has the core for itself. This module requests the shallower of the two states, C0.1,
//! which has the shorter exit. The kernel also bounds the time
//! (`/sys/devices/system/cpu/umwait_control`), and may forbid only the deeper state.
//!
//! **Never run by us.** None of our machines has these instructions: this code is compiled, its
//! detection is tested to agree with the kernel, and without the instructions nothing here is
//! reached.

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{rest, supported, watch};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use core::sync::atomic::AtomicU8;
    use core::sync::atomic::Ordering::Relaxed;

    const UNKNOWN: u8 = 0;
    const NO: u8 = 1;
    const YES: u8 = 2;

    /// Relaxed throughout: all threads find the same answer.
    static WAITPKG: AtomicU8 = AtomicU8::new(UNKNOWN);

    /// Returns whether this CPU has the two instructions.
    #[inline]
    pub(crate) fn supported() -> bool {
        match WAITPKG.load(Relaxed) {
            UNKNOWN => ask(),
            answer => answer == YES,
        }
    }

    #[cold]
    #[inline(never)]
    fn ask() -> bool {
        /// CPUID leaf 7, ECX.
        const BIT: u32 = 1 << 5;
        let has = core::arch::x86_64::__get_cpuid_max(0).0 >= 7
            && core::arch::x86_64::__cpuid_count(7, 0).ecx & BIT != 0;
        WAITPKG.store(if has { YES } else { NO }, Relaxed);
        has
    }

    /// Watches the cache line of `word` from now on. The caller must load the word next: the load
    /// sees an earlier write, and a later write ends the [`rest`].
    ///
    /// # Safety
    ///
    /// The CPU must be [`supported`], and `word` readable.
    #[inline]
    pub(crate) unsafe fn watch(word: *const u8) {
        // SAFETY: the CPU has the instruction, which acts as a load. Without `nomem`, the compiler
        // keeps the caller's load after it.
        unsafe {
            core::arch::asm!("umonitor {}", in(reg) word, options(nostack, preserves_flags));
        }
    }

    /// Rests until the watched line is written or the counter reaches `until`; may return
    /// spuriously, and at once if no line is watched any more.
    ///
    /// # Safety
    ///
    /// The CPU must be [`supported`].
    #[inline]
    pub(crate) unsafe fn rest(until: u64) {
        const C0_1: u32 = 1;
        // SAFETY: the CPU has the instruction, which changes only the flags.
        unsafe {
            core::arch::asm!("umwait {:e}", in(reg) C0_1, in("edx") (until >> 32) as u32,
                in("eax") until as u32, options(nostack));
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_cpu_has_what_the_kernel_says_it_has() {
            let mut buffer = [0; 8192];
            let Some(text) = crate::sys::read_file(c"/proc/cpuinfo", &mut buffer) else { return };
            let named = text.split(u8::is_ascii_whitespace).any(|flag| flag == b"waitpkg");
            assert_eq!(supported(), named);
            assert_eq!(supported(), named, "as remembered");
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn supported() -> bool {
    false
}

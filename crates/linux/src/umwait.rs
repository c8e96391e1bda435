//! Waiting for a store without spinning: `umonitor` and `umwait` (Intel SDM volume 2, both under
//! U).
//!
//! A CPU that has them watches the line of a word and stops until that is written to, an interrupt
//! comes, or the counter has reached a deadline; another thread that runs on its core has that for
//! itself.
//! The shallower of the two states is asked for, C0.1, which is left sooner. The kernel bounds the
//! time too (`/sys/devices/system/cpu/umwait_control`), and may forbid the deeper state only.
//!
//! **Never run by us.** No machine that we have has these instructions: this is compiled, the
//! detection is tested to say what the kernel says, and without it nothing here is reached.

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{rest, supported, watch};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use core::sync::atomic::AtomicU8;
    use core::sync::atomic::Ordering::Relaxed;

    const UNKNOWN: u8 = 0;
    const NO: u8 = 1;
    const YES: u8 = 2;

    /// Relaxed throughout: all threads that look find the same.
    static WAITPKG: AtomicU8 = AtomicU8::new(UNKNOWN);

    /// Whether this CPU has the two instructions.
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

    /// Watches the line of `word` from now on. A look at the word comes next: a write that came
    /// before it is seen by that, and a later one ends the [`rest`].
    ///
    /// # Safety
    ///
    /// The CPU is [`supported`], and `word` is readable.
    #[inline]
    pub(crate) unsafe fn watch(word: *const u8) {
        // SAFETY: the instruction is there, and no more than a load. That memory may be touched,
        // for all that the compiler knows, keeps the look behind it.
        unsafe {
            core::arch::asm!("umonitor {}", in(reg) word, options(nostack, preserves_flags));
        }
    }

    /// Rests until the line that is watched is written to, the counter reaches `until`, or for no
    /// reason; at once if no line is watched any more.
    ///
    /// # Safety
    ///
    /// The CPU is [`supported`].
    #[inline]
    pub(crate) unsafe fn rest(until: u64) {
        const C0_1: u32 = 1;
        // SAFETY: the instruction is there, and changes nothing but the flags.
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

//! Instructions that no Rust operation stands for.

use core::arch::asm;
use core::arch::x86_64::{__cpuid_count, CpuidResult};
use core::ptr;

/// Reads a byte from a port.
///
/// # Safety
///
/// The device at the port may do anything: the caller knows which it is.
#[inline]
pub unsafe fn inb(port: u16) -> u8 {
    let value;
    // SAFETY: the caller's promise.
    unsafe { asm!("in al, dx", out("al") value, in("dx") port, options(nostack, preserves_flags)) };
    value
}

/// Writes a byte to a port.
///
/// # Safety
///
/// See [`inb`].
#[inline]
pub unsafe fn outb(port: u16, value: u8) {
    // SAFETY: the caller's promise.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack, preserves_flags)) };
}

/// Writes a half word to a port.
///
/// # Safety
///
/// See [`inb`].
#[inline]
pub unsafe fn outw(port: u16, value: u16) {
    // SAFETY: the caller's promise.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nostack, preserves_flags)) };
}

/// Writes a word to a port.
///
/// # Safety
///
/// See [`inb`].
#[inline]
pub unsafe fn outl(port: u16, value: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack, preserves_flags))
    };
}

/// Reads a word from a port.
///
/// # Safety
///
/// See [`inb`].
#[inline]
pub unsafe fn inl(port: u16) -> u32 {
    let value;
    // SAFETY: the caller's promise.
    unsafe {
        asm!("in eax, dx", out("eax") value, in("dx") port, options(nostack, preserves_flags));
    }
    value
}

/// Reads a model-specific register.
///
/// # Safety
///
/// This processor has it.
#[inline]
pub unsafe fn rdmsr(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller's promise.
    unsafe { asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high, options(nostack)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model-specific register.
///
/// # Safety
///
/// This processor has it, and the caller knows what the value does.
#[inline]
pub unsafe fn wrmsr(register: u32, value: u64) {
    let (low, high) = (value as u32, (value >> 32) as u32);
    // SAFETY: the caller's promise.
    unsafe { asm!("wrmsr", in("ecx") register, in("eax") low, in("edx") high, options(nostack)) };
}

/// Waits for all stores, before a write to a register of the APIC or to its deadline. These writes
/// wait for nothing, and MFENCE orders memory only (Intel's manual, volume 3, section "x2APIC
/// Register Access"): LFENCE keeps what is behind it from beginning.
#[inline]
pub fn before_wrmsr() {
    // SAFETY: it waits. No `nomem`: what was written before stays before.
    unsafe { asm!("mfence", "lfence", options(nostack, preserves_flags)) };
}

/// The answer of the processor to `leaf`, or zeros if it does not know that leaf.
pub fn cpuid(leaf: u32, sub: u32) -> CpuidResult {
    let most = __cpuid_count(leaf & 0x8000_0000, 0).eax;
    if leaf > most {
        return CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: 0 };
    }
    __cpuid_count(leaf, sub)
}

/// The time-stamp counter, read when all that comes earlier is done and before anything later.
#[inline]
pub fn tsc() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: it only reads a counter, which this kernel forbids to no one.
    unsafe {
        asm!("lfence", "rdtsc", "lfence", out("eax") low, out("edx") high,
            options(nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// The time-stamp counter, read whenever the processor likes: for paths of which each instruction
/// is counted.
#[inline]
pub fn tsc_unordered() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: as above.
    unsafe {
        asm!("rdtsc", out("eax") low, out("edx") high, options(nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Whether interrupts are on, as [`without_interrupts`] found them.
#[derive(Clone, Copy, Debug)]
pub struct WereOn(bool);

/// Switches interrupts off, until [`restore`].
#[inline]
#[must_use]
pub fn without_interrupts() -> WereOn {
    const INTERRUPTS: u64 = 1 << 9;
    let flags: u64;
    // SAFETY: it delays interrupts. No `nomem`: what was written before stays before.
    unsafe { asm!("pushfq", "pop {}", "cli", out(reg) flags) };
    WereOn(flags & INTERRUPTS != 0)
}

/// Switches interrupts on again if they were.
#[inline]
pub fn restore(were_on: WereOn) {
    if were_on.0 {
        switch_on();
    }
}

/// Switches interrupts on.
#[inline]
pub fn switch_on() {
    // SAFETY: interrupts save what they use. No `nomem`: as above.
    unsafe { asm!("sti", options(nostack)) };
}

/// Whether interrupts are on.
pub fn are_on() -> bool {
    let flags: u64;
    // SAFETY: it reads flags.
    unsafe { asm!("pushfq", "pop {}", out(reg) flags, options(nomem, preserves_flags)) };
    flags & 1 << 9 != 0
}

/// Switches interrupts on and halts until one has come; switches them off again. None comes in
/// between: `sti` takes effect after the next instruction.
#[inline]
pub fn halt_with_interrupts() {
    // SAFETY: as above.
    unsafe { asm!("sti", "hlt", "cli", options(nostack)) };
}

/// Watches the line of `word` and halts, unless `changed`, until it is written to or an interrupt
/// has come. Interrupts are off before and after.
///
/// # Safety
///
/// The processor has MONITOR and MWAIT.
#[inline]
pub unsafe fn watch_with_interrupts<T>(word: &T, changed: impl Fn() -> bool) {
    // SAFETY: the caller's promise; it only reads.
    unsafe {
        asm!("monitor", in("rax") ptr::from_ref(word), in("ecx") 0, in("edx") 0,
            options(nostack, preserves_flags));
    }
    if !changed() {
        // A processor that does not wait, as that of an emulator, takes interrupts behind the
        // instruction after `mwait` at the earliest.
        // SAFETY: as in `halt_with_interrupts`.
        unsafe {
            asm!("sti", "mwait", "nop", "cli", in("eax") 0, in("ecx") 0, options(nostack));
        }
    }
}

/// Halts for good.
pub fn halt_for_good() -> ! {
    loop {
        // SAFETY: it does nothing, for ever.
        unsafe { asm!("cli", "hlt", options(nostack)) };
    }
}

//! Instructions without an equivalent in Rust.

use core::arch::asm;
use core::arch::x86_64::{__cpuid_count, CpuidResult};

/// Reads a byte from a port.
///
/// # Safety
///
/// The caller knows the device at the port, and that the access is harmless.
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

/// Writes 16 bits to a port.
///
/// # Safety
///
/// See [`inb`].
#[inline]
pub unsafe fn outw(port: u16, value: u16) {
    // SAFETY: the caller's promise.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nostack, preserves_flags)) };
}

/// Writes 32 bits to a port.
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
/// This processor has the register.
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
/// This processor has the register, and the value breaks no rule of the kernel or the compiler.
#[inline]
pub unsafe fn wrmsr(register: u32, value: u64) {
    let (low, high) = (value as u32, (value >> 32) as u32);
    // SAFETY: the caller's promise.
    unsafe { asm!("wrmsr", in("ecx") register, in("eax") low, in("edx") high, options(nostack)) };
}

/// Waits for all stores. Called before a write to a register of the APIC or to its deadline: such a
/// write does not wait for stores, and MFENCE orders only memory accesses (Intel's manual, volume
/// 3, section "x2APIC Register Access"). LFENCE keeps later instructions from beginning.
#[inline]
pub fn before_wrmsr() {
    // SAFETY: the instructions only wait. Without `nomem`, the compiler does not move stores
    // across.
    unsafe { asm!("mfence", "lfence", options(nostack, preserves_flags)) };
}

/// Returns the processor's answer to `leaf`, or zeros if it does not know that leaf.
pub fn cpuid(leaf: u32, sub: u32) -> CpuidResult {
    let most = __cpuid_count(leaf & 0x8000_0000, 0).eax;
    if leaf > most {
        return CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: 0 };
    }
    __cpuid_count(leaf, sub)
}

/// Reads the time-stamp counter, after all earlier instructions and before all later ones.
#[inline]
pub fn tsc() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the instruction only reads a counter, which this kernel does not forbid.
    unsafe {
        asm!("lfence", "rdtsc", "lfence", out("eax") low, out("edx") high,
            options(nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Reads the time-stamp counter, unordered with other instructions: for short paths.
#[inline]
pub fn tsc_unordered() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the instruction only reads a counter.
    unsafe {
        asm!("rdtsc", out("eax") low, out("edx") high, options(nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Whether interrupts were on when [`without_interrupts`] was called.
#[derive(Clone, Copy, Debug)]
pub struct WereOn(bool);

/// Switches interrupts off, until [`restore`].
#[inline]
#[must_use]
pub fn without_interrupts() -> WereOn {
    const INTERRUPTS: u64 = 1 << 9;
    let flags: u64;
    // SAFETY: the instructions only delay interrupts. Without `nomem`, the compiler does not move
    // accesses across.
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
pub(crate) fn switch_on() {
    // SAFETY: handlers save the registers that they use. Without `nomem`, the compiler does not
    // move accesses across.
    unsafe { asm!("sti", options(nostack)) };
}

/// Returns whether interrupts are on.
pub fn are_on() -> bool {
    let flags: u64;
    // SAFETY: the instructions only read flags.
    unsafe { asm!("pushfq", "pop {}", out(reg) flags, options(nomem, preserves_flags)) };
    flags & 1 << 9 != 0
}

/// Switches interrupts on, halts until one was handled, and switches them off again. No interrupt
/// comes between `sti` and `hlt`, because `sti` takes effect after the next instruction.
#[inline]
pub fn halt_with_interrupts() {
    // SAFETY: handlers save the registers that they use; the processor halts until one has run.
    unsafe { asm!("sti", "hlt", "cli", options(nostack)) };
}

/// Watches the cache line of `word`, and, unless `changed` returns `true`, waits until the line is
/// written to or an interrupt has come. Interrupts are off before and after.
///
/// # Safety
///
/// The processor has MONITOR and MWAIT, and the word can be read.
#[inline]
pub unsafe fn watch_with_interrupts<T>(word: *const T, changed: impl Fn() -> bool) {
    // SAFETY: the caller promises the instruction, which only reads.
    unsafe {
        asm!("monitor", in("rax") word, in("ecx") 0, in("edx") 0,
            options(nostack, preserves_flags));
    }
    if !changed() {
        // A processor that does not wait, such as an emulator's, takes an interrupt at the earliest
        // after the instruction that follows `mwait`.
        // SAFETY: as in `halt_with_interrupts`.
        unsafe {
            asm!("sti", "mwait", "nop", "cli", in("eax") 0, in("ecx") 0, options(nostack));
        }
    }
}

/// Halts for good.
pub fn halt_for_good() -> ! {
    loop {
        // SAFETY: the processor only halts, with interrupts off.
        unsafe { asm!("cli", "hlt", options(nostack)) };
    }
}

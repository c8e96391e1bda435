//! User interrupts (Intel SDM volume 3, chapter "User Interrupts"): a notification is one
//! instruction, `senduipi`, and interrupts a thread that runs.
//!
//! **Never run by us.** Mainline Linux, as of 6.18, does not support user interrupts, and neither
//! do our machines: this code is compiled, and [`UserInterrupts::new`] is tested to refuse. The
//! calls that register receivers and senders differ between the kernels that have them, so they are
//! left to the caller, as is the handler.

use antiphon_platform::{Atomic, Budget, Deadline, Notify, Parked, Ticket, Unsupported};
use core::sync::atomic::Ordering::Relaxed;

use super::timed_out;
use crate::U32;

/// Notifies the owner by a user interrupt. The owner does not sleep: it must run to be interrupted.
#[derive(Debug)]
pub struct UserInterrupts {
    /// The entry of the senders' table (UITT) that names the owner.
    index: u64,
    /// No thread writes this word: the owner spins on it until it is interrupted.
    idle: U32,
}

impl UserInterrupts {
    /// Notifies by entry `index` of the senders' table of each thread that posts.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if the processor or the kernel does not have user interrupts.
    ///
    /// # Safety
    ///
    /// The kernel has given that entry to each thread that posts, and the owner has a handler for
    /// the vector that the entry names.
    pub unsafe fn new(index: u64) -> Result<Self, Unsupported> {
        if supported() { Ok(Self { index, idle: U32::ZERO }) } else { Err(Unsupported) }
    }
}

impl Notify for UserInterrupts {
    fn begin(&self) -> Ticket {
        Ticket::MIN
    }

    unsafe fn sleep(&self, _: Ticket, deadline: Option<Deadline>) -> Parked {
        const PIECE: Budget = Budget::ns(2_000);
        // Relaxed: only a delay; an interrupt affects it only through its handler.
        let _ = self.idle.spin_while(Relaxed, PIECE, |word| word == 0);
        timed_out(deadline)
    }

    unsafe fn end(&self, _: Ticket) {}

    fn notify(&self, _: Ticket) {
        send(self.index);
    }
}

/// Returns whether processor and kernel support user interrupts. A kernel that does lists them in
/// `/proc/cpuinfo`.
#[cfg(target_arch = "x86_64")]
fn supported() -> bool {
    /// CPUID leaf 7, EDX.
    const UINTR: u32 = 1 << 5;
    let has = core::arch::x86_64::__get_cpuid_max(0).0 >= 7
        && core::arch::x86_64::__cpuid_count(7, 0).edx & UINTR != 0;
    let mut buffer = [0; 8192];
    let mut flags = || crate::sys::read_file(c"/proc/cpuinfo", &mut buffer).map(<[u8]>::to_vec);
    has && flags().is_some_and(|text| text.split(u8::is_ascii_whitespace).any(|w| w == b"uintr"))
}

#[cfg(not(target_arch = "x86_64"))]
fn supported() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
fn send(index: u64) {
    // SAFETY: the promise of `new`, which has also checked that the instruction exists. It writes
    // to the owner's descriptor, and not to our memory.
    unsafe { core::arch::asm!("senduipi {}", in(reg) index, options(nostack, preserves_flags)) }
}

#[cfg(not(target_arch = "x86_64"))]
fn send(_: u64) {}

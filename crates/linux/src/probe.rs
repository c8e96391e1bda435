//! Probes for tracers, as statically defined tracepoints: SystemTap's notes of type 3 in section
//! `.note.stapsdt`, which gdb, perf, bpftrace and bcc read.
//!
//! | `antiphon:…` | when | arguments |
//! |---|---|---|
//! | `lock_wait_start` | a lock was not free, and the wait begins | address of the lock, kind |
//! | `lock_acquired` | the wait has ended with the lock | the same |
//! | `lock_gave_up` | the wait has ended without the lock | the same |
//!
//! A probe is a `nop` where a wait begins or ends and nowhere else: taking a free lock passes none.
//! Without a tracer, a wait costs two of them and no reading of a clock, because a tracer has its
//! own.

use antiphon_platform::{Probe, Traced};

/// The prefix of a register's name in a note.
#[cfg(target_arch = "x86_64")]
macro_rules! register {
    () => {
        "%"
    };
}
#[cfg(not(target_arch = "x86_64"))]
macro_rules! register {
    () => {
        ""
    };
}

/// Defines a probe with that name and the two words of a [`Traced`].
///
/// The note has the address of the instruction; the link-time address of `.stapsdt.base`, from
/// which tools compute how a linker moved sections later; no address of a semaphore; then provider,
/// name and locations of the arguments, each zero-terminated. The arguments are unsigned, of 8
/// bytes. Nothing that is loaded refers to the base, so the linker must retain it (`R`).
macro_rules! probe {
    ($name:literal, $traced:expr) => {{
        let Traced { address, kind } = $traced;
        // SAFETY: a `nop`. The rest goes to other sections: a note that is not loaded, and one byte
        // that is never read.
        unsafe {
            core::arch::asm!(
                "990: nop",
                ".pushsection .note.stapsdt, \"\", \"note\"",
                ".balign 4",
                ".4byte 992f-991f, 994f-993f, 3",
                "991: .asciz \"stapsdt\"",
                "992: .balign 4",
                "993: .8byte 990b",
                ".8byte _.stapsdt.base",
                ".8byte 0",
                ".asciz \"antiphon\"",
                concat!(".asciz \"", $name, "\""),
                concat!(".asciz \"8@", register!(), "{address} 8@", register!(), "{kind}\""),
                "994: .balign 4",
                ".popsection",
                ".ifndef _.stapsdt.base",
                ".pushsection .stapsdt.base, \"aGR\", \"progbits\", .stapsdt.base, comdat",
                ".weak _.stapsdt.base",
                ".hidden _.stapsdt.base",
                "_.stapsdt.base: .space 1",
                ".size _.stapsdt.base, 1",
                ".popsection",
                ".endif",
                address = in(reg) address,
                kind = in(reg) kind as usize,
                options(nostack, preserves_flags),
            );
        }
    }};
}

#[inline(always)]
pub(crate) fn probe(probe: Probe) {
    match probe {
        Probe::WaitStart(traced) => probe!("lock_wait_start", traced),
        Probe::Acquired(traced) => probe!("lock_acquired", traced),
        Probe::GaveUp(traced) => probe!("lock_gave_up", traced),
    }
}

//! Bare metal as a platform: a small kernel that is linked with a program and its runtime.
//!
//! There is no user mode and no system call: the program's threads are kernel threads, and an
//! active message is an interrupt. `Metal` implements [`Platform`](antiphon_platform::Platform), so
//! that the locks, waits and messages of Antiphon run here from the same source as on Linux.
//!
//! | part | files | tested |
//! |---|---|---|
//! | loaders | `bytes`, `pvh`, `multiboot2` | on the host, with malformed information |
//! | firmware's tables | `acpi`, `memory`, `machine` | on the host, with malformed tables |
//! | state that CPUs share | `antiphon-wakeup` | by models |
//! | the scheduler's protocol | `scheduler` | by models |
//! | state of one CPU | `deadlines` | on the host |
//! | figures, options | `statistics`, `options` | on the host |
//! | what image and host share | `channel` | by models; on the host, with malformed requests |
//! | the machine | `x86` | in QEMU |
//! | threads, memory, messages | `kernel`, `metal`, `platform`, `words`, `interrupt` | in QEMU |
//!
//! `antiphon-lab metal` builds an image with `--cfg antiphon_image` (`docs/metal.md`). Without that
//! flag this is an ordinary library, and code that can only run on bare metal is compiled but not
//! linked to anything.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod acpi;
pub mod bytes;
pub mod channel;
pub mod deadlines;
pub mod machine;
pub mod memory;
pub mod multiboot2;
pub mod options;
pub mod pvh;
pub mod scheduler;
pub mod statistics;

// Names of the protocol, for the kernel.
#[cfg(target_arch = "x86_64")]
use antiphon_wakeup::{batch, broadcast, direct, names, pending, slot, table, token};
use antiphon_wakeup::{inbox, run_queue};

#[cfg(target_arch = "x86_64")]
mod interrupt;
#[cfg(target_arch = "x86_64")]
#[cfg_attr(
    not(antiphon_image),
    allow(dead_code, reason = "the way up from the boot is an image's")
)]
pub mod kernel;
#[cfg(target_arch = "x86_64")]
mod metal;
#[cfg(target_arch = "x86_64")]
mod platform;
#[cfg(target_arch = "x86_64")]
mod words;
#[cfg(target_arch = "x86_64")]
#[cfg_attr(not(antiphon_image), allow(dead_code, reason = "as above"))]
pub mod x86;

#[cfg(target_arch = "x86_64")]
pub use interrupt::Interrupt;
#[cfg(target_arch = "x86_64")]
pub use metal::Metal;

/// Makes `$main`, a `fn() -> Outcome`, the program of an image: it runs in a thread of CPU 0, and
/// the machine ends with the outcome that it returns.
///
/// [`Outcome`](x86::power::Outcome) lists the exit codes.
#[macro_export]
macro_rules! program {
    ($main:path) => {
        /// Called by the kernel when the machine is set up.
        #[unsafe(no_mangle)]
        fn antiphon_metal_program() -> $crate::x86::power::Outcome {
            $main()
        }
    };
}

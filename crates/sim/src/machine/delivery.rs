//! How an interrupt enters its handler: the delivery modes of a simulated interrupt controller.
//!
//! | mode | enters | is |
//! |---|---|---|
//! | `kernel` | the kernel, by the table of interrupts, from the kernel | `[interrupt]` |
//! | `remote-syscall` | the kernel, as a `syscall` of that CPU would | proposed: Nemo, section V |
//! | `fred` | the kernel, by the entry of FRED, from the kernel | in processors of 2026 |
//! | `uintr` | a program, without its kernel: user interrupts | in processors since 2023 |
//! | `signal` | a program, by way of its kernel | POSIX |
//!
//! The way between two CPUs is the same for all of them; they differ in what the sender pays and in
//! what passes at the destination until the handler's first instruction.

use super::{Interrupt, Machine};

/// A delivery mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// Through the interrupt table, without a change of privilege: bare metal.
    #[default]
    Kernel,
    /// As a system call of the destination: without a table, a stack switch or a stack access.
    RemoteSyscall,
    /// Through the entry point of FRED, without a change of privilege.
    Fred,
    /// To a program, through its descriptor of user interrupts.
    UserInterrupt,
    /// To a program, through its kernel.
    Signal,
}

/// The costs of a delivery mode, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The mode.
    pub delivery: Delivery,
    /// Time that the sender is busy; `None`: as with `[interrupt]`.
    pub send_ns: Option<u64>,
    /// Time from the arrival at the destination to the handler's first instruction.
    pub handle_ns: u64,
}

impl Delivery {
    /// All modes.
    pub const ALL: [Self; 5] =
        [Self::Kernel, Self::RemoteSyscall, Self::Fred, Self::UserInterrupt, Self::Signal];

    /// The name of the mode, on command lines and in machine files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::RemoteSyscall => "remote-syscall",
            Self::Fred => "fred",
            Self::UserInterrupt => "uintr",
            Self::Signal => "signal",
        }
    }
}

impl Machine {
    /// The same machine, whose interrupts are delivered in this mode; `None` if its file has no
    /// costs of it.
    #[must_use]
    pub fn delivering(&self, delivery: Delivery) -> Option<Self> {
        if delivery == Delivery::Kernel {
            return Some(self.clone());
        }
        let entry = self.entries.iter().find(|entry| entry.delivery == delivery)?;
        let interrupt = Interrupt {
            send_ns: entry.send_ns.unwrap_or(self.interrupt.send_ns),
            handle_ns: entry.handle_ns,
            ..self.interrupt
        };
        Some(Self { interrupt, ..self.clone() })
    }
}

//! The notifier of a mailbox whose owner is a CPU: an active message interrupts the CPU at once,
//! whatever it runs.

use antiphon_platform::{Deadline, Notify, Parked, Ticket};

use crate::kernel::message::{self, Action};

/// Notifies a CPU by making it run an action, which delivers the posted messages.
///
/// The owner of such a mailbox never sleeps in it: it arms the mailbox, as before a sleep, and goes
/// on with other work; the action delivers messages, and arms the mailbox again.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt {
    /// The number of the CPU.
    pub cpu: u32,
    /// The action that delivers messages.
    pub action: Action,
}

impl Notify for Interrupt {
    #[inline]
    fn begin(&self) -> Ticket {
        Ticket::MIN
    }

    /// Does not sleep: the owner checks the mailbox again.
    unsafe fn sleep(&self, _: Ticket, _: Option<Deadline>) -> Parked {
        Parked::Woken
    }

    unsafe fn end(&self, _: Ticket) {}

    #[inline]
    fn notify(&self, _: Ticket) {
        message::post(self.cpu, self.action);
    }
}

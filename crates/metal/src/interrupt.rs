//! A mailbox whose owner is a CPU: it is notified by an active message, at once, whatever it runs.

use antiphon_platform::{Deadline, Notify, Parked, Ticket};

use crate::kernel::message::{self, Action};

/// Notifies a CPU by having it run an action, which delivers what was posted.
///
/// The owner of such a mailbox never sleeps in it: it arms it (as before a sleep), and goes on with
/// something else; the action delivers, and arms it again.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt {
    /// The CPU.
    pub cpu: u32,
    /// The action that delivers.
    pub action: Action,
}

impl Notify for Interrupt {
    #[inline]
    fn begin(&self) -> Ticket {
        Ticket::MIN
    }

    /// Does not sleep: the owner looks again.
    unsafe fn sleep(&self, _: Ticket, _: Option<Deadline>) -> Parked {
        Parked::Woken
    }

    unsafe fn end(&self, _: Ticket) {}

    #[inline]
    fn notify(&self, _: Ticket) {
        message::post(self.cpu, self.action);
    }
}

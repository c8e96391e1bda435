//! Models of owners with their own way to sleep: notified once, and not asleep while others wait
//! for them.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::Check;
use antiphon_platform::{Atomic, AtomicInteger, Atomics, Deadline, Notify, Parked, Ticket};
use antiphon_runtime::message::Message;

use super::{Log, Mailbox, delivering, logging};
use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::Program;

pub fn entries() -> Vec<Entry> {
    Subject("message").models([
        model("tells-once-2+1", delivering::<Once>(2, 1, 4, 0), PLAIN),
        model("dozes-1+1", dozing(), PLAIN),
    ])
}

/// Sleeps until it is notified, which happens at most once for each ticket.
struct Once {
    tickets: <Check as Atomics>::U32,
    told: [<Check as Atomics>::U32; 8],
}

impl Once {
    fn told(&self, ticket: Ticket) -> &<Check as Atomics>::U32 {
        &self.told[ticket.get() as usize - 1]
    }

    /// Waits for the last ticket.
    fn wait(&self) {
        let last = self.tickets.load(Relaxed) as usize - 1;
        self.told[last].wait_while(Relaxed, |told| told == 0);
    }
}

impl Default for Once {
    fn default() -> Self {
        Self { tickets: Atomic::ZERO, told: [const { Atomic::ZERO }; 8] }
    }
}

impl Notify for Once {
    fn begin(&self) -> Ticket {
        Ticket::MIN.saturating_add(self.tickets.fetch_add(1, Relaxed).into())
    }

    unsafe fn sleep(&self, ticket: Ticket, _: Option<Deadline>) -> Parked {
        self.told(ticket).wait_while(Relaxed, |told| told == 0);
        Parked::Woken
    }

    unsafe fn end(&self, _: Ticket) {}

    fn notify(&self, ticket: Ticket) {
        assert_eq!(self.told(ticket).fetch_add(1, Relaxed), 0, "told twice");
    }
}

/// An event loop: it sleeps when it is idle, and then polls once. The poster waits for room.
fn dozing() -> Program {
    Program::new(2, 4, |scope| {
        let log = Log::new(2);
        let (actions, action) = logging(&log);
        let mut mailbox = Mailbox::<Once>::new(&actions, 1).spinning(0);
        let (sender, posted) = (mailbox.sender(), log.clone());
        scope.spawn(move || {
            for number in 0..2 {
                let message = Message { action, payload: posted.0.post(number) };
                sender.post_wait(message, None).expect("open");
            }
        });
        scope.spawn(move || {
            while log.0.count() < 2 {
                if let Some(doze) = mailbox.doze() {
                    doze.notifier().wait();
                }
                let _ = mailbox.poll();
            }
        });
    })
}

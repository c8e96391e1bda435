//! The mechanisms of waiters in a program that is the kernel: interrupts, and active messages that
//! an interrupt announces.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Deadline, Notify, Parked, Ticket, Topology as _};
use antiphon_runtime::message::{ActionId, Actions, Mailbox, Message, Sender};
use antiphon_sim::{Sim, await_interrupt, interrupt, interrupt_others, now};

use super::wakes::Wakes;

/// An interrupt to each waiter; to several, by the shorthand for all other CPUs.
pub type Ipi = Interrupts<false>;

/// Interrupts to the waiters, sent one by one.
pub type IpiLoop = Interrupts<true>;

/// The CPUs of waiters, as recorded by each when it begins to wait.
pub struct Interrupts<const ONE_BY_ONE: bool>(Vec<Cell<u32>>);

impl<const ONE_BY_ONE: bool> Wakes for Interrupts<ONE_BY_ONE> {
    fn new(waiters: usize) -> Self {
        Self((0..waiters).map(|_| Cell::default()).collect())
    }

    /// Waits for the next interrupt of the calling waiter's CPU. Returns when its handling began.
    fn wait(&self, waiter: usize, ready: impl FnOnce()) -> u64 {
        self.0[waiter].set(Sim::cpu().0);
        ready();
        await_interrupt();
        now()
    }

    fn wake(&self) {
        if ONE_BY_ONE || self.0.len() == 1 {
            self.0.iter().for_each(|cpu| interrupt(cpu.get()));
        } else {
            interrupt_others();
        }
    }
}

/// A mailbox's owner that handles the interrupts of its CPU.
#[derive(Default)]
pub struct Handler(AtomicU32);

impl Notify for Handler {
    fn begin(&self) -> Ticket {
        self.0.store(Sim::cpu().0, Relaxed);
        Ticket::MIN
    }

    // Neither this function nor `end` uses the ticket.
    unsafe fn sleep(&self, _: Ticket, _: Option<Deadline>) -> Parked {
        await_interrupt();
        Parked::Woken
    }

    unsafe fn end(&self, _: Ticket) {}

    fn notify(&self, _: Ticket) {
        interrupt(self.0.load(Relaxed));
    }
}

/// A message to each waiter's mailbox, posted one by one. `N` notifies the owners.
pub struct Messages<N: Notify> {
    /// Each mailbox is used by its owner only.
    mailboxes: Vec<RefCell<Mailbox<Sim, N>>>,
    senders: Vec<Sender<Sim, N>>,
    action: ActionId,
    /// Time at which each waiter's action has begun.
    begun_ns: Arc<[AtomicU64]>,
}

impl<N: Notify + Default> Wakes for Messages<N> {
    fn new(waiters: usize) -> Self {
        let actions = Actions::<Sim>::new(1);
        let begun_ns: Arc<[AtomicU64]> = (0..waiters).map(|_| AtomicU64::new(0)).collect();
        let begins = Arc::clone(&begun_ns);
        let action = actions.register(move |[waiter, ..]| {
            begins[waiter as usize].store(now(), Relaxed);
        });
        let mailbox = |_| Mailbox::with_notify(&actions, 8, N::default()).spinning(0);
        let mailboxes: Vec<_> = (0..waiters).map(mailbox).collect();
        Self {
            senders: mailboxes.iter().map(Mailbox::sender).collect(),
            mailboxes: mailboxes.into_iter().map(RefCell::new).collect(),
            action: action.expect("a table of one entry has room for one"),
            begun_ns,
        }
    }

    fn wait(&self, waiter: usize, ready: impl FnOnce()) -> u64 {
        ready();
        let delivered = self.mailboxes[waiter].borrow_mut().wait(None);
        assert_eq!((delivered.messages, delivered.strays), (1, 0), "one message a round");
        self.begun_ns[waiter].load(Relaxed)
    }

    fn wake(&self) {
        for (waiter, sender) in (0..).zip(&self.senders) {
            let message = Message { action: self.action, payload: [waiter, 0, 0] };
            sender.post(message).expect("room for the one message of a round");
        }
    }
}

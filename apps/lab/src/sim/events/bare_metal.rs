//! The mechanisms of the bare-metal kernel of this tree: active messages, and kicks that are sent
//! together.
//!
//! A message is posted and taken by `antiphon_metal`'s own [`Pending`]. Its words are the
//! processor's, which cost nothing here; so each access to them is made on a simulated line, too. A
//! broadcast makes the accesses of the kernel's: two counters at the sender, which each destination
//! compares with what it has seen. What the kernel runs around them takes the lengths of its paths
//! ([`paths`](super::paths)).

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_metal::pending::Pending;
use antiphon_platform::Topology as _;
use antiphon_platform::{Atomic, AtomicInteger, Atomics, Deadline, Notify, Parked, Ticket};
use antiphon_sim::{
    OwnLine, Sim, await_interrupt, interrupt, interrupt_others, kick_once, now, run_instructions,
};
use antiphon_sync::wait::{Condvar, Event};

use super::paths::LENGTHS;
use super::wakes::Wakes;

type Line = OwnLine<<Sim as Atomics>::U64>;

/// A condition variable's list, whose sender puts all waiters on their run queues and then kicks
/// all CPUs by one interrupt.
pub struct Batched(Condvar<Sim>);

impl Wakes for Batched {
    fn new(_: usize) -> Self {
        Self(Condvar::NEW)
    }

    fn wait(&self, waiter: usize, ready: impl FnOnce()) -> u64 {
        Wakes::wait(&self.0, waiter, ready)
    }

    fn wake(&self) {
        kick_once(|| self.0.notify_all());
    }
}

/// The pending actions of a CPU.
struct Posts {
    cpu: AtomicU32,
    pending: Pending,
    /// Stands for the line of `pending` that has the word of its only action.
    line: Line,
}

impl Default for Posts {
    fn default() -> Self {
        Self { cpu: AtomicU32::new(0), pending: Pending::new(), line: OwnLine(Atomic::ZERO) }
    }
}

impl Posts {
    /// Makes the action pending, and interrupts the CPU if none is on its way.
    fn post(&self) {
        run_instructions(LENGTHS.message.sender);
        // Release, twice, and AcqRel: as `Pending::post` does to three words of one line.
        self.line.fetch_or(1, Release);
        self.line.fetch_or(1, Release);
        self.line.fetch_or(1, AcqRel);
        if self.pending.post(0) {
            interrupt(self.cpu.load(Relaxed));
        }
    }

    /// Handles an interrupt: returns how many actions were pending.
    fn take(&self) -> u32 {
        // AcqRel, and Acquire twice: as `Pending::drain`.
        self.line.swap(0, AcqRel);
        self.line.swap(0, Acquire);
        self.line.swap(0, Acquire);
        let mut taken = 0;
        self.pending.drain(|_| taken += 1);
        taken
    }
}

/// The kernel's active messages: an action of one CPU, or of all others by one command.
pub struct Active {
    posts: Vec<Posts>,
    /// The counters of broadcasts: of the action, and of all.
    sent: Line,
    total: Line,
    /// Whether several waiters are posted to one by one.
    one_by_one: bool,
}

impl Active {
    fn of(waiters: usize, one_by_one: bool) -> Self {
        Self {
            posts: (0..waiters).map(|_| Posts::default()).collect(),
            sent: OwnLine(Atomic::ZERO),
            total: OwnLine(Atomic::ZERO),
            one_by_one,
        }
    }

    fn is_broadcast(&self) -> bool {
        self.posts.len() > 1 && !self.one_by_one
    }

    /// Waits for the interrupt of a waiter's CPU, and handles it up to the action.
    fn handle(&self, waiter: usize) {
        await_interrupt();
        let taken = self.posts[waiter].take();
        if self.is_broadcast() {
            // Acquire, both: pair with the releases in `wake`.
            self.total.load(Acquire);
            self.sent.load(Acquire);
            run_instructions(LENGTHS.broadcast.destination);
        } else {
            assert_eq!(taken, 1, "one action a round");
            run_instructions(LENGTHS.message.destination);
        }
    }
}

impl Wakes for Active {
    fn new(waiters: usize) -> Self {
        Self::of(waiters, false)
    }

    fn wait(&self, waiter: usize, ready: impl FnOnce()) -> u64 {
        self.posts[waiter].cpu.store(Sim::cpu().0, Relaxed);
        ready();
        self.handle(waiter);
        now()
    }

    fn wake(&self) {
        if self.is_broadcast() {
            run_instructions(LENGTHS.broadcast.sender);
            // Release, both: as the kernel's broadcast does.
            self.sent.fetch_add(1, Release);
            self.total.fetch_add(1, Release);
            interrupt_others();
        } else {
            self.posts.iter().for_each(Posts::post);
        }
    }
}

/// The same, to one after the other.
pub struct ActiveLoop(Active);

impl Wakes for ActiveLoop {
    fn new(waiters: usize) -> Self {
        Self(Active::of(waiters, true))
    }

    fn wait(&self, waiter: usize, ready: impl FnOnce()) -> u64 {
        self.0.wait(waiter, ready)
    }

    fn wake(&self) {
        self.0.wake();
    }
}

/// Messages whose action wakes the waiter, a thread of the same CPU, by an event of its own: what
/// the waiter and its run queue consist of stays on that CPU.
pub struct ActiveWake {
    messages: Active,
    events: Vec<OwnLine<Event<Sim>>>,
}

impl Wakes for ActiveWake {
    const HANDLES: bool = true;

    fn new(waiters: usize) -> Self {
        let events = (0..waiters).map(|_| OwnLine(Event::NEW)).collect();
        Self { messages: Active::new(waiters), events }
    }

    fn wait(&self, waiter: usize, ready: impl FnOnce()) -> u64 {
        self.messages.posts[waiter].cpu.store(Sim::cpu().0, Relaxed);
        ready();
        self.events[waiter].0.wait();
        now()
    }

    fn wake(&self) {
        self.messages.wake();
    }

    fn handle(&self, waiter: usize) {
        self.messages.handle(waiter);
        self.events[waiter].0.set();
    }
}

/// Notifies the owner of a runtime's mailbox, a CPU, by an active message of the kernel.
#[derive(Default)]
pub struct Interrupt(Posts);

impl Notify for Interrupt {
    fn begin(&self) -> Ticket {
        self.0.cpu.store(Sim::cpu().0, Relaxed);
        Ticket::MIN
    }

    // Neither this function nor `end` uses the ticket.
    unsafe fn sleep(&self, _: Ticket, _: Option<Deadline>) -> Parked {
        await_interrupt();
        assert_eq!(self.0.take(), 1, "one message a round");
        run_instructions(LENGTHS.message.destination);
        Parked::Woken
    }

    unsafe fn end(&self, _: Ticket) {}

    fn notify(&self, _: Ticket) {
        self.0.post();
    }
}

//! The mechanisms of the bare-metal kernel of this tree: active messages, kicks that are sent
//! together, and its own condition variable.
//!
//! Messages and that condition variable are the code of `antiphon_wakeup`, on simulated words.
//! The rest of the kernel around it takes the lengths of its paths ([`paths`](super::paths)).

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{
    Arena, Deadline, Notify, Parked, Platform, Ticket, Topology as _, Waiter, WaiterId,
};
use antiphon_sim::{
    OwnLine, Sim, await_interrupt, interrupt, interrupt_others, kick_once, now, run_instructions,
};
use antiphon_sync::wait::Condvar;
use antiphon_wakeup::batch::Batch;
use antiphon_wakeup::broadcast::{Broadcasts, Seen};
use antiphon_wakeup::condvar::{self, Threads, Waiters};
use antiphon_wakeup::machine::Machine;
use antiphon_wakeup::pending::Pending;

use super::interrupts::Ipi;
use super::paths::LENGTHS;
use super::wakes::{Condition, Wakes};

/// The number of actions that can be broadcast, as in the kernel.
const CAST: usize = 16;

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

/// What a CPU has of active messages.
struct Inbox {
    cpu: AtomicU32,
    pending: OwnLine<Pending<Sim>>,
    batch: OwnLine<Batch<Sim>>,
    seen: OwnLine<Seen<Sim, CAST>>,
}

impl Default for Inbox {
    fn default() -> Self {
        Self {
            cpu: AtomicU32::new(0),
            pending: OwnLine(Pending::NEW),
            batch: OwnLine(Batch::NEW),
            seen: OwnLine(Seen::NEW),
        }
    }
}

impl Inbox {
    /// Makes an action pending, and interrupts the CPU if no interrupt is on its way.
    fn post(&self) {
        run_instructions(LENGTHS.message.sender);
        if self.pending.post(0) {
            interrupt(self.cpu.load(Relaxed));
        }
    }

    /// Waits for the interrupt and runs what is pending, in a batch; `action` begins when the path
    /// of a message, or of a broadcast, is over.
    fn handle(&self, broadcasts: &Broadcasts<Sim, CAST>, mut action: impl FnMut()) {
        await_interrupt();
        let mut ran = 0;
        self.batch.run(|_| {
            self.pending.drain(|_| {
                run_instructions(LENGTHS.message.destination);
                ran += 1;
                action();
            });
            broadcasts.take(&self.seen, |_| {
                run_instructions(LENGTHS.broadcast.destination);
                ran += 1;
                action();
            });
        });
        assert_eq!(ran, 1, "one action a round");
    }
}

/// The kernel's active messages: an action of one CPU, or of all others by one command.
pub type Active = Messages<false>;

/// The same, to one after the other.
pub type ActiveLoop = Messages<true>;

/// Active messages; several waiters are posted to one by one, if it says so.
pub struct Messages<const ONE_BY_ONE: bool> {
    inboxes: Vec<Inbox>,
    broadcasts: OwnLine<Broadcasts<Sim, CAST>>,
    /// The sender's own.
    seen: OwnLine<Seen<Sim, CAST>>,
    /// When each waiter's action has begun.
    begun_ns: Vec<Cell<u64>>,
}

impl<const ONE_BY_ONE: bool> Wakes for Messages<ONE_BY_ONE> {
    fn new(waiters: usize) -> Self {
        Self {
            inboxes: (0..waiters).map(|_| Inbox::default()).collect(),
            broadcasts: OwnLine(Broadcasts::NEW),
            seen: OwnLine(Seen::NEW),
            begun_ns: (0..waiters).map(|_| Cell::new(0)).collect(),
        }
    }

    fn wait(&self, waiter: usize, ready: impl FnOnce()) -> u64 {
        self.inboxes[waiter].cpu.store(Sim::cpu().0, Relaxed);
        ready();
        self.inboxes[waiter].handle(&self.broadcasts, || self.begun_ns[waiter].set(now()));
        self.begun_ns[waiter].get()
    }

    fn wake(&self) {
        if ONE_BY_ONE || self.inboxes.len() == 1 {
            self.inboxes.iter().for_each(Inbox::post);
        } else {
            run_instructions(LENGTHS.broadcast.sender);
            self.broadcasts.send(0, &self.seen);
            interrupt_others();
        }
    }
}

/// An action with a vector of its own: the interrupt alone says which action it is, and no line
/// moves.
pub struct Direct {
    ipi: Ipi,
    /// When each waiter's action has begun.
    begun_ns: Vec<Cell<u64>>,
}

impl Wakes for Direct {
    fn new(waiters: usize) -> Self {
        Self { ipi: Ipi::new(waiters), begun_ns: (0..waiters).map(|_| Cell::new(0)).collect() }
    }

    fn wait(&self, waiter: usize, ready: impl FnOnce()) -> u64 {
        self.ipi.wait(waiter, ready);
        run_instructions(LENGTHS.direct.destination);
        self.begun_ns[waiter].set(now());
        now()
    }

    fn wake(&self) {
        self.ipi.wake();
    }
}

/// Messages whose action wakes the waiter, a thread of the same CPU, by `thread::unblock`: what the
/// waiter and its run queue consist of stays on that CPU.
pub struct ActiveWake {
    messages: Active,
    blocked: Vec<Blocked>,
}

/// The token by which a thread blocks, which is the kernel's own: it needs no list, and so no lock.
#[derive(Default)]
struct Blocked(Cell<Option<WaiterId>>);

impl Blocked {
    /// The token of the calling thread, which keeps it.
    fn own(&self) -> &'static Waiter<Sim> {
        let arena = arena();
        let id = self.0.get().or_else(|| arena.take());
        self.0.set(id);
        id.and_then(|id| arena.resolve(id)).expect("a node for each thread")
    }

    fn unblock(&self) {
        let index = self.0.get().map(WaiterId::index);
        let waiter = index.and_then(|index| arena().reference(index));
        Sim::unpark(waiter.expect("the thread has blocked"));
    }
}

fn arena() -> &'static Arena<Sim> {
    // SAFETY: this module gives no node back, and uses those that it has taken only to park.
    unsafe { Sim::arena() }
}

impl Wakes for ActiveWake {
    const HANDLES: bool = true;

    fn new(waiters: usize) -> Self {
        let blocked = (0..waiters).map(|_| Blocked::default()).collect();
        Self { messages: Active::new(waiters), blocked }
    }

    fn wait(&self, waiter: usize, ready: impl FnOnce()) -> u64 {
        self.messages.inboxes[waiter].cpu.store(Sim::cpu().0, Relaxed);
        let own = self.blocked[waiter].own();
        ready();
        let _ = Sim::park(own, None);
        now()
    }

    fn wake(&self) {
        self.messages.wake();
    }

    fn handle(&self, waiter: usize) {
        let Active { inboxes, broadcasts, .. } = &self.messages;
        inboxes[waiter].handle(broadcasts, || self.blocked[waiter].unblock());
    }
}

/// A condition variable whose waiters stand in lists of their CPUs.
pub struct PerCpu {
    condvar: condvar::Condvar<Sim, WORDS>,
    cpus: Vec<WaiterCpu>,
}

/// The number of words that have a bit of each CPU.
const WORDS: usize = 32;

/// The CPU of a waiter.
struct WaiterCpu {
    blocked: Blocked,
    list: UnsafeCell<Waiters<Sim, usize>>,
    /// Whether its interrupts are off.
    are_off: Cell<bool>,
}

impl Default for WaiterCpu {
    fn default() -> Self {
        let list = UnsafeCell::new(Waiters::NEW);
        Self { blocked: Blocked::default(), list, are_off: Cell::new(false) }
    }
}

/// The kernel, as a CPU sees it: that of a waiter, or the sender's.
struct View<'a> {
    cpus: &'a [WaiterCpu],
    own: Option<usize>,
}

impl Machine for View<'_> {
    type Words = Sim;
    type Cpu = u32;
    type Signal = ();

    const KICK: () = ();

    fn is_current(&self, cpu: u32) -> bool {
        cpu == Sim::cpu().0
    }

    fn others(&self) -> usize {
        Sim::cpus() as usize - 1
    }

    fn without_interrupts<R>(&self, body: impl FnOnce() -> R) -> R {
        let Some(own) = self.own else { return body() };
        // The simulator's interrupts can't be switched off; in these rounds there is none then.
        let were_off = self.cpus[own].are_off.replace(true);
        assert!(!were_off, "an interrupt has come while they are off");
        let result = body();
        self.cpus[own].are_off.set(false);
        result
    }

    fn interrupt(&self, cpu: u32, (): ()) {
        interrupt(cpu);
    }

    fn interrupt_others(&self, (): ()) {
        interrupt_others();
    }

    fn halt(&self) {
        await_interrupt();
    }
}

// SAFETY: a waiter has a CPU and its list for itself, which its handler accesses, too: the
// assertion above keeps the two apart. The sender has no list. Simulated threads don't move.
unsafe impl Threads for View<'_> {
    /// The number of the waiter.
    type Thread = usize;
    type Deadline = ();

    const NOTIFY: () = ();

    fn number(&self) -> usize {
        Sim::cpu().0 as usize
    }

    fn numbers(&self) -> usize {
        Sim::cpus() as usize
    }

    fn cpu(&self, number: usize) -> u32 {
        number as u32
    }

    unsafe fn waiters(&self) -> &mut Waiters<Sim, usize> {
        let own = self.own.expect("no thread of the sender's CPU waits");
        assert!(self.cpus[own].are_off.get());
        // SAFETY: the caller's promise.
        unsafe { &mut *self.cpus[own].list.get() }
    }

    fn running(&self) -> usize {
        self.own.expect("the sender does not wait")
    }

    fn sleep(&self, _: Option<()>) -> bool {
        let _ = Sim::park(self.cpus[self.running()].blocked.own(), None);
        true
    }

    fn wake(&self, waiter: usize) {
        self.cpus[waiter].blocked.unblock();
    }
}

impl PerCpu {
    fn on(&self, waiter: usize) -> View<'_> {
        View { cpus: &self.cpus, own: Some(waiter) }
    }
}

impl Wakes for PerCpu {
    const HANDLES: bool = true;

    fn new(waiters: usize) -> Self {
        let cpus = (0..waiters).map(|_| WaiterCpu::default()).collect();
        Self { condvar: condvar::Condvar::NEW, cpus }
    }

    fn wait(&self, waiter: usize, ready: impl FnOnce()) -> u64 {
        self.cpus[waiter].blocked.own();
        let _ = self.condvar.wait(&self.on(waiter), None, ready);
        now()
    }

    fn wake(&self) {
        run_instructions(LENGTHS.percpu.sender);
        self.condvar.notify_all(&View { cpus: &self.cpus, own: None });
    }

    fn handle(&self, waiter: usize) {
        let here = self.on(waiter);
        here.halt();
        // SAFETY: interrupts are off.
        here.without_interrupts(|| unsafe { condvar::handle(&here) });
    }
}

/// The same, and its condition.
pub struct PerCpuWithMutex {
    condition: Condition,
    changed: OwnLine<PerCpu>,
}

impl Wakes for PerCpuWithMutex {
    const HANDLES: bool = true;

    fn new(waiters: usize) -> Self {
        Self { condition: Condition::new(), changed: OwnLine(PerCpu::new(waiters)) }
    }

    fn wait(&self, waiter: usize, ready: impl FnOnce()) -> u64 {
        self.condition.wait(ready, |mutex| {
            // SAFETY: this thread has locked the mutex.
            self.changed.wait(waiter, || unsafe { mutex.unlock() });
            mutex.lock();
        })
    }

    fn wake(&self) {
        self.condition.change();
        self.changed.wake();
    }

    fn handle(&self, waiter: usize) {
        self.changed.handle(waiter);
    }
}

/// Notifies the owner of a runtime's mailbox, a CPU, by an active message of the kernel.
pub struct Interrupt {
    inbox: Inbox,
    /// In which there is none.
    broadcasts: OwnLine<Broadcasts<Sim, CAST>>,
}

impl Default for Interrupt {
    fn default() -> Self {
        Self { inbox: Inbox::default(), broadcasts: OwnLine(Broadcasts::NEW) }
    }
}

impl Notify for Interrupt {
    fn begin(&self) -> Ticket {
        self.inbox.cpu.store(Sim::cpu().0, Relaxed);
        Ticket::MIN
    }

    // Neither this function nor `end` uses the ticket.
    unsafe fn sleep(&self, _: Ticket, _: Option<Deadline>) -> Parked {
        // The owner delivers when it is back: the action is that.
        self.inbox.handle(&self.broadcasts, || ());
        Parked::Woken
    }

    unsafe fn end(&self, _: Ticket) {}

    fn notify(&self, _: Ticket) {
        self.inbox.post();
    }
}

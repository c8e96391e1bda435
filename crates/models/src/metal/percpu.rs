//! Models of the condition variable whose waiters stand in lists of their CPUs.
//!
//! A thread of the checker is a CPU. Where a CPU has two threads, the second runs in the `unlock`
//! of the first, which is listed then and does not sleep yet. A CPU takes its interrupts while it
//! sleeps, and whenever they are on again. A lost wake-up is a deadlock.

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_check::{Check, Data, choose, probe};
use antiphon_platform::{Atomic, AtomicInteger, Atomics};
use antiphon_rivals::classic::Ticket;
use antiphon_wakeup::condvar::{self, Threads, Waiters};
use antiphon_wakeup::machine::Machine as Hardware;

use super::cpu::Line;
use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::{Anywhere, Program, unlock};

type U32 = <Check as Atomics>::U32;
type Condvar = condvar::Condvar<Check, 2>;

/// The numbers of the CPUs, in both words.
const NUMBERS: [usize; 3] = [3, 5, 70];
/// Number of threads of a CPU.
const THREADS: usize = 2;

pub fn entries() -> Vec<Entry> {
    let timed = PLAIN.expiries(1);
    Subject("metal-percpu").models([
        model("broadcasts-1+1", broadcasting(&[0], 2, 3), PLAIN).reaches(&["one"]),
        model("broadcasts-2+1", broadcasting(&[0, 1], 2, 3), PLAIN).reaches(&["one", "all"]),
        model("broadcasts-each-2+1", broadcasting(&[0, 1], 2, 100), PLAIN).reaches(&["one"]),
        model("broadcasts-far-2+1", broadcasting(&[0, 2], 1, 100), PLAIN).reaches(&["one"]),
        model("broadcasts-own-1+1", broadcasting_from_its_own(2), PLAIN).reaches(&["all"]),
        model("broadcasts-own-each-1+1", broadcasting_from_its_own(100), PLAIN).reaches(&["one"]),
        model("broadcasts-beside-1+1", beside(|all, view| all.notify_all(view)), PLAIN)
            .reaches(&["one"]),
        model("notifies-2+1", notifying(&[0, 1], &[2]), PLAIN).reaches(&["one"]),
        model("notifies-far-2+1", notifying(&[0, 2], &[1]), PLAIN).reaches(&["one"]),
        model("notifies-1+2", notifying(&[0], &[1, 2]), PLAIN).reaches(&["one", "none"]),
        model("notifies-own-1+1", notifying_its_own(), PLAIN).reaches(&["one", "none"]),
        model("notifies-beside-1+1", beside(|one, view| _ = one.notify_one(view)), PLAIN)
            .reaches(&["one"]),
        model("gives-up-1+1+1", giving_up(), timed).reaches(&["gave up", "passed on"]),
        model("gives-up-beside-1+1", giving_up_beside(), timed).reaches(&["gave up", "notified"]),
        model("sees-1+1+1", seeing(), timed).reaches(&["gave up", "notified"]),
    ])
}

/// A CPU.
struct Cpu {
    line: Line,
    waiters: UnsafeCell<Waiters<Check, usize>>,
    are_off: Data<bool>,
    /// The threads that were woken since they have slept.
    woken: [Data<bool>; THREADS],
}

/// The CPUs, and what their threads wait for.
struct Machine {
    cpus: [Cpu; NUMBERS.len()],
    /// The number of other CPUs that a notifier believes there are.
    others: usize,
    lock: Ticket<Check>,
    changed: Condvar,
    items: Data<u32>,
    /// The number of items that were taken.
    taken: U32,
}

/// The kernel, as a thread of a CPU sees it.
#[derive(Clone, Copy)]
struct View<'a> {
    machine: &'a Machine,
    own: usize,
    thread: usize,
    /// The number of items without which the notifier's CPU runs no other code.
    needs: u32,
}

impl Hardware for View<'_> {
    type Words = Check;
    type Cpu = usize;
    type Signal = ();

    const KICK: () = ();

    fn is_current(&self, cpu: usize) -> bool {
        cpu == self.own
    }

    fn others(&self) -> usize {
        self.machine.others
    }

    fn without_interrupts<R>(&self, body: impl FnOnce() -> R) -> R {
        let cpu = self.cpu();
        assert!(!cpu.are_off.get(), "no one switches them off twice");
        cpu.are_off.set(true);
        let result = body();
        cpu.are_off.set(false);
        if cpu.line.poll() {
            self.handle();
        }
        if self.needs > 0 {
            // Other code of a notifier's CPU waits for the waiters.
            self.machine.taken.wait_while(Relaxed, |taken| taken < self.needs);
        }
        result
    }

    fn interrupt(&self, cpu: usize, (): ()) {
        assert_ne!(cpu, self.own, "PERCPU-2");
        assert!(self.cpu().are_off.get());
        probe("one");
        let _ = self.machine.cpus[cpu].line.raise();
    }

    fn interrupt_others(&self, (): ()) {
        probe("all");
        for (number, cpu) in self.machine.cpus.iter().enumerate() {
            if number != self.own {
                let _ = cpu.line.raise();
            }
        }
    }

    fn halt(&self) {
        self.cpu().line.wait();
    }
}

// SAFETY: a thread of the checker has a CPU and its list for itself; `waiters` checks that
// interrupts are off, and handlers run only when they are on.
unsafe impl Threads for View<'_> {
    type Thread = usize;
    type Deadline = ();

    const NOTIFY: () = ();

    fn number(&self) -> usize {
        NUMBERS[self.own]
    }

    fn numbers(&self) -> usize {
        128
    }

    fn cpu(&self, number: usize) -> usize {
        NUMBERS.iter().position(|&it| it == number).expect("a CPU")
    }

    unsafe fn waiters(&self) -> &mut Waiters<Check, usize> {
        let cpu = self.cpu();
        assert!(cpu.are_off.get(), "PERCPU-6");
        // SAFETY: the caller's promise.
        unsafe { &mut *cpu.waiters.get() }
    }

    fn running(&self) -> usize {
        self.thread
    }

    fn sleep(&self, deadline: Option<()>) -> bool {
        let cpu = self.cpu();
        while !cpu.woken[self.thread].get() {
            if deadline.is_none() {
                self.halt();
            } else if !cpu.line.wait_for_long() {
                return false;
            }
            self.handle();
        }
        cpu.woken[self.thread].set(false);
        true
    }

    fn wake(&self, thread: usize) {
        self.cpu().woken[thread].set(true);
    }
}

impl<'a> View<'a> {
    fn cpu(&self) -> &'a Cpu {
        &self.machine.cpus[self.own]
    }

    /// Handles an interrupt.
    fn handle(&self) {
        let cpu = self.cpu();
        cpu.are_off.set(true);
        // SAFETY: interrupts are off.
        unsafe { condvar::handle(self) };
        cpu.are_off.set(false);
    }

    /// Takes an item. If there is none, `beside` runs when the thread has released the mutex.
    fn take(&self, beside: impl Fn()) {
        let machine = self.machine;
        machine.lock.lock();
        while machine.items.get() == 0 {
            let unlock = || {
                unlock(&machine.lock);
                beside();
            };
            assert!(machine.changed.wait(self, None, unlock));
            machine.lock.lock();
        }
        machine.items.set(machine.items.get() - 1);
        // Relaxed: only its number is used.
        machine.taken.fetch_add(1, Relaxed);
        unlock(&machine.lock);
    }

    fn put(&self, count: u32) {
        self.machine.lock.lock();
        self.machine.items.set(self.machine.items.get() + count);
        unlock(&self.machine.lock);
    }

    /// Waits once, as long as there is no item; it may give up.
    fn wait_once(&self) -> bool {
        self.machine.lock.lock();
        let waits = self.machine.items.get() == 0;
        if !waits {
            unlock(&self.machine.lock);
            return false;
        }
        let was_notified = self.machine.changed.wait(self, Some(()), || unlock(&self.machine.lock));
        probe(if was_notified { "notified" } else { "gave up" });
        was_notified
    }
}

impl Machine {
    fn new(others: usize) -> Anywhere<Self> {
        let cpu = |_| Cpu {
            line: Line::new(),
            waiters: UnsafeCell::new(Waiters::NEW),
            are_off: Data::new(false),
            woken: [const { Data::new(false) }; THREADS],
        };
        Anywhere(Self {
            cpus: NUMBERS.map(cpu),
            others,
            lock: Ticket::NEW,
            changed: Condvar::NEW,
            items: Data::new(0),
            taken: U32::ZERO,
        })
    }

    fn on(&self, own: usize) -> View<'_> {
        View { machine: self, own, thread: 0, needs: 0 }
    }
}

/// A broadcast ends the waits of the threads of these CPUs. The notifier, on its own CPU, believes
/// that there are `others` more.
fn broadcasting(takers: &'static [usize], notifier: usize, others: usize) -> Program {
    let count = takers.len() as u32;
    Program::new(count + 1, count + 1, move |scope| {
        let machine = &scope.share(Machine::new(others)).0;
        for &own in takers {
            scope.spawn(move || machine.on(own).take(|| ()));
        }
        scope.spawn(move || {
            let notifier = machine.on(notifier);
            notifier.put(count);
            machine.changed.notify_all(&View { needs: count, ..notifier });
        });
    })
}

/// A thread of a waiter's CPU broadcasts to it, and to a waiter of another CPU; it believes that
/// there are `others` more CPUs.
fn broadcasting_from_its_own(others: usize) -> Program {
    Program::new(2, 3, move |scope| {
        let machine = &scope.share(Machine::new(others)).0;
        scope.spawn(move || {
            let waiter = machine.on(0);
            let notifier = View { thread: 1, ..waiter };
            let notify = || {
                notifier.put(2);
                machine.changed.notify_all(&notifier);
            };
            waiter.take(notify);
        });
        scope.spawn(move || machine.on(1).take(|| ()));
    })
}

/// A notification of a CPU ends the waits of its two threads.
fn beside(notify: fn(&Condvar, &View<'_>)) -> Program {
    Program::new(2, 3, move |scope| {
        let machine = &scope.share(Machine::new(2)).0;
        scope.spawn(|| {
            let (waiter, begun) = (machine.on(0), Data::new(false));
            let beside = View { thread: 1, ..waiter };
            waiter.take(|| {
                if !begun.get() {
                    begun.set(true);
                    beside.take(|| ());
                }
            });
            if !begun.get() {
                beside.take(|| ());
            }
        });
        scope.spawn(move || {
            let notifier = machine.on(2);
            notifier.put(2);
            notify(&machine.changed, &View { needs: 2, ..notifier });
        });
    })
}

/// Two items are announced to one waiter each: by one notifier to two waiters, or by two notifiers
/// to a waiter that takes both.
fn notifying(takers: &'static [usize], notifiers: &'static [usize]) -> Program {
    Program::new(3, 4, move |scope| {
        let machine = &scope.share(Machine::new(2)).0;
        for &own in takers {
            scope.spawn(move || notifiers.iter().for_each(|_| machine.on(own).take(|| ())));
        }
        for &own in notifiers {
            scope.spawn(move || {
                for count in 1..=takers.len() as u32 {
                    let notifier = machine.on(own);
                    notifier.put(1);
                    let view = View { needs: count, ..notifier };
                    if !machine.changed.notify_one(&view) {
                        probe("none");
                    }
                }
            });
        }
    })
}

/// A thread of a waiter's CPU announces one item to it, and one to a waiter of another CPU.
fn notifying_its_own() -> Program {
    Program::new(2, 4, |scope| {
        let machine = &scope.share(Machine::new(2)).0;
        scope.spawn(|| {
            let waiter = machine.on(0);
            let notifier = View { thread: 1, ..waiter };
            let notify = || {
                notifier.put(2);
                for _ in 0..2 {
                    if !machine.changed.notify_one(&notifier) {
                        probe("none");
                    }
                }
            };
            waiter.take(notify);
        });
        scope.spawn(|| machine.on(1).take(|| ()));
    })
}

/// A waiter gives up, or is notified and passes that on, because it takes no item: the other waiter
/// takes it.
fn giving_up() -> Program {
    Program::new(3, 3, |scope| {
        let machine = &scope.share(Machine::new(2)).0;
        scope.spawn(|| {
            let view = machine.on(0);
            if view.wait_once() {
                probe("passed on");
                machine.changed.notify_one(&view);
            }
        });
        scope.spawn(|| machine.on(1).take(|| ()));
        scope.spawn(|| {
            // It notifies the first waiter before the second, by their CPUs' numbers.
            let notifier = machine.on(2);
            notifier.put(1);
            machine.changed.notify_one(&notifier);
        });
    })
}

/// A thread waits beside one of its CPU, and gives up: the other's notification is not lost, though
/// the second may have set their bit again.
fn giving_up_beside() -> Program {
    Program::new(2, 3, |scope| {
        let machine = &scope.share(Machine::new(2)).0;
        scope.spawn(|| {
            let waiter = machine.on(0);
            let beside = View { thread: 1, ..waiter };
            // Whatever there is: it takes nothing.
            let wait = || {
                let was_notified = machine.changed.wait(&beside, Some(()), || ());
                probe(if was_notified { "notified" } else { "gave up" });
            };
            waiter.take(wait);
        });
        scope.spawn(|| {
            let notifier = machine.on(2);
            notifier.put(1);
            machine.changed.notify_all(&View { needs: 1, ..notifier });
        });
    })
}

/// A waiter that was notified sees what its notifier did before, whatever has interrupted it; and
/// one that was not notified is not woken. No mutex orders.
fn seeing() -> Program {
    Program::new(3, 3, |scope| {
        let machine = &scope.share(Machine::new(2)).0;
        let work = scope.share(Data::new(false));
        let listed = scope.share(U32::ZERO);
        scope.spawn(|| {
            // Release: the bit; pairs with the acquire below.
            let begin = || listed.store(1, Release);
            if machine.changed.wait(&machine.on(0), Some(()), begin) {
                assert!(work.get(), "PERCPU-4: what came before the notification");
                probe("notified");
            } else {
                probe("gave up");
            }
        });
        scope.spawn(|| {
            // Acquire: the bit; pairs with the release above.
            listed.wait_while(Acquire, |listed| listed == 0);
            work.set(true);
            match choose(2) {
                0 => machine.changed.notify_all(&machine.on(2)),
                _ => _ = machine.changed.notify_one(&machine.on(2)),
            }
        });
        // For another reason.
        scope.spawn(|| _ = machine.cpus[0].line.raise());
    })
}

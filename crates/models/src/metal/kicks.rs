//! Models of kicks: a CPU that has halted is interrupted for each thread that it is given, before
//! its sender runs other code.
//!
//! The other code is a handler of the sender's CPU, or a thread that it switches to: it waits until
//! the threads that were made runnable have run, so that a kick which it delays is a deadlock.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data, probe};
use antiphon_platform::{Atomic, Atomics};
use antiphon_wakeup::inbox::{Inbox, Link, Linked};
use antiphon_wakeup::kick::{self, Home};
use antiphon_wakeup::machine::Machine as Hardware;
use antiphon_wakeup::token;

use super::cpu::Line;
use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::Program;

type U32 = <Check as Atomics>::U32;

/// Number of CPUs. The first is the sender's.
const CPUS: usize = 3;

pub fn entries() -> Vec<Entry> {
    Subject("metal-kick").models([
        model("one-1+1", one(1), PLAIN).reaches(&["one"]),
        model("one-2+1", one(2), PLAIN).reaches(&["one"]),
        model("together-1+2", batch::<2>(CPUS - 1), PLAIN).reaches(&["each", "all"]),
        model("one-by-one-1+2", batch::<2>(100), PLAIN).reaches(&["each"]),
        model("too-many-1+2", batch::<1>(100), PLAIN).reaches(&["each", "all"]),
        model("by-its-handler-1+1", by_its_handler(), PLAIN).reaches(&["halted"]),
    ])
}

/// A thread, which runs for no time.
struct Thread {
    link: Link<Check>,
    /// It is asleep.
    token: U32,
    cpu: usize,
    /// 1 when it has run.
    ran: U32,
}

// SAFETY: the link is always the same, and of this entry alone.
unsafe impl Linked for Thread {
    type Words = Check;

    fn link(&self) -> &Link<Check> {
        &self.link
    }
}

impl Thread {
    const fn new(cpu: usize) -> Self {
        Self { link: Link::NEW, token: U32::ZERO, cpu, ran: U32::ZERO }
    }
}

struct Cpu {
    inbox: Inbox<Thread>,
    line: Line,
}

struct Machine {
    cpus: [Cpu; CPUS],
    threads: [Thread; 2],
    /// The number of other CPUs that a sender believes there are.
    others: usize,
}

impl Machine {
    fn new(bound: [usize; 2], others: usize) -> Self {
        let cpu = |_| Cpu { inbox: Inbox::NEW, line: Line::new() };
        Self { cpus: [0, 1, 2].map(cpu), threads: bound.map(Thread::new), others }
    }

    /// All threads sleep.
    fn fall_asleep(&self) {
        assert!(self.threads.iter().all(|thread| token::fall_asleep(&thread.token)));
    }

    /// CPU `cpu` runs `count` threads, and halts when it has none.
    fn run(&self, cpu: usize, count: usize) {
        let cpu = &self.cpus[cpu];
        let mut left = count;
        loop {
            for thread in cpu.inbox.take() {
                // Relaxed: it says only that the thread has run.
                // SAFETY: threads live as long as the model.
                unsafe { (*thread).ran.store(1, Relaxed) };
                left -= 1;
            }
            if left == 0 {
                return;
            }
            cpu.inbox.halt(|| cpu.line.wait());
        }
    }
}

/// The kernel, as a sender on CPU `cpu` sees it. It does not switch threads.
struct Sender<'a> {
    machine: &'a Machine,
    cpu: usize,
    are_off: Data<bool>,
    /// The threads that it has made runnable.
    put: Data<Vec<*const Thread>>,
}

impl<'a> Sender<'a> {
    fn new(machine: &'a Machine, cpu: usize) -> Self {
        Self { machine, cpu, are_off: Data::new(false), put: Data::new(Vec::new()) }
    }

    /// The place of a thread, which is about to be made runnable.
    fn home(&self, thread: *const Thread) -> (Home<'_, Self, Thread>, *const Thread) {
        self.put.with_mut(|put| put.push(thread));
        // SAFETY: threads live as long as the model.
        let cpu = unsafe { (*thread).cpu };
        (Home { cpu, inbox: &self.machine.cpus[cpu].inbox }, thread)
    }

    /// Other code of this CPU waits for the threads.
    fn run_other_code(&self) {
        for thread in self.put.with(Clone::clone) {
            // SAFETY: threads live as long as the model.
            let thread = unsafe { &*thread };
            if thread.cpu != self.cpu {
                thread.ran.wait_while(Relaxed, |ran| ran == 0);
            }
        }
    }

    fn raise(&self, cpu: usize) {
        assert_ne!(cpu, self.cpu, "KICK-3");
        if !self.are_off.get() {
            self.run_other_code();
        }
        // Another sender may have interrupted it for another reason.
        let _ = self.machine.cpus[cpu].line.raise();
    }
}

impl Hardware for Sender<'_> {
    type Words = Check;
    type Cpu = usize;
    type Signal = ();

    const KICK: () = ();

    fn is_current(&self, cpu: usize) -> bool {
        cpu == self.cpu
    }

    fn others(&self) -> usize {
        self.machine.others
    }

    fn without_interrupts<R>(&self, body: impl FnOnce() -> R) -> R {
        self.are_off.set(true);
        let result = body();
        self.are_off.set(false);
        self.run_other_code();
        result
    }

    fn interrupt(&self, cpu: usize, (): ()) {
        probe("one");
        self.raise(cpu);
    }

    fn interrupt_several(&self, cpus: &[usize], (): ()) {
        probe("each");
        cpus.iter().for_each(|cpu| self.raise(*cpu));
    }

    fn interrupt_others(&self, (): ()) {
        probe("all");
        (0..CPUS).filter(|cpu| *cpu != self.cpu).for_each(|cpu| self.raise(cpu));
    }

    fn halt(&self) {
        unreachable!("a sender does not halt")
    }
}

/// Senders make a thread runnable each, all of them on one CPU. Must reach `one`.
fn one(senders: usize) -> Program {
    Program::new(senders as u32 + 1, senders as u32 + 1, move |scope| {
        let machine = scope.share(Machine::new([1, 1], CPUS - 1));
        scope.spawn_each([0, 2].into_iter().enumerate().take(senders), move |(number, cpu)| {
            let sender = Sender::new(machine, cpu);
            let (home, thread) = sender.home(&raw const machine.threads[number]);
            // SAFETY: RUN-1: the thread is in no place.
            unsafe { kick::make_runnable(&sender, home, thread) };
        });
        scope.spawn(move || machine.run(1, senders));
    })
}

/// A sender makes two threads runnable, on two CPUs; it believes that there are `others` more CPUs.
fn batch<const MOST: usize>(others: usize) -> Program {
    Program::new(3, 4, move |scope| {
        let machine = scope.share(Machine::new([1, 2], others));
        machine.fall_asleep();
        scope.spawn(|| {
            let sender = Sender::new(machine, 0);
            let place = |thread: &Thread| sender.home(thread);
            let sleepers =
                machine.threads.iter().map(|thread| (&thread.token, move || place(thread)));
            // SAFETY: threads live as long as the model.
            unsafe { kick::wake_all::<_, _, _, MOST>(&sender, sleepers) };
        });
        scope.spawn_each([1, 2], move |cpu| machine.run(cpu, 1));
    })
}

/// A handler that has interrupted a halted CPU makes a thread of that CPU runnable, and one of
/// another. Must reach `halted`.
fn by_its_handler() -> Program {
    Program::new(2, 3, |scope| {
        let machine = scope.share(Machine::new([0, 1], CPUS - 1));
        machine.fall_asleep();
        scope.spawn(|| {
            machine.cpus[0].inbox.halt(|| {
                probe("halted");
                let sender = Sender::new(machine, 0);
                let place = |thread: &Thread| sender.home(thread);
                let sleepers =
                    machine.threads.iter().map(|thread| (&thread.token, move || place(thread)));
                // SAFETY: threads live as long as the model.
                unsafe { kick::wake_all::<_, _, _, 2>(&sender, sleepers) };
            });
            machine.run(0, 1);
        });
        scope.spawn(|| machine.run(1, 1));
    })
}

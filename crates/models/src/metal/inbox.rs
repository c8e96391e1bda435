//! Models of a CPU's inbox: no thread is lost or comes twice, and a CPU that halts is interrupted.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_check::{Check, Data, probe};
use antiphon_platform::{Atomic, Atomics};
use antiphon_wakeup::inbox::{Inbox, Link, Linked, Wake};
use antiphon_wakeup::kick::{self, Home};
use antiphon_wakeup::run_queue::RunQueue;

use super::caller::Caller;
use super::cpu::{Idle, Line, rest};
use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::ledger::Ledger;
use crate::program::Program;

pub fn entries() -> Vec<Entry> {
    let both = &["halted", "ran on"];
    Subject("metal-inbox").models([
        model("delivers-1+1", delivering(&[2], Idle::Halt), PLAIN).reaches(both),
        model("delivers-2+1", delivering(&[2, 1], Idle::Halt), PLAIN).reaches(both),
        model("watches-2+1", delivering(&[2, 1], Idle::Watch), PLAIN),
        model("interrupted-1+1+1", interrupted(), PLAIN).reaches(both),
        model("again-2+1", again(), PLAIN),
        model("drops-1+1", dropping(), PLAIN).reaches(both),
        model("by-its-handler-1+1+1", by_its_handler(), PLAIN).reaches(both),
    ])
}

/// A thread that is put into the inbox.
struct Thread {
    link: Link<Check>,
    number: usize,
}

// SAFETY: the link is always the same, and of this entry alone.
unsafe impl Linked for Thread {
    type Words = Check;

    fn link(&self) -> &Link<Check> {
        &self.link
    }
}

/// A CPU, and the threads that are put into its inbox.
struct Threads {
    inbox: Inbox<Thread>,
    line: Line,
    threads: Vec<Thread>,
    ledger: Ledger,
    /// How many interrupts each sender has sent; and how often the CPU has halted.
    sent: Vec<Data<u32>>,
    halts: Data<u32>,
}

impl Threads {
    fn new(count: usize, senders: usize) -> Self {
        let thread = |number| Thread { link: Link::NEW, number };
        Self {
            inbox: Inbox::NEW,
            line: Line::new(),
            threads: (0..count).map(thread).collect(),
            ledger: Ledger::new(count),
            sent: (0..senders).map(|_| Data::new(0)).collect(),
            halts: Data::new(0),
        }
    }

    fn put(&self, sender: usize, number: usize) {
        self.ledger.make(number);
        // SAFETY: it is in no inbox, and lives as long as the model.
        let wake = unsafe { self.inbox.put(&raw const self.threads[number]) };
        if wake == Wake::Interrupt {
            let _ = self.line.raise();
            self.sent[sender].with_mut(|count| *count += 1);
        }
    }

    /// The CPU runs `count` threads, each for no time, and rests when there is none. Returns their
    /// numbers, in order.
    fn run(&self, count: usize, idle: Idle, ran: impl Fn(usize)) {
        self.run_with(count, idle, || {}, ran);
    }

    /// The same, with a handler of the interrupts of the halted CPU.
    fn run_with(&self, count: usize, idle: Idle, handle: impl Fn(), ran: impl Fn(usize)) {
        let mut queue = RunQueue::<Thread>::NEW;
        let mut left = count;
        loop {
            // SAFETY: the threads were in the inbox.
            unsafe { queue.push_all(self.inbox.take()) };
            while let Some(thread) = queue.pop() {
                // SAFETY: it lives as long as the model.
                ran(unsafe { (*thread).number });
                left -= 1;
            }
            if left == 0 {
                return;
            }
            let halted = rest(&self.inbox, idle, || {
                self.line.wait();
                handle();
            });
            self.halts.with_mut(|halts| *halts += u32::from(halted));
            probe(if halted { "halted" } else { "ran on" });
        }
    }

    /// INBOX-2.
    fn assert_one_interrupt_a_halt(&self) {
        let sent: u32 = self.sent.iter().map(Data::get).sum();
        assert!(sent <= self.halts.get(), "an interrupt that no halt has asked for");
        assert!(self.inbox.is_empty(), "a thread came twice");
    }
}

/// Senders put in `each` threads; the CPU runs each of them once, those of a sender in order. Must
/// reach `halted` and `ran on`, if it halts.
fn delivering(each: &'static [usize], idle: Idle) -> Program {
    let count = each.iter().sum::<usize>();
    Program::new(each.len() as u32 + 1, count as u32 + 1, move |scope| {
        let threads = scope.share(Threads::new(count, each.len()));
        let mut first = 0;
        for (sender, &times) in each.iter().enumerate() {
            let mine = first..first + times;
            first = mine.end;
            scope.spawn(move || mine.for_each(|number| threads.put(sender, number)));
        }
        scope.spawn(move || {
            let order = Data::new(Vec::new());
            threads.run(count, idle, |number| {
                threads.ledger.take_number(number);
                order.with_mut(|order| order.push(number));
            });
            let order = order.with(Clone::clone);
            let mut first = 0;
            for &times in each {
                let own = |number: &&usize| (first..first + times).contains(*number);
                assert!(order.iter().filter(own).is_sorted(), "out of order");
                first += times;
            }
        });
        scope.finally(|| {
            threads.ledger.assert_all_taken();
            threads.assert_one_interrupt_a_halt();
        });
    })
}

/// The halted CPU is also interrupted for another reason, and halts again. Must reach `halted` and
/// `ran on`.
fn interrupted() -> Program {
    Program::new(3, 4, |scope| {
        let threads = scope.share(Threads::new(2, 1));
        scope.spawn(|| (0..2).for_each(|number| threads.put(0, number)));
        scope.spawn(|| {
            let _ = threads.line.raise();
        });
        scope.spawn(|| threads.run(2, Idle::Halt, |number| threads.ledger.take_number(number)));
        scope.finally(|| {
            threads.ledger.assert_all_taken();
            threads.assert_one_interrupt_a_halt();
        });
    })
}

/// A handler of the halted CPU puts a thread in, and sends no interrupt to itself (KICK-3); another
/// CPU puts in another thread. Must reach `halted` and `ran on`.
fn by_its_handler() -> Program {
    Program::new(3, 4, |scope| {
        let threads = scope.share(Threads::new(2, 1));
        let message = scope.share(<<Check as Atomics>::U32 as Atomic<u32>>::ZERO);
        scope.spawn(|| threads.put(0, 0));
        scope.spawn(|| {
            // Relaxed: the interrupt orders.
            message.store(1, Relaxed);
            let _ = threads.line.raise();
        });
        scope.spawn(|| {
            let handle = || {
                if message.load(Relaxed) == 1 {
                    message.store(0, Relaxed);
                    threads.ledger.make(1);
                    let caller = Caller::on(&threads.line, [].into_iter());
                    let home = Home { cpu: &threads.line, inbox: &threads.inbox };
                    // SAFETY: it is in no inbox, and lives as long as the model.
                    unsafe { kick::make_runnable(&caller, home, &raw const threads.threads[1]) };
                    assert!(!caller.has_sent(), "KICK-3: a CPU interrupts itself");
                }
            };
            threads.run_with(2, Idle::Halt, handle, |number| threads.ledger.take_number(number));
        });
        scope.finally(|| threads.ledger.assert_all_taken());
    })
}

/// A thread is put in again when it has run, while another one is put in.
fn again() -> Program {
    Program::new(3, 4, |scope| {
        let threads = scope.share(Threads::new(2, 2));
        let runs = scope.share(<<Check as Atomics>::U32 as Atomic<u32>>::ZERO);
        let work = scope.share(Data::new(0));
        scope.spawn(|| {
            for round in 0..2 {
                work.set(round + 1);
                threads.put(0, 0);
                // Acquire: the thread that is put in again has run; pairs with the release below.
                runs.wait_while(Acquire, |runs| runs == round);
            }
        });
        scope.spawn(|| threads.put(1, 1));
        scope.spawn(|| {
            threads.run(3, Idle::Halt, |number| match number {
                0 => {
                    // Release: pairs with the acquire above.
                    let round = work.get();
                    runs.store(round, Release);
                }
                _ => threads.ledger.take_number(number),
            });
        });
        scope.finally(|| {
            assert_eq!(work.get(), 2);
            threads.assert_one_interrupt_a_halt();
        });
    })
}

/// The CPU drops a part of its list; a thread that was dropped is put in again, alone. Must reach
/// `halted` and `ran on`.
fn dropping() -> Program {
    Program::new(2, 5, |scope| {
        let threads = scope.share(Threads::new(3, 1));
        let told = scope.share([const { <<Check as Atomics>::U32 as Atomic<u32>>::ZERO }; 2]);
        let [put, dropped] = told;
        scope.spawn(|| {
            (0..3).for_each(|number| threads.put(0, number));
            // Release: the inbox is full; pairs with the acquire below.
            put.store(1, Release);
            // Acquire: the threads are in no inbox; pairs with the release below.
            dropped.wait_while(Acquire, |dropped| dropped == 0);
            threads.put(0, 1);
        });
        scope.spawn(|| {
            put.wait_while(Acquire, |put| put == 0);
            let mut taken = threads.inbox.take();
            assert_eq!(taken.next(), Some(&raw const threads.threads[2]), "the latest first");
            drop(taken);
            dropped.store(1, Release);
            threads.run(1, Idle::Halt, |number| assert_eq!(number, 1, "INBOX-4: it was dropped"));
        });
        scope.finally(|| threads.assert_one_interrupt_a_halt());
    })
}

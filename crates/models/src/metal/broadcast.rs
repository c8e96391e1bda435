//! Models of broadcasts: each CPU but the sender's runs each of them once.

use antiphon_check::{Check, Data};
use antiphon_wakeup::batch::Batch;
use antiphon_wakeup::broadcast;
use antiphon_wakeup::message;
use antiphon_wakeup::names::Name;
use antiphon_wakeup::table::Table;

use super::caller::{Caller, Signal};
use super::cpu::Line;
use super::table::{Context, code};
use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::Program;

type Broadcasts = broadcast::Broadcasts<Check, 2>;
type Seen = broadcast::Seen<Check, 2>;

pub fn entries() -> Vec<Entry> {
    Subject("metal-broadcast").models([
        model("reaches-1+1", casting(&[&[0, 0], &[]]), PLAIN),
        model("reaches-1+2", casting(&[&[0, 1], &[], &[]]), PLAIN),
        model("reaches-2+1", casting(&[&[0], &[1], &[]]), PLAIN),
        model("crosses-2x1", casting(&[&[0], &[0]]), PLAIN),
        model("crosses-2x2", casting(&[&[0, 0], &[0, 0]]), PLAIN),
        model("crosses-3x1", casting(&[&[0], &[0], &[0]]), PLAIN),
        model("unregisters-1+1", unregistering(), PLAIN).reaches(&["ran", "stray"]),
        model("unregisters-late-1+1+1", unregistering_late(), PLAIN).reaches(&["ran", "stray"]),
    ])
}

/// A CPU: what it has seen, its interrupt line, its batches.
struct Cpu {
    seen: Seen,
    line: Line,
    batch: Batch<Check>,
}

impl Cpu {
    const fn new() -> Self {
        Self { seen: Seen::NEW, line: Line::new(), batch: Batch::NEW }
    }
}

/// Broadcasts on CPU `own`. Several broadcasts may be answered at once.
fn send(broadcasts: &Broadcasts, cpus: &[Cpu], own: usize, action: usize) {
    let caller = Caller::on(&cpus[own].line, cpus.iter().map(|cpu| &cpu.line));
    message::broadcast(&caller, broadcasts, || &cpus[own].seen, action, Signal::Any);
}

/// Each CPU broadcasts the actions that are named, and runs those of the others, each exactly once,
/// between its own or later. A run sees what its sender did before.
fn casting(each: &'static [&'static [usize]]) -> Program {
    let count = each.iter().map(|actions| actions.len()).sum::<usize>();
    Program::new(each.len() as u32, (count * each.len()) as u32, move |scope| {
        let broadcasts = scope.share(Broadcasts::NEW);
        let cpus: &[Cpu] = scope.share([const { Cpu::new() }; 3]);
        let cpus = &cpus[..each.len()];
        let work = scope.share([const { [const { Data::new(false) }; 2] }; 3]);
        scope.spawn_each(0..each.len(), move |own| {
            let mut expected = [0; 2];
            for (sender, actions) in each.iter().enumerate().filter(|(it, _)| *it != own) {
                assert!(actions.len() <= work[sender].len());
                actions.iter().for_each(|&action| expected[action] += 1);
            }
            let mut left = expected;
            let mut handle = || {
                broadcasts.take(&cpus[own].seen, |action| {
                    assert!(left[action] > 0, "run on its sender, or twice");
                    left[action] -= 1;
                    if left[action] == 0 {
                        // All of this action have come: so has what their senders did before.
                        for (sender, actions) in each.iter().enumerate() {
                            for (number, _) in
                                actions.iter().enumerate().filter(|(_, it)| **it == action)
                            {
                                let seen = sender == own || work[sender][number].get();
                                assert!(seen, "what came before the broadcast");
                            }
                        }
                    }
                });
                left == [0; 2]
            };
            for (number, &action) in each[own].iter().enumerate() {
                if cpus[own].line.poll() {
                    let _ = handle();
                }
                work[own][number].set(true);
                send(broadcasts, cpus, own, action);
            }
            // Also if none of the others broadcasts: the own ones are not run.
            while !handle() {
                cpus[own].line.wait();
            }
            let _ = handle();
        });
    })
}

/// CPUs, and the table of the actions that are broadcast, with one entry.
struct Machine {
    broadcasts: Broadcasts,
    cpus: [Cpu; 2],
    table: Table<Check, 1>,
    contexts: [Context; 2],
}

impl Machine {
    const fn new() -> Self {
        Self {
            broadcasts: Broadcasts::NEW,
            cpus: [const { Cpu::new() }; 2],
            table: Table::NEW,
            contexts: [Context::new(0), Context::new(1)],
        }
    }

    fn register<const ACTION: u32>(&self) -> Name {
        let context = &self.contexts[ACTION as usize];
        self.table.register(code::<ACTION>, context.word()).expect("the entry is free")
    }

    /// As `message::unregister_broadcast`.
    fn unregister(&self, name: Name) {
        let retract = || self.broadcasts.wait(0, self.cpus.iter().map(|cpu| &cpu.seen));
        let batches = self.cpus.iter().map(|cpu| &cpu.batch);
        assert!(self.table.unregister(name, retract, batches));
    }

    fn send(&self) {
        send(&self.broadcasts, &self.cpus, 0, 0);
    }

    /// An interrupt of CPU 1.
    fn handle(&self) {
        let cpu = &self.cpus[1];
        cpu.line.wait();
        cpu.batch.run(|batch| {
            self.broadcasts.take(&cpu.seen, |action| self.table.run(batch, action));
        });
    }
}

/// An action that was broadcast is unregistered, and another one takes its entry and is broadcast.
/// Must reach `ran` and `stray`.
fn unregistering() -> Program {
    Program::new(2, 4, |scope| {
        let machine = scope.share(Machine::new());
        let [first, second] = &machine.contexts;
        let name = machine.register::<0>();
        scope.spawn(move || {
            first.posted.set(true);
            machine.send();
            machine.unregister(name);
            // What it works on is gone: a run of it would race with this.
            first.posted.set(false);
            first.note_stray();
            machine.register::<1>();
            second.posted.set(true);
            machine.send();
        });
        scope.spawn(|| {
            while second.runs.get() == 0 {
                machine.handle();
            }
        });
        scope.finally(|| assert_eq!(second.runs.get(), 1));
    })
}

/// An action is unregistered while another CPU broadcasts it. Must reach `ran` and `stray`.
fn unregistering_late() -> Program {
    Program::new(3, 3, |scope| {
        let machine = scope.share(Machine::new());
        let first = &machine.contexts[0];
        let name = machine.register::<0>();
        first.posted.set(true);
        scope.spawn(|| machine.handle());
        scope.spawn(|| machine.send());
        scope.spawn(move || {
            machine.unregister(name);
            // What it works on is gone: a run of it would race with this.
            first.posted.set(false);
        });
        scope.finally(|| first.note_stray());
    })
}

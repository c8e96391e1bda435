//! Models of the table of actions: one that was unregistered is not run, and each is given its own
//! word, though others register, unregister and post meanwhile.

use std::ptr;

use antiphon_check::{Check, Data, probe};
use antiphon_wakeup::batch;
use antiphon_wakeup::names::Name;
use antiphon_wakeup::table;

use super::pending::Receiver;
use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::Program;

type Batch = batch::Batch<Check>;
type Table = table::Table<Check, 1>;

pub fn entries() -> Vec<Entry> {
    Subject("metal-table").models([
        model("unregisters-1+1", unregistering(false), PLAIN).reaches(&["ran", "stray"]),
        model("unregisters-busy-1+1+1", unregistering(true), PLAIN).reaches(&["ran", "stray"]),
        model("unregisters-late-1+1+1", unregistering_late(), PLAIN).reaches(&["ran", "stray"]),
        model("takes-over-1+1+1", taking_over(), PLAIN).reaches(&["ran", "took over"]),
        model("registers-1+1+1", registering(), PLAIN).reaches(&["one", "other"]),
        model("registers-stray-1+1", registering_late(), PLAIN).reaches(&["ran", "stray"]),
        model("unregisters-twice-1+1+1", unregistering_twice(), PLAIN)
            .reaches(&["first", "copy", "ran"]),
    ])
}

/// What an action works on.
pub struct Context {
    /// The number of the action that it belongs to.
    action: u32,
    /// Whether the action was posted, by one that knows.
    pub posted: Data<bool>,
    /// Runs of the action.
    pub runs: Data<u32>,
}

impl Context {
    pub const fn new(action: u32) -> Self {
        Self { action, posted: Data::new(false), runs: Data::new(0) }
    }

    pub fn word(&self) -> usize {
        ptr::from_ref(self).expose_provenance()
    }

    /// Passes the probe `stray` if the action has not run.
    pub fn note_stray(&self) {
        if self.runs.get() == 0 {
            probe("stray");
        }
    }
}

/// The code of action `ACTION`.
pub fn code<const ACTION: u32>(word: usize) {
    // SAFETY: each word is the address of a context, which lives as long as the model.
    let context = unsafe { &*ptr::with_exposed_provenance::<Context>(word) };
    assert_eq!(context.action, ACTION, "TABLE-2: the word of another action");
    assert!(context.posted.get(), "TABLE-3: run for what was posted to another");
    context.runs.with_mut(|runs| *runs += 1);
    probe("ran");
}

/// A CPU that runs the actions of a table of one entry.
struct Machine {
    table: Table,
    receiver: Receiver,
    batch: Batch,
    contexts: [Context; 2],
}

impl Machine {
    /// Without an action.
    fn new() -> Self {
        Self {
            table: Table::NEW,
            receiver: Receiver::new(),
            batch: Batch::NEW,
            contexts: [Context::new(0), Context::new(1)],
        }
    }

    fn register<const ACTION: u32>(&self) -> Option<Name> {
        let context = &self.contexts[ACTION as usize];
        let name = self.table.register(code::<ACTION>, context.word());
        assert!(name.is_none_or(|name| name.index() == 0), "there is one entry");
        name
    }

    /// As `message::unregister`.
    fn unregister(&self, name: Name) -> bool {
        let retract = || self.receiver.pending.retract(0);
        self.table.unregister(name, retract, [&self.batch].into_iter())
    }

    /// Waits for an interrupt, and handles it. Actions but the first are of no table.
    fn handle(&self) {
        self.receiver.line.wait();
        self.batch.run(|batch| {
            self.receiver.pending.drain(|action| {
                if action == 0 {
                    self.table.run(batch, action);
                }
            });
        });
    }
}

/// An action is unregistered while a post of it is under way, and what it works on is used for
/// something else; a second takes its entry, and is run for its own post only. With `more`, another
/// thread posts something else, so that there are more batches. Must reach `ran` and `stray`.
fn unregistering(more: bool) -> Program {
    Program::new(2 + u32::from(more), 4 + u32::from(more), move |scope| {
        let machine = scope.share(Machine::new());
        let name = machine.register::<0>().expect("the entry is free");
        let [first, second] = &machine.contexts;
        first.posted.set(true);
        machine.receiver.post(0);
        scope.spawn(move || {
            while second.runs.get() == 0 {
                machine.handle();
            }
        });
        if more {
            scope.spawn(move || machine.receiver.post(1));
        }
        scope.spawn(move || {
            assert!(machine.unregister(name));
            // What it works on is gone: a run of it would race with this.
            first.posted.set(false);
            first.note_stray();
            assert!(machine.register::<1>().is_some(), "the entry is free");
            second.posted.set(true);
            machine.receiver.post(0);
        });
        scope.finally(|| assert_eq!(second.runs.get(), 1));
    })
}

/// An action is unregistered while another thread posts it. Must reach `ran` and `stray`.
fn unregistering_late() -> Program {
    Program::new(3, 3, |scope| {
        let machine = scope.share(Machine::new());
        let name = machine.register::<0>().expect("the entry is free");
        let first = &machine.contexts[0];
        first.posted.set(true);
        scope.spawn(|| machine.handle());
        scope.spawn(|| machine.receiver.post(0));
        scope.spawn(move || {
            assert!(machine.unregister(name));
            // What it works on is gone: a run of it would race with this.
            first.posted.set(false);
        });
        scope.finally(|| first.note_stray());
    })
}

/// One thread unregisters an action that the CPU may be about to run, and another registers a
/// second as soon as there is room. Must reach `ran` and `took over`.
fn taking_over() -> Program {
    Program::new(3, 4, |scope| {
        let machine = scope.share(Machine::new());
        let name = machine.register::<0>().expect("the entry is free");
        let [first, second] = &machine.contexts;
        first.posted.set(true);
        machine.receiver.post(0);
        scope.spawn(|| machine.handle());
        scope.spawn(move || assert!(machine.unregister(name)));
        scope.spawn(|| {
            if machine.register::<1>().is_some() {
                probe("took over");
                second.posted.set(true);
                // TABLE-2: the batch of the first has ended.
                first.posted.set(false);
            }
        });
        scope.finally(|| assert_eq!(second.runs.get(), 0, "never posted"));
    })
}

/// Two threads register an action each, for one entry, and the one that gets it posts. Must reach
/// `one` and `other`.
fn registering() -> Program {
    Program::new(3, 4, |scope| {
        let machine = scope.share(Machine::new());
        let [first, second] = &machine.contexts;
        scope.spawn(|| machine.handle());
        scope.spawn(|| {
            if machine.register::<0>().is_some() {
                probe("one");
                first.posted.set(true);
                machine.receiver.post(0);
            }
        });
        scope.spawn(|| {
            if machine.register::<1>().is_some() {
                probe("other");
                second.posted.set(true);
                machine.receiver.post(0);
            }
        });
        scope.finally(|| assert_eq!(first.runs.get() + second.runs.get(), 1));
    })
}

/// An action is registered while a post of its name, of a sender that has guessed it, is under way.
/// If it is run for that, it has its word. Must reach `ran` and `stray`.
fn registering_late() -> Program {
    Program::new(2, 2, |scope| {
        let machine = scope.share(Machine::new());
        let first = &machine.contexts[0];
        machine.receiver.post(0);
        scope.spawn(|| machine.handle());
        scope.spawn(|| {
            first.posted.set(true);
            assert!(machine.register::<0>().is_some());
        });
        scope.finally(|| first.note_stray());
    })
}

/// Two threads unregister an action by copies of its name; the one that does it registers a second
/// in its entry. The other must not unregister that. Must reach `first`, `copy` and `ran`.
fn unregistering_twice() -> Program {
    Program::new(3, 4, |scope| {
        let machine = scope.share(Machine::new());
        let name = machine.register::<0>().expect("the entry is free");
        let second = &machine.contexts[1];
        scope.spawn_each(["first", "copy"], move |which| {
            if machine.unregister(name) {
                probe(which);
                assert!(machine.register::<1>().is_some(), "the entry is free");
                second.posted.set(true);
                machine.receiver.post(0);
            }
        });
        scope.spawn(|| {
            machine.handle();
            assert_eq!(second.runs.get(), 1, "TABLE-4: unregistered by a copy of another name");
        });
    })
}

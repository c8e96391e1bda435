//! Models of actions that have a vector of their own: when one is unregistered, it runs nowhere,
//! and a post to it does not run the next action of its vector.
//!
//! A CPU has a word of requests, as an APIC has: a bit for each vector, of which it takes the
//! highest. A gate is a word that it reads when it takes the interrupt.

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_check::{Check, Data, probe};
use antiphon_platform::{Atomic, AtomicInteger, Atomics};
use antiphon_wakeup::direct;
use antiphon_wakeup::names::Name;

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::Program;

type U32 = <Check as Atomics>::U32;
type U64 = <Check as Atomics>::U64;

/// Number of vectors.
const VECTORS: usize = 2;
/// The request for a pass; those of vectors are higher.
const PASS: u32 = 1;

pub fn entries() -> Vec<Entry> {
    let both = &["ran", "stray"];
    Subject("metal-direct").models([
        model("unregisters-1+1", unregistering(1), PLAIN).reaches(both),
        model("unregisters-1+2", unregistering(2), PLAIN).reaches(both),
        model("unregisters-late-1+1+1", unregistering_late(), PLAIN).reaches(both),
        model("unregisters-both-1+1+1", unregistering_both(), PLAIN).reaches(both),
        model("unregisters-twice-1+1+1", unregistering_twice(), PLAIN)
            .reaches(&["first", "copy", "ran"]),
        model("takes-over-1+1+1", taking_over(), PLAIN).reaches(&["ran", "took over"]),
        model("registers-1+1", registering(), PLAIN).reaches(&["one", "other"]),
    ])
}

/// What an action works on.
struct Context {
    /// Whether it may run.
    live: Data<bool>,
    runs: Data<u32>,
}

impl Context {
    const fn new() -> Self {
        Self { live: Data::new(false), runs: Data::new(0) }
    }
}

/// A CPU that takes interrupts.
struct Cpu {
    requests: U32,
    passes: direct::Passes<Check>,
}

impl Cpu {
    const fn new() -> Self {
        Self { requests: Atomic::ZERO, passes: direct::Passes::NEW }
    }

    fn send(&self, request: u32) {
        // Release: a sender's stores come before its interrupt, as `x86::apic` sees to.
        self.requests.fetch_or(request, Release);
    }
}

struct Machine {
    vectors: direct::Vectors<Check, VECTORS>,
    /// The address of the context of each vector's action; 0 if its handler does nothing.
    gates: [U64; VECTORS],
    cpus: [Cpu; 2],
    /// Number of CPUs.
    count: usize,
    contexts: [Context; 3],
}

impl Machine {
    fn new(count: usize) -> Self {
        Self {
            vectors: direct::Vectors::NEW,
            gates: [const { Atomic::ZERO }; VECTORS],
            cpus: [const { Cpu::new() }; 2],
            count,
            contexts: [const { Context::new() }; 3],
        }
    }

    /// As `message::direct::register`.
    fn register(&self, action: usize) -> Option<Name> {
        let name = self.vectors.register()?;
        let context = ptr::from_ref(&self.contexts[action]).expose_provenance();
        // Relaxed: as the store of a gate.
        self.gates[name.index()].store(context as u64, Relaxed);
        Some(name)
    }

    /// As `message::direct::unregister`.
    fn unregister(&self, name: Name) -> bool {
        // Relaxed: as the store of a gate.
        let close = || self.gates[name.index()].store(0, Relaxed);
        let cpus = self.cpus[..self.count].iter().map(|cpu| (&cpu.passes, || cpu.send(PASS)));
        self.vectors.unregister(name, close, cpus)
    }

    /// As `message::direct::post`.
    fn post(&self, cpu: usize, name: Name) {
        self.cpus[cpu].send(PASS << (1 + name.index()));
    }

    /// A CPU takes interrupts, until it has taken a number of passes and, if `done` says so, more.
    fn take(&self, cpu: usize, passes: u32, done: impl Fn() -> bool) {
        let cpu = &self.cpus[cpu];
        let mut passed = 0;
        while passed < passes || !done() {
            let requests = cpu.requests.wait_while(Relaxed, |requests| requests == 0);
            let highest = 1 << requests.ilog2();
            // Acquire: pairs with `send`.
            cpu.requests.fetch_and(!highest, Acquire);
            if highest == PASS {
                cpu.passes.pass();
                passed += 1;
            } else {
                self.enter(highest.ilog2() as usize - 1);
            }
        }
    }

    /// The processor finds the handler of a vector, which runs the action.
    fn enter(&self, vector: usize) {
        // Relaxed: the processor reads the gate.
        let gate = self.gates[vector].load(Relaxed);
        let context = ptr::with_exposed_provenance::<Context>(gate as usize);
        // SAFETY: a gate is 0 or the address of a context, which lives as long as the model.
        if let Some(context) = unsafe { context.as_ref() } {
            assert!(context.live.get(), "DIRECT-2: run for a post to another");
            context.runs.with_mut(|runs| *runs += 1);
            probe("ran");
        } else {
            probe("stray");
        }
    }
}

/// A post to an action is under way while it is unregistered, on one of `count` CPUs. The next
/// action of its vector runs for its own post only. Must reach `ran` and `stray`.
fn unregistering(count: usize) -> Program {
    Program::new(count as u32 + 1, count as u32 + 3, move |scope| {
        let machine = scope.share(Machine::new(count));
        let [first, second, _] = &machine.contexts;
        let name = machine.register(0).expect("a free vector");
        first.live.set(true);
        machine.post(0, name);
        scope.spawn_each(0..count, move |cpu| {
            machine.take(cpu, 1, || cpu > 0 || second.runs.get() > 0)
        });
        scope.spawn(move || {
            assert!(machine.unregister(name));
            // DIRECT-1: a run of it would race with this.
            first.live.set(false);
            let name = machine.register(1).expect("the vector is free");
            second.live.set(true);
            machine.post(0, name);
        });
        scope.finally(|| assert_eq!(second.runs.get(), 1));
    })
}

/// Another thread posts to an action while it is unregistered. Must reach `ran` and `stray`.
fn unregistering_late() -> Program {
    Program::new(3, 3, |scope| {
        let machine = scope.share(Machine::new(1));
        let first = &machine.contexts[0];
        let name = machine.register(0).expect("a free vector");
        first.live.set(true);
        scope.spawn(|| machine.take(0, 1, || true));
        scope.spawn(move || machine.post(0, name));
        scope.spawn(move || {
            assert!(machine.unregister(name));
            // DIRECT-1: a run of it would race with this.
            first.live.set(false);
        });
    })
}

/// One thread unregisters an action that the CPU may be about to run, and another registers a
/// second as soon as there is a vector. Must reach `ran` and `took over`.
fn taking_over() -> Program {
    Program::new(3, 3, |scope| {
        let machine = scope.share(Machine::new(1));
        let [first, second, _] = &machine.contexts;
        let name = machine.register(0).expect("a free vector");
        assert!(machine.register(2).is_some(), "the last vector");
        first.live.set(true);
        machine.post(0, name);
        scope.spawn(|| machine.take(0, 1, || true));
        scope.spawn(move || assert!(machine.unregister(name)));
        scope.spawn(|| {
            if machine.register(1).is_some() {
                probe("took over");
                // The first action runs nowhere: a run of it would race with this.
                first.live.set(false);
            }
        });
        scope.finally(|| assert_eq!(second.runs.get(), 0, "never posted"));
    })
}

/// Two threads unregister an action each, of which one has just posted. Must reach `ran` and
/// `stray`.
fn unregistering_both() -> Program {
    Program::new(3, 4, |scope| {
        let machine = scope.share(Machine::new(1));
        let [first, second, third] = &machine.contexts;
        let names = [0, 1].map(|action| machine.register(action).expect("a free vector"));
        first.live.set(true);
        second.live.set(true);
        scope.spawn(|| machine.take(0, 2, || true));
        scope.spawn(move || {
            assert!(machine.unregister(names[0]));
            first.live.set(false);
        });
        scope.spawn(move || {
            machine.post(0, names[1]);
            assert!(machine.unregister(names[1]));
            // DIRECT-3: the CPU has taken the post.
            second.live.set(false);
            if machine.register(2).is_some() {
                // It may not run: it was not posted.
                third.live.set(false);
            }
        });
        scope.finally(|| assert_eq!(third.runs.get(), 0));
    })
}

/// Two threads unregister an action by copies of its name, and the one that does it registers a
/// second. The other must not unregister that. Must reach `first`, `copy` and `ran`.
fn unregistering_twice() -> Program {
    Program::new(3, 3, |scope| {
        let machine = scope.share(Machine::new(1));
        let second = &machine.contexts[1];
        let name = machine.register(0).expect("a free vector");
        scope.spawn_each(["first", "copy"], move |which| {
            if machine.unregister(name) {
                probe(which);
                second.live.set(true);
                let next = machine.register(1).expect("a free vector");
                assert_eq!(next.index(), name.index(), "the first that is free");
                machine.post(0, next);
            }
        });
        scope.spawn(|| machine.take(0, 1, || second.runs.get() == 1));
    })
}

/// Two threads register an action each, and get different vectors. Must reach `one` and `other`.
fn registering() -> Program {
    Program::new(2, 2, |scope| {
        let machine = scope.share(Machine::new(1));
        let owners = scope.share([const { Data::new(0) }; VECTORS]);
        scope.spawn_each([(1, "one"), (2, "other")], move |(action, which)| {
            let name = machine.register(action).expect("there are two vectors");
            if name.index() == 0 {
                probe(which);
            }
            // NAME-1: two owners would race.
            owners[name.index()].set(action);
        });
        scope.finally(|| assert_eq!(owners[0].get() + owners[1].get(), 3));
    })
}

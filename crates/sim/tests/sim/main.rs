//! Tests of the simulator. All times in them are simulated.

mod arbitration;
mod balance;
mod bounds;
mod buffers;
mod clocks;
mod costs;
mod deliveries;
mod determinism;
mod doubts;
mod guests;
mod handlers;
mod interconnect;
mod interrupts;
mod locks;
mod machines;
mod pace;
mod pages;
mod parking;
mod schedules;
mod scheduling;
mod stuck;
mod toys;
mod waiting;
mod words;

use std::rc::Rc;

use antiphon_platform::{Arena, Atomic, Atomics, Platform};
use antiphon_sim::{Machine, Memory, Model, OwnLine, Sim, Simulation, now};

type Word = <Sim as Atomics>::U32;

/// The nodes.
fn arena() -> &'static Arena<Sim> {
    // SAFETY: each thread writes only to nodes that it has taken.
    unsafe { Sim::arena() }
}

/// A word on its own line.
fn word() -> Rc<OwnLine<Word>> {
    Rc::new(OwnLine(Word::ZERO))
}

/// Two sockets of four cores that don't sleep; exact costs.
fn small() -> Machine {
    Machine { idle: vec![], ..Machine::two_sockets().shape(2, 4).without_jitter() }
}

/// A simulation in which a store waits for its line.
fn unbuffered(machine: Machine) -> Simulation {
    Simulation::new(machine, 1).model(Model { memory: Memory::Sc, ..Model::default() })
}

/// The simulated duration of `f`.
fn time(f: impl FnOnce()) -> u64 {
    let begin = now();
    f();
    now() - begin
}

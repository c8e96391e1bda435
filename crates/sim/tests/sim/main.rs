//! Tests of the simulator. All times in them are simulated.

mod costs;
mod determinism;
mod locks;
mod machines;
mod parking;
mod scheduling;
mod stuck;
mod toys;
mod waiting;

use std::rc::Rc;

use antiphon_platform::{Atomic, Platform};
use antiphon_sim::{Machine, OwnLine, Sim};

type Word = <Sim as Platform>::U32;

/// A word on a line of its own.
fn word() -> Rc<OwnLine<Word>> {
    Rc::new(OwnLine(Word::ZERO))
}

/// Two sockets of four cores; exact costs.
fn small() -> Machine {
    Machine::two_sockets().shape(2, 4).without_jitter()
}

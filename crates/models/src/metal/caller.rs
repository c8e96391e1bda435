//! The hardware of a model: a caller of the protocol's steps, and the interrupt lines of CPUs. A
//! handler is a thread of its own or runs in a halt, so that a sender has nothing to switch off.

use std::cell::Cell;
use std::ptr;

use antiphon_check::{Check, probe};
use antiphon_wakeup::machine::Machine;

use super::cpu::Line;

/// The purpose of an interrupt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ends a halt, or announces what its receiver looks for; several may be answered as one.
    Any,
    /// Is the only one on its way (PENDING-1).
    First,
}

/// A CPU that sends.
pub struct Caller<'a> {
    /// Its own line, if a model has it.
    own: Option<&'a Line>,
    /// The lines of all CPUs that a command to all others reaches, and perhaps its own.
    lines: Vec<&'a Line>,
    /// Whether it has sent an interrupt.
    sent: Cell<bool>,
}

impl<'a> Caller<'a> {
    /// A CPU whose own line is `own`, among `lines`.
    pub fn on(own: &'a Line, lines: impl Iterator<Item = &'a Line>) -> Self {
        Self { own: Some(own), lines: lines.collect(), sent: Cell::new(false) }
    }

    /// A CPU that no model interrupts.
    pub fn elsewhere() -> Self {
        Self { own: None, lines: Vec::new(), sent: Cell::new(false) }
    }

    /// Returns whether it has sent an interrupt since the last call.
    pub fn has_sent(&self) -> bool {
        self.sent.take()
    }
}

impl<'a> Machine for Caller<'a> {
    type Words = Check;
    type Cpu = &'a Line;
    type Signal = Signal;

    const KICK: Signal = Signal::Any;

    fn is_current(&self, cpu: &'a Line) -> bool {
        self.own.is_some_and(|own| ptr::eq(own, cpu))
    }

    fn others(&self) -> usize {
        self.lines.iter().filter(|line| !self.is_current(line)).count()
    }

    fn without_interrupts<R>(&self, body: impl FnOnce() -> R) -> R {
        body()
    }

    fn interrupt(&self, cpu: &'a Line, signal: Signal) {
        self.sent.set(true);
        let first = cpu.raise();
        assert!(first || signal == Signal::Any, "PENDING-1: an interrupt is on its way already");
    }

    fn interrupt_others(&self, signal: Signal) {
        probe("at once");
        let others = self.lines.iter().filter(|line| !self.is_current(line));
        others.for_each(|line| self.interrupt(line, signal));
    }

    fn halt(&self) {
        self.own.expect("a CPU that halts has a line").wait();
    }
}

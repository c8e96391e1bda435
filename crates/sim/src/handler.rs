//! Interrupts that a program sends, and the threads that handle them, for programs that are the
//! kernel.
//!
//! ```text
//!   sender:   send │ goes on
//!                  └── deliver, by distance ──┐
//!   its CPU:                   whatever runs │ handle │ handler, until it waits │ goes on
//! ```
//!
//! A handler is a thread; between two interrupts, other threads run on its CPU. `handle` is the
//! time from the delivery to the handler's first instruction; there is no other switch, to it or
//! back. An interrupt comes between two accesses of the running thread. If the handler is busy, or
//! there is none, one interrupt stays pending, but never two (a local APIC has one bit for each
//! vector).

use std::mem::take;

use crate::buffer::drain;
use crate::events::Event;
use crate::os::Core;
use crate::step::{call, step};
use crate::thread::State;
use crate::world::{World, suspend, with};

/// The state of a core's interrupts.
#[derive(Default)]
pub(crate) struct Handles {
    /// The thread that handles the core's interrupts.
    handler: Option<usize>,
    /// Whether an interrupt is pending.
    pending: bool,
    /// The handler, if it gets the core next.
    pub(crate) due: Option<usize>,
}

/// Interrupts a CPU. The caller's earlier stores are visible to the handler.
///
/// # Panics
///
/// If `cpu` does not exist.
pub fn interrupt(cpu: u32) {
    send(|world| world.deliver(cpu));
}

/// Interrupts all CPUs except the caller's, at the cost of one interrupt: the shorthand of a local
/// APIC.
pub fn interrupt_others() {
    send(|world| {
        let mine = world.my_core();
        let others = (0..world.machine.cores()).filter(|&cpu| cpu != mine);
        others.for_each(|cpu| world.deliver(cpu));
    });
}

/// Makes the calling thread the handler of its CPU, and waits for an interrupt. Other threads have
/// the CPU meanwhile.
///
/// # Panics
///
/// If another thread handles interrupts on this CPU, or the caller is in a virtual machine.
pub fn await_interrupt() {
    drain();
    if with(World::handles_next) {
        suspend();
    } else {
        step(|world| world.machine.interrupt.handle_ns);
    }
}

/// Counts as a system call, because on x86 a write of the command register does not pass earlier
/// stores.
fn send(deliver: impl FnOnce(&mut World)) {
    call(|world| world.machine.interrupt.send_ns);
    with(deliver);
}

impl World {
    fn deliver(&mut self, cpu: u32) {
        assert!(cpu < self.machine.cores(), "no CPU {cpu}");
        self.counts.interrupts += 1;
        self.interrupts_under_way += 1;
        let at_ns = self.now_ns + self.machine.deliver_ns(self.my_core(), cpu);
        self.events.push(at_ns, Event::Interrupt { core: cpu });
    }

    /// Handles the arrival of an interrupt at a core.
    pub(crate) fn interrupted(&mut self, number: u32) {
        self.interrupts_under_way -= 1;
        let handles = &mut self.cores[number as usize].handles;
        let free = |&handler: &usize| self.threads[handler].state == State::Awaiting;
        let Some(handler) = handles.handler.filter(free) else {
            handles.pending = true;
            return;
        };
        handles.due = Some(handler);
        self.threads[handler].state = State::Step;
        self.record(handler, 14, u64::from(number));
        match self.cores[number as usize].current {
            Some(_) => self.slice_over(number),
            None => self.dispatch(number),
        }
    }

    /// Makes the running thread the handler of its core; returns whether it must wait. The core is
    /// then given to others.
    fn handles_next(&mut self) -> bool {
        assert!(self.hosting.is_none(), "a virtual CPU can't handle interrupts");
        let (me, core) = (self.me(), self.my_core());
        let Core { handles, schedule, .. } = &mut self.cores[core as usize];
        assert!(
            schedule.is_none(),
            "a CPU whose threads a program schedules can't handle interrupts"
        );
        assert!(*handles.handler.get_or_insert(me) == me, "a CPU has one handler");
        let waits = !take(&mut handles.pending);
        if waits {
            self.threads[me].state = State::Awaiting;
            self.dispatch(core);
        }
        waits
    }
}

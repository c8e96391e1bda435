//! Interrupts that a program sends, and the threads that handle them: for programs that are the
//! kernel.
//!
//! ```text
//!   sender:   send │ goes on
//!                  └── deliver, by distance ──┐
//!   its CPU:                   whatever runs │ handle │ handler, until it waits │ goes on
//! ```
//!
//! A handler is a thread that others share its CPU with between two interrupts. `handle` is the
//! time from the delivery to the handler's first instruction; there is no other switch, to it or
//! back. An interrupt comes between two accesses of the thread that runs there. One that finds the
//! handler at work, or none, is remembered; two are not (a local APIC has a bit for each vector).

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
    /// The thread that handles them.
    handler: Option<usize>,
    /// An interrupt is pending.
    pending: bool,
    /// The handler, if it is to have the core next.
    pub(crate) due: Option<usize>,
}

/// Interrupts a CPU. What the caller has stored before is seen there.
///
/// # Panics
///
/// If there is no such CPU.
pub fn interrupt(cpu: u32) {
    send(|world| world.deliver(cpu));
}

/// Interrupts all CPUs but the caller's, for the price of one: the shorthand of a local APIC.
pub fn interrupt_others() {
    send(|world| {
        let mine = world.my_core();
        let others = (0..world.machine.cores()).filter(|&cpu| cpu != mine);
        others.for_each(|cpu| world.deliver(cpu));
    });
}

/// Makes the calling thread the handler of its CPU, and waits for an interrupt. Others have the CPU
/// meanwhile.
///
/// # Panics
///
/// If another thread handles interrupts there.
pub fn await_interrupt() {
    drain();
    if with(World::handles_next) {
        suspend();
    } else {
        step(|world| world.machine.interrupt.handle_ns);
    }
}

/// A call, because x86 does not let a write of the command register pass the stores before it.
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

    /// An interrupt has come to a core.
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

    /// Whether the running thread, from now on the handler of its core, has to wait: then the core
    /// is given to others.
    fn handles_next(&mut self) -> bool {
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

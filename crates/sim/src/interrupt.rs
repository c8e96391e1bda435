//! Interrupts that the system sends from one CPU to another.
//!
//! ```text
//!   sender:    send │ goes on
//!                    └── deliver, by distance ──┐
//!   receiver:                      whatever runs │ handle │ goes on
//! ```
//!
//! Heavy fences interrupt all running threads, at a separate cost. A wake sends an interrupt to the
//! CPU of the woken thread if the machine's wakes do ([`Wakes`]); an idle CPU then also leaves its
//! idle state, as for any wake.

use crate::Wakes;
use crate::thread::State;
use crate::world::World;

impl World {
    /// Interrupts each core that has a thread, except the caller's, for a fence; returns how many.
    pub(crate) fn fence_others(&mut self) -> u64 {
        let mine = self.my_core() as usize;
        let mut interrupted = 0;
        for core in 0..self.cores.len() {
            if let Some(thread) = self.cores[core].current.filter(|_| core != mine) {
                interrupted += 1;
                self.steal(thread, self.machine.interrupt.handle_ns);
            }
        }
        self.counts.interrupts += interrupted;
        interrupted
    }

    /// The cost to the running thread of interrupting another thread's CPU in order to wake that
    /// thread, and the time from now until the interrupt has been handled there. `None` if no
    /// interrupt is needed.
    pub(crate) fn interrupt_to_wake(&mut self, thread: usize) -> Option<(u64, u64)> {
        let (mine, core) = (self.my_core(), self.threads[thread].core);
        let sends = match self.machine.interrupt.wakes {
            Wakes::Contained => false,
            Wakes::Busy => self.cores[core as usize].current.is_some(),
            Wakes::All => true,
        };
        if !sends || core == mine {
            return None;
        }
        self.counts.interrupts += 1;
        self.threads[thread].interrupts = true;
        let interrupt = self.machine.interrupt;
        let arrives_ns = interrupt.send_ns + self.machine.deliver_ns(mine, core);
        Some((interrupt.send_ns, arrives_ns + interrupt.handle_ns))
    }

    /// Called when a thread arrives at its core: the interrupt that woke it, if any, has taken time
    /// from the thread that runs there.
    pub(crate) fn was_interrupted(&mut self, thread: usize) {
        if std::mem::take(&mut self.threads[thread].interrupts) {
            let core = self.threads[thread].core as usize;
            if let Some(current) = self.cores[core].current {
                self.steal(current, self.machine.interrupt.handle_ns);
            }
        }
    }

    /// Takes time from a thread that has its core: at once while it computes, or after its step
    /// while it is in one. A spinner loses nothing of importance.
    fn steal(&mut self, thread: usize, ns: u64) {
        let state = &mut self.threads[thread].state;
        match state {
            State::Computing { until_ns } => {
                *until_ns += ns;
                let at_ns = *until_ns;
                self.resume_at(thread, at_ns);
            }
            State::Step => self.threads[thread].stolen_ns += ns,
            State::Watching(_)
            | State::Rereading(_)
            | State::Asleep(_)
            | State::Awaiting
            | State::Finished => {}
        }
    }
}

//! Interrupts take time from whoever runs.

use crate::os::State;
use crate::world::World;

impl World {
    /// Interrupts each core but the caller's that has a thread; returns how many.
    pub(crate) fn interrupt_others(&mut self) -> u64 {
        let mine = self.my_core() as usize;
        let mut interrupted = 0;
        for core in 0..self.cores.len() {
            if let Some(thread) = self.cores[core].current.filter(|_| core != mine) {
                interrupted += 1;
                self.steal(thread, self.machine.interrupt.handle_ns);
            }
        }
        interrupted
    }

    /// Takes time from a thread that has its core: at once from one that computes, and after its
    /// step from one that is in it. A spinner loses nothing that it would miss.
    fn steal(&mut self, thread: usize, ns: u64) {
        let state = &mut self.threads[thread].state;
        match state {
            State::Computing { until_ns } => {
                *until_ns += ns;
                let at_ns = *until_ns;
                self.resume_at(thread, at_ns);
            }
            State::Step => self.threads[thread].stolen_ns += ns,
            State::Watching(_) | State::Rereading(_) | State::Asleep(_) | State::Finished => {}
        }
    }
}

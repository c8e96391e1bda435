//! Load balancing: threads that are not pinned move to idle cores.
//!
//! A thread that becomes runnable while its core is busy goes to the nearest idle core; an idle
//! core pulls a thread from the longest queue, of equal ones from the nearest. Linux does this at
//! wake-up and at idle, but with limits on frequency and distance.

use std::cmp::Reverse;

use crate::world::World;

impl World {
    /// The core for a thread that wants to run: its own, or an idle core if it may move.
    pub(crate) fn place(&mut self, thread: usize) -> u32 {
        let own = self.threads[thread].core;
        let stays = !self.model.balance || self.threads[thread].pinned;
        if stays || self.cores[own as usize].current.is_none() {
            return own;
        }
        let cores = self.cores.iter().enumerate();
        let idle = cores.filter(|(_, core)| core.current.is_none()).map(|(number, _)| number);
        let nearest = idle.min_by_key(|&number| self.machine.transfer_ns(own, number as u32));
        let Some(nearest) = nearest else { return own };
        self.migrate(thread, nearest as u32);
        nearest as u32
    }

    /// Takes a thread that waits for another core, for an idle core.
    pub(crate) fn pull(&mut self, to: u32) -> Option<usize> {
        if !self.model.balance {
            return None;
        }
        let movable = |&thread: &usize| !self.threads[thread].pinned;
        let (from, _) = (self.cores.iter().enumerate())
            .map(|(from, core)| (from, core.queue.iter().filter(|&thread| movable(thread)).count()))
            .filter(|&(_, waiting)| waiting > 0)
            .max_by_key(|&(from, waiting)| {
                (waiting, Reverse(self.machine.transfer_ns(from as u32, to)), Reverse(from))
            })?;
        let place = self.cores[from].queue.iter().position(movable)?;
        let thread = self.cores[from].queue.remove(place)?;
        self.migrate(thread, to);
        Some(thread)
    }

    pub(crate) fn migrate(&mut self, thread: usize, to: u32) {
        self.counts.migrations += 1;
        self.record(thread, 13, u64::from(to));
        self.threads[thread].core = to;
        self.threads[thread].migrates = true;
    }
}

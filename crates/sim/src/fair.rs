//! Fair queues: among a core's threads of equal rank, the thread with the least virtual time runs
//! next, as in Linux's scheduler of ordinary threads, but without its deadlines: all slices have
//! the same length.
//!
//! The virtual time of a thread is the time that it has run. A thread that goes to sleep keeps its
//! distance from the mean of the core's runnable threads, up to a slice, and has the same distance
//! when it returns. So a sleeping thread gains nothing, and a woken thread is usually next; it
//! waits for the end of the running slice. Time that a thread runs with a lent rank is not charged,
//! as the kernel does not charge threads of a real-time class.

use crate::world::World;

/// The virtual time of a thread in its queue, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fair {
    virtual_ns: i64,
    /// The distance behind the mean when the thread went to sleep.
    lag_ns: i64,
    /// The time up to which the thread was charged.
    charged_ns: u64,
}

impl World {
    /// The mean virtual time of a core's runnable threads; `None` if there are none.
    fn mean_ns(&self, number: u32) -> Option<i64> {
        let core = &self.cores[number as usize];
        let wants = core.queue.iter().chain(&core.current);
        let of = |&thread: &usize| self.threads[thread].fair.virtual_ns;
        let (count, sum) = wants.map(of).fold((0, 0), |(count, sum), ns| (count + 1, sum + ns));
        (count > 0).then(|| sum / count)
    }

    /// Charges the thread that has a core for its time so far.
    pub(crate) fn charge_fairly(&mut self, thread: usize) {
        let (now_ns, core) = (self.now_ns, self.threads[thread].core as usize);
        if self.cores[core].current != Some(thread) {
            return;
        }
        let since_ns = self.cores[core].slice_began_ns;
        let there = &mut self.threads[thread];
        let since_ns = since_ns.max(std::mem::replace(&mut there.fair.charged_ns, now_ns));
        if there.loans == 0 {
            there.fair.virtual_ns += now_ns.saturating_sub(since_ns) as i64;
        }
    }

    /// Updates a thread that has its core and goes to sleep.
    pub(crate) fn leaves_fairly(&mut self, thread: usize) {
        let slice_ns = self.machine.slice_ns as i64;
        let mean_ns = self.mean_ns(self.threads[thread].core).unwrap_or_default();
        let fair = &mut self.threads[thread].fair;
        fair.lag_ns = (mean_ns - fair.virtual_ns).clamp(-slice_ns, slice_ns);
    }

    /// Updates a thread that becomes runnable again.
    pub(crate) fn comes_fairly(&mut self, thread: usize) {
        let core = self.threads[thread].core;
        if let Some(current) = self.cores[core as usize].current {
            self.charge_fairly(current);
        }
        if let Some(mean_ns) = self.mean_ns(core) {
            let fair = &mut self.threads[thread].fair;
            fair.virtual_ns = mean_ns - fair.lag_ns;
        }
    }

    /// The key by which a queue orders threads of equal rank, the least first. Equal for all
    /// threads if the queue is in the order of arrival.
    pub(crate) fn had_ns(&self, thread: usize) -> i64 {
        if self.model.fair { self.threads[thread].fair.virtual_ns } else { 0 }
    }
}

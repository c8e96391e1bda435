//! Fair queues: of a core's threads that are as urgent, the one that has had the least runs next,
//! as in Linux's scheduler of ordinary threads, but without its deadlines: slices are all as long.
//!
//! A thread has a virtual time: how long it has run. One that sleeps keeps the distance that it was
//! ahead or behind of the mean of those that want the core then, up to a slice, and comes back with
//! that. So a thread that sleeps gains nothing, and one that was woken is next as a rule; it waits
//! for the end of the running slice. What a thread runs while it is lent a rank is not charged, as
//! the kernel does not charge threads of a real-time class.

use crate::world::World;

/// The CPU time of a thread, as its queue sees it, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fair {
    virtual_ns: i64,
    /// How far behind the mean the thread was when it went to sleep.
    lag_ns: i64,
    /// Until when the thread was charged.
    charged_ns: u64,
}

impl World {
    /// The mean of the threads that want a core; `None`: there are none.
    fn mean_ns(&self, number: u32) -> Option<i64> {
        let core = &self.cores[number as usize];
        let wants = core.queue.iter().chain(&core.current);
        let of = |&thread: &usize| self.threads[thread].fair.virtual_ns;
        let (count, sum) = wants.map(of).fold((0, 0), |(count, sum), ns| (count + 1, sum + ns));
        (count > 0).then(|| sum / count)
    }

    /// The thread that has a core is charged for what it has run so far.
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

    /// A thread that has its core goes to sleep.
    pub(crate) fn leaves_fairly(&mut self, thread: usize) {
        let slice_ns = self.machine.slice_ns as i64;
        let mean_ns = self.mean_ns(self.threads[thread].core).unwrap_or_default();
        let fair = &mut self.threads[thread].fair;
        fair.lag_ns = (mean_ns - fair.virtual_ns).clamp(-slice_ns, slice_ns);
    }

    /// A thread wants its core again.
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

    /// The key by which a queue orders threads that are as urgent: the least first. All have the
    /// same, if the queue is in the order of arrival.
    pub(crate) fn had_ns(&self, thread: usize) -> i64 {
        if self.model.fair { self.threads[thread].fair.virtual_ns } else { 0 }
    }
}

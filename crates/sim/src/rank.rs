//! The ranks of threads, and their lending.

use std::cmp::Reverse;

use crate::thread::{State, Thread};
use crate::world::World;

impl Thread {
    /// The rank of the thread, including loans.
    pub(crate) fn effective_rank(&self) -> u8 {
        self.rank.max(if self.loans > 0 { self.lent } else { 0 })
    }
}

impl World {
    /// Takes the thread of the highest rank that waits for a core; of equal ones, the first.
    pub(crate) fn first_in_queue(&mut self, number: u32) -> Option<usize> {
        let queue = &self.cores[number as usize].queue;
        let order = |&(place, &thread): &(usize, &usize)| {
            let rank = self.threads[thread].effective_rank();
            (rank, Reverse(self.had_ns(thread)), Reverse(place))
        };
        let first = queue.iter().enumerate().max_by_key(order).map(|(place, _)| place);
        first.and_then(|place| self.cores[number as usize].queue.remove(place))
    }

    /// Ends the slice of a thread that keeps its core from a thread of higher rank.
    pub(crate) fn prefer_the_urgent(&mut self, number: u32) {
        let core = &self.cores[number as usize];
        let rank = |&thread: &usize| self.threads[thread].effective_rank();
        let (current, waiting) =
            (core.current.as_ref().map(rank), core.queue.iter().map(rank).max());
        if current.is_some() && current < waiting {
            self.slice_over(number);
        }
    }

    /// Updates the scheduling after a change of a thread's rank or loans.
    fn reconsider(&mut self, thread: usize) {
        if self.threads[thread].state != State::Finished {
            self.prefer_the_urgent(self.threads[thread].core);
        }
    }

    /// Adds a loan of `rank` to a thread.
    pub(crate) fn lend(&mut self, thread: usize, rank: u8) {
        self.charge_fairly(thread);
        let to = &mut self.threads[thread];
        to.lent = if to.loans > 0 { to.lent.max(rank) } else { rank };
        to.loans += 1;
        self.reconsider(thread);
    }

    /// Ends a loan to a thread.
    pub(crate) fn reclaim(&mut self, thread: usize) {
        self.charge_fairly(thread);
        let to = &mut self.threads[thread];
        assert!(to.loans > 0, "what was not lent is given back");
        to.loans -= 1;
        self.reconsider(thread);
    }

    /// Sets the rank of the running thread from now on.
    pub(crate) fn set_rank(&mut self, rank: u8) {
        let me = self.me();
        self.threads[me].rank = rank;
        self.reconsider(me);
    }
}

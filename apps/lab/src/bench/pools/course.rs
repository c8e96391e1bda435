//! The course of a run: when items are due, how long spawners wait for that, and when all is done.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::Duration;

use super::arrivals::Arrival;
use super::figures::Figures;
use super::tally::{self, Tally};
use crate::bench::ticks::Ticks;
use crate::bench::ticks::{now, since};
use crate::bench::usage::Usage;

/// The time between two looks at whether all is done.
const LOOKS: Duration = Duration::from_millis(1);

/// The course of a run.
pub struct Course {
    /// How the clock counts.
    pub ticks: Ticks,
    /// The time when it began, of that clock.
    pub begun: u64,
    /// The times when items are due; without, they come as fast as can be.
    arrivals: Option<Vec<Arrival>>,
    /// The tasks that make items.
    pub spawners: u32,
    /// The ticks for which spawners have waited for items to be due.
    waited: AtomicU64,
    /// How many spawners have ended, and have added to that.
    ended: AtomicU64,
}

impl Course {
    /// The course of a run that begins now.
    pub fn new(ticks: Ticks, arrivals: Option<Vec<Arrival>>, spawners: u32) -> Self {
        let [waited, ended] = [const { AtomicU64::new(0) }; 2];
        Self { ticks, begun: now(), arrivals, spawners, waited, ended }
    }

    /// The arrival of an item, where it comes by itself, and when it is due.
    pub fn arrival(&self, number: u64) -> (Option<Arrival>, Option<u64>) {
        let arrival = self.arrivals.as_ref().map(|all| all[number as usize]);
        let due = arrival.map(|one| self.begun + self.ticks.of_ns(one.due_ns as f64));
        (arrival, due)
    }

    /// Waits until an item is due. Returns for how many ticks.
    pub fn wait(due: u64) -> u64 {
        let from = now();
        while now() < due {
            spin_loop();
        }
        since(from, due)
    }

    /// The end of a spawner, which has waited for `waited` ticks.
    pub fn spawner_ended(&self, waited: u64) {
        self.waited.fetch_add(waited, Relaxed);
        // Release: that, and what the spawner has counted; pairs with the acquire in `is_done`.
        self.ended.fetch_add(1, Release);
    }

    /// Begins by `begin`, and blocks until all spawners and `tasks` tasks have ended. Returns the
    /// counts, and what they come to.
    pub fn run(&self, tasks: u64, begin: impl FnOnce()) -> (Tally, Figures) {
        let before = Usage::now();
        begin();
        while !self.is_done(tasks) {
            thread::sleep(LOOKS);
        }
        let used = Usage::now().since(before);
        let done = tally::take();
        let waited = self.waited.load(Relaxed);
        let figures = Figures::of_run(&done, self.begun, used, waited, self.ticks);
        (done, figures)
    }

    fn is_done(&self, tasks: u64) -> bool {
        // Acquire: pairs with the release in `spawner_ended`.
        self.ended.load(Acquire) == u64::from(self.spawners) && tally::tasks() >= tasks
    }
}

//! The course of a run: when items are due, how long spawners wait for them, and when all is done.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::Duration;

use super::arrivals::Arrival;
use super::figures::Figures;
use super::tally::{self, Tally};
use crate::bench::usage::Usage;
use crate::ticks::Ticks;
use crate::ticks::{now, since};

/// Interval between checks whether all is done.
const LOOKS: Duration = Duration::from_millis(1);

/// The course of a run.
pub struct Course {
    /// Rate of the counter that times.
    pub ticks: Ticks,
    /// Time at which the run began, in ticks.
    pub begun: u64,
    /// Times at which items are due; without these, items come as fast as possible.
    arrivals: Option<Vec<Arrival>>,
    /// Number of tasks that make items.
    pub spawners: u32,
    /// Ticks for which spawners have waited until items were due.
    waited: AtomicU64,
    /// Number of spawners that have ended and added their waiting time.
    ended: AtomicU64,
}

impl Course {
    /// A run that begins now.
    pub fn new(ticks: Ticks, arrivals: Option<Vec<Arrival>>, spawners: u32) -> Self {
        let [waited, ended] = [const { AtomicU64::new(0) }; 2];
        Self { ticks, begun: now(), arrivals, spawners, waited, ended }
    }

    /// Returns the arrival of an item and the tick at which it is due, if items have arrival times.
    pub fn arrival(&self, number: u64) -> (Option<Arrival>, Option<u64>) {
        let arrival = self.arrivals.as_ref().map(|all| all[number as usize]);
        let due = arrival.map(|one| self.begun + self.ticks.of_ns(one.due_ns as f64));
        (arrival, due)
    }

    /// Waits until an item is due. Returns the number of ticks waited.
    pub fn wait(due: u64) -> u64 {
        let from = now();
        while now() < due {
            spin_loop();
        }
        since(from, due)
    }

    /// Records the end of a spawner, which has waited for `waited` ticks.
    pub fn spawner_ended(&self, waited: u64) {
        self.waited.fetch_add(waited, Relaxed);
        // Release: publishes `waited` and the spawner's counts; pairs with the Acquire in
        // `is_done`.
        self.ended.fetch_add(1, Release);
    }

    /// Starts the run by `begin`, and blocks until all spawners and `tasks` tasks have ended.
    /// Returns the counts, and the figures computed from them.
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
        // Acquire: pairs with the Release in `spawner_ended`.
        self.ended.load(Acquire) == u64::from(self.spawners) && tally::tasks() >= tasks
    }
}

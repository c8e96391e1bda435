//! The chains of tasks, for any runner.

use antiphon_report::stats::Random;

use super::cases::Depths;
use super::problems::Problem;
use crate::bench::pools::course::Course;
use crate::bench::pools::runner::{Kind, LONG_STAGE, Run, Runner};
use crate::bench::pools::tally::count;
use crate::ticks::{now, since};

/// The work of a run.
pub struct Work {
    /// Lengths of chains.
    pub depths: Depths,
    /// Problems of short chains, used in turn.
    pub short: Vec<Problem>,
    /// Problems of long chains.
    pub long: Vec<Problem>,
    /// Number of chains.
    pub chains: u64,
    /// When chains are due, if they don't all begin at once, and their progress.
    pub course: Course,
    /// The seed of all random choices.
    pub seed: u64,
    /// Time at which the run began, in nanoseconds of the monotonic clock.
    pub begun_ns: u64,
}

/// A chain is due after the square of its number of steps, times this: about a hundred times its
/// computing time. So short chains are due first.
const DUE_NS: f64 = 100.0;

impl Work {
    /// Returns the total number of tasks, without the spawners.
    pub fn tasks(&self) -> u64 {
        (0..self.chains).map(|number| self.problem(number).0.tasks()).sum()
    }

    /// Returns the problem of a chain, and whether the chain is long.
    fn problem(&self, number: u64) -> (&Problem, bool) {
        let lot = Random(self.seed ^ number << 1).draw() as f64 / 2.0_f64.powi(64);
        let long = lot < self.depths.long_share;
        let all = if long { &self.long } else { &self.short };
        (&all[number as usize % all.len()], long)
    }

    /// Begins a share of the chains by `begin`, which gets the number of each and the time from
    /// which its latency counts.
    pub fn spawn(&'static self, spawner: u32, begin: impl Fn(u64, u64)) {
        let mut waited = 0;
        for number in (u64::from(spawner)..self.chains).step_by(self.course.spawners as usize) {
            let (_, due) = self.course.arrival(number);
            waited += due.map_or(0, Course::wait);
            begin(number, due.unwrap_or(self.course.begun));
        }
        self.course.spawner_ended(waited);
    }

    /// Returns the kinds of the tasks of a chain that is due from `due` on: of the first task, and
    /// of those that follow.
    fn kinds(&self, number: u64, due: u64) -> [Kind; 2] {
        let long = self.problem(number).1;
        let depth = if long { self.depths.long } else { self.depths.short } as f64;
        let passed_ns = self.course.ticks.to_ns(since(self.course.begun, due) as f64);
        let due_ns = self.begun_ns + (passed_ns + DUE_NS * depth * depth) as u64;
        let level = if long { 2 } else { 0 };
        [0, if long { LONG_STAGE } else { 2 }].map(|stage| Kind { stage, level, due_ns })
    }

    fn end(&self, number: u64, right: bool, tasks: u64, from: u64) {
        let last = now();
        let latency = since(from, last);
        count(|tally| {
            tally.items += 1;
            tally.numbers += number;
            tally.found += u64::from(right);
            let step = tally.step(0);
            step.latencies.record(latency, 1);
            step.sum += latency;
            step.items += 1;
            tally.tasks += tasks;
            tally.last = last;
        });
    }
}

impl<R: Runner> Run<R, Work> {
    /// Starts the spawners, which do the rest.
    pub fn begin(self) {
        for spawner in 0..self.work.course.spawners {
            self.runner.spawn(move || {
                self.work.spawn(spawner, |number, due| {
                    let [first, kind] = self.work.kinds(number, due);
                    self.runner.spawn_as(first, move || self.chain(number, due, kind));
                });
            });
        }
    }

    /// Runs the first task of a chain, and those that follow.
    fn chain(self, number: u64, due: u64, kind: Kind) {
        let (problem, _) = self.work.problem(number);
        let (mut chain, more) = problem.begin();
        let tasks = problem.tasks();
        if !more {
            return self.work.end(number, problem.is_answer(&chain), tasks, due);
        }
        self.runner.repeat(kind, move || {
            let more = chain.step();
            if !more {
                self.work.end(number, problem.is_answer(&chain), tasks, due);
            }
            more
        });
    }
}

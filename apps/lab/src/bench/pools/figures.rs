//! The figures of a repetition.

use antiphon::pool::Stats;
use serde::{Deserialize, Serialize, Serializer};

use super::arrivals::STEP_NS;
use super::tally::{Step, Tally};
use crate::bench::usage::Usage;
use crate::ticks::Ticks;
use crate::ticks::since;

/// The figures of a repetition.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Tasks that ended per second, without the spawners.
    pub tasks_per_s: f64,
    /// CPU time of the process, without that of spawners that waited for tasks to be due.
    pub cpu_us_per_task: f64,
    /// Latencies, one entry for each step of the ramp; a single entry if there is no ramp.
    pub steps: Vec<Latencies>,
    /// Counts of the pool, if it is one of ours.
    pub counted: Option<Counted>,
}

/// Latencies of the packets, or other items, of a step, in nanoseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Latencies {
    /// Mean latency.
    pub mean: f64,
    /// 20th percentile.
    pub p20: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// 99.99th percentile.
    pub p9999: f64,
    /// Maximum.
    pub max: f64,
    /// Packets per second that were due in a step of the ramp.
    pub offered_per_s: f64,
    /// Packets of this step per second that ended in time.
    pub goodput_per_s: f64,
    /// Number of packets that were due by the end of the step but not done.
    pub backlog: f64,
}

/// The counts of one of our pools.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counted {
    /// Number of times that there was no room for a task.
    pub spawner_retries: u64,
    /// Number of times that a worker searched for tasks of others.
    pub steal_attempts: u64,
    /// Number of searches that found tasks.
    pub steal_hits: u64,
    /// Timeline of the pool's recording at the end, if it was asked for.
    pub trace: Option<String>,
}

impl Counted {
    /// Sums the counts of these pools.
    pub fn of(pools: &[Stats], trace: Option<String>) -> Self {
        Self {
            spawner_retries: pools.iter().map(|stats| stats.refused).sum(),
            steal_attempts: pools.iter().map(|stats| stats.searches).sum(),
            steal_hits: pools.iter().map(|stats| stats.steals).sum(),
            trace,
        }
    }
}

impl Figures {
    /// The figures of a run that began at the tick `begun` and used `used` CPU time. Its spawners
    /// have waited for `waited` ticks, which are not counted.
    pub fn of_run(done: &Tally, begun: u64, used: Usage, waited: u64, ticks: Ticks) -> Self {
        let seconds = ticks.to_ns(since(begun, done.last) as f64) / 1e9;
        Self::new(done, seconds, used.cpu_ns() as f64 - ticks.to_ns(waited as f64), ticks)
    }

    /// The figures of what was counted since a moment; it took `seconds`, and `cpu_ns` of CPU time.
    pub fn new(done: &Tally, seconds: f64, cpu_ns: f64, ticks: Ticks) -> Self {
        let (mut due, mut ended) = (0, 0);
        let mut steps = Vec::new();
        for step in done.steps.iter().filter(|step| step.items > 0) {
            due += step.items;
            ended += step.ended;
            let backlog = (due - ended.min(due)) as f64;
            steps.push(Latencies { backlog, ..Latencies::of(step, |it| ticks.to_ns(it)) });
        }
        Self {
            tasks_per_s: done.tasks as f64 / seconds,
            cpu_us_per_task: cpu_ns.max(0.0) / 1e3 / done.tasks as f64,
            steps,
            counted: None,
        }
    }

    /// Returns the latencies of the first step, or of the whole run if there are no steps.
    pub fn latency(&self) -> Latencies {
        self.steps.first().cloned().unwrap_or_default()
    }
}

impl Latencies {
    /// The latencies counted in a step, in units that `to_ns` converts.
    pub fn of(step: &Step, to_ns: impl Fn(f64) -> f64) -> Self {
        let at = |share| to_ns(step.latencies.quantile(share));
        let per_s = |items: u64| items as f64 * 1e9 / STEP_NS as f64;
        Self {
            mean: to_ns(step.sum as f64 / step.items as f64),
            p20: at(0.2),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: to_ns(step.latencies.max() as f64),
            offered_per_s: per_s(step.items),
            goodput_per_s: per_s(step.good),
            backlog: 0.0,
        }
    }

    /// Serializes as an object of the report, in nanoseconds.
    pub fn report<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map([
            ("mean", self.mean),
            ("p20", self.p20),
            ("p50", self.p50),
            ("p99", self.p99),
            ("p999", self.p999),
            ("p9999", self.p9999),
            ("max", self.max),
        ])
    }
}

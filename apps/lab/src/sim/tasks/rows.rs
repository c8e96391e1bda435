//! Rows: figures of a subject in a case, for scripts.
//!
//! | key | what |
//! |---|---|
//! | `ops_per_s` | packets per second, with all tasks that follow them |
//! | `p50_ns` … `max_ns` | of a task, from when it is ready; of an option, from the start |
//! | `busy` | share of the workers' time in which tasks and spawners compute |
//! | `push_ns` | mean time to make a task ready |
//! | `spawner_retries` | number of times that there was no room |
//! | `steal_attempts`, `steal_hits` | attempts to steal from others' queues, and successful ones |
//! | `remote_transfers_per_task`, `local_transfers_per_task` | cache lines that moved |
//! | `parks`, `wakes` | of workers |
//! | `published_ops_per_s`, `published_p99_ns` | what the dissertation measured, if it is known |

use antiphon_report::failure::Failure;
use antiphon_sim::Machine;
use serde_json::{Value, json};

use super::cases::Case;
use super::experiment::{Figures, Setting};
use super::figures;
use super::subjects::Subject;
use crate::named::Named as _;
use crate::sim::report::{row, trace};

/// The figures of a subject in a case.
pub struct Row {
    pub subject: &'static Subject,
    pub case: &'static Case,
    pub workers: usize,
    pub packets: u32,
    figures: Figures,
}

impl Row {
    /// Simulates the subject in the case.
    ///
    /// # Errors
    ///
    /// If the workers deadlock.
    pub fn of(
        setting: &Setting<'_>,
        subject: &'static Subject,
        case: &'static Case,
    ) -> Result<Self, Failure> {
        let figures = subject.carry_out(setting, case);
        let figures = figures.map_err(|stuck| {
            Failure::measured(format!("{}, {}: {stuck}", subject.name, case.name))
        })?;
        let &Setting { workers, packets, .. } = setting;
        Ok(Self { subject, case, workers, packets, figures })
    }

    /// Returns the number of tasks that were run.
    pub const fn tasks(&self) -> u64 {
        self.figures.tasks
    }

    /// Returns packets per second.
    pub fn ops_per_s(&self) -> f64 {
        f64::from(self.packets) * 1e9 / self.figures.span_ns as f64
    }

    /// Returns the latency that this share of tasks does not exceed, in nanoseconds.
    pub fn quantile_ns(&self, share: f64) -> f64 {
        self.figures.latency.quantile(share)
    }

    /// Returns the share of workers' time in which tasks and spawners compute.
    pub fn busy(&self) -> f64 {
        self.figures.worked_ns as f64 / (self.figures.span_ns as f64 * self.workers as f64)
    }

    /// Returns a count per task.
    pub fn per_task(&self, count: impl Fn(&Figures) -> u64) -> f64 {
        count(&self.figures) as f64 / self.tasks() as f64
    }

    /// Returns how often a spawner found no room.
    pub fn retries(&self) -> f64 {
        self.figures.retries as f64
    }

    /// Returns the attempts to steal, per task.
    pub fn attempts_per_task(&self) -> f64 {
        self.per_task(|figures| figures.attempts)
    }

    /// Returns the dissertation's figure, if there is one.
    pub fn published_ops_per_s(&self) -> Option<f64> {
        let known = figures::of(self.case.name, self.subject.name, self.subject.form);
        let here = known.iter().find(|(domains, _)| *domains == self.workers);
        here.map(|(_, mega)| mega * 1e6)
    }

    /// Returns the dissertation's 99th percentile, if there is one.
    pub fn published_p99_ns(&self) -> Option<f64> {
        let Subject { name, form, .. } = *self.subject;
        figures::p99_ns(self.case.name, name, form, self.workers)
    }

    /// Returns the object for scripts.
    pub fn object(&self, machine: &Machine) -> Value {
        let Figures { latency, retries, attempts, hits, counts, .. } = &self.figures;
        let keys = json!({
            "form": self.subject.form.name(), "case": self.case.name, "tasks": self.tasks(),
            "ops_per_s": self.ops_per_s(), "published_ops_per_s": self.published_ops_per_s(),
            "p50_ns": self.quantile_ns(0.5), "p99_ns": self.quantile_ns(0.99),
            "p999_ns": self.quantile_ns(0.999), "p9999_ns": self.quantile_ns(0.9999),
            "published_p99_ns": self.published_p99_ns(), "max_ns": latency.max(),
            "busy": self.busy(), "push_ns": self.per_task(|figures| figures.push_ns),
            "spawner_retries": retries, "steal_attempts": attempts, "steal_hits": hits,
            "remote_transfers_per_task": self.per_task(Figures::remote),
            "local_transfers_per_task": self.per_task(Figures::local),
            "parks": counts.parks, "wakes": counts.wakes, "trace": trace(self.figures.trace),
        });
        row(machine, self.subject.name, self.workers, keys)
    }
}

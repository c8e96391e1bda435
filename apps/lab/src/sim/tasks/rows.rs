//! Rows: figures of a subject in a case, for scripts.
//!
//! | key | what |
//! |---|---|
//! | `ops_per_s` | packets a second, with all tasks that follow them |
//! | `p50_ns` … `max_ns` | of a task, from when it is ready; of an option, from the start |
//! | `busy` | the share of the workers' time that tasks and spawners compute |
//! | `push_ns` | what making a task ready takes, the mean |
//! | `spawner_retries` | how often there was no room |
//! | `steal_attempts`, `steal_hits` | looks into others' queues, and those that had something |
//! | `remote_transfers_per_task`, `local_transfers_per_task` | lines that moved |
//! | `parks`, `wakes` | of workers |
//! | `published_ops_per_s`, `published_p99_ns` | what the dissertation measured, if it is known |

use antiphon_report::failure::Failure;
use antiphon_sim::Machine;
use serde_json::{Map, Value, json};

use super::cases::Case;
use super::experiment::{Figures, Setting};
use super::figures;
use super::subjects::Subject;

/// A subject in a case.
pub struct Row {
    pub subject: &'static Subject,
    pub case: &'static Case,
    pub workers: usize,
    pub packets: u32,
    figures: Figures,
}

impl Row {
    /// Simulates it.
    ///
    /// # Errors
    ///
    /// If workers wait for each other.
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

    /// All that were run.
    pub const fn tasks(&self) -> u64 {
        self.figures.tasks
    }

    /// Packets a second.
    pub fn ops_per_s(&self) -> f64 {
        f64::from(self.packets) * 1e9 / self.figures.span_ns as f64
    }

    /// The time that this share of tasks does not exceed, in nanoseconds.
    pub fn quantile_ns(&self, share: f64) -> f64 {
        self.figures.latency.quantile(share)
    }

    /// The share of workers' time that is the tasks'.
    pub fn busy(&self) -> f64 {
        self.figures.worked_ns as f64 / (self.figures.span_ns as f64 * self.workers as f64)
    }

    /// The number of counted things for each task.
    pub fn per_task(&self, count: impl Fn(&Figures) -> u64) -> f64 {
        count(&self.figures) as f64 / self.tasks() as f64
    }

    /// The dissertation's figure.
    pub fn published_ops_per_s(&self) -> Option<f64> {
        let known = figures::of(self.case.name, self.subject.name, self.subject.form);
        let here = known.iter().find(|(domains, _)| *domains == self.workers);
        here.map(|(_, mega)| mega * 1e6)
    }

    /// The dissertation's figure of the 99th percentile.
    pub fn published_p99_ns(&self) -> Option<f64> {
        let Subject { name, form, .. } = *self.subject;
        figures::p99_ns(self.case.name, name, form, self.workers)
    }

    /// The object for scripts.
    pub fn object(&self, machine: &Machine) -> Value {
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| _ = object.insert(key.to_owned(), value);
        put("model", json!(true));
        put("machine", json!(machine.name));
        put("subject", json!(self.subject.name));
        put("form", json!(self.subject.form.name()));
        put("case", json!(self.case.name));
        put("threads", json!(self.workers));
        put("tasks", json!(self.tasks()));
        put("ops_per_s", json!(self.ops_per_s()));
        put("published_ops_per_s", json!(self.published_ops_per_s()));
        for (key, share) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999)] {
            put(&format!("{key}_ns"), json!(self.quantile_ns(share)));
        }
        put("published_p99_ns", json!(self.published_p99_ns()));
        put("max_ns", json!(self.figures.latency.max()));
        put("busy", json!(self.busy()));
        put("push_ns", json!(self.per_task(|figures| figures.push_ns)));
        put("spawner_retries", json!(self.figures.retries));
        put("steal_attempts", json!(self.figures.attempts));
        put("steal_hits", json!(self.figures.hits));
        put("remote_transfers_per_task", json!(self.per_task(Figures::remote)));
        put("local_transfers_per_task", json!(self.per_task(Figures::local)));
        put("parks", json!(self.figures.counts.parks));
        put("wakes", json!(self.figures.counts.wakes));
        put("trace", json!(format!("{:016x}", self.figures.trace)));
        Value::Object(object)
    }
}

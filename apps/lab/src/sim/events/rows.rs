//! Rows: figures of a mechanism in a case, for scripts.
//!
//! Of all, and in each of `targets`, from before the send until a waiter is told: `min_ns`,
//! `p25_ns`, `p50_ns`, `p75_ns`, `p99_ns`, `mean_ns`, `cdf_ns`. And of all:
//!
//! | key | in | what |
//! |---|---|---|
//! | `sender_ns` | all | what telling takes the sender, the median |
//! | `last_ns` | broadcasts | until the last is told, the median of rounds |
//! | `sigma_ns`, `sigma_cdf_ns` | broadcasts | how far waiters of a round are apart, the median |

use antiphon_report::failure::Failure;
use antiphon_report::stats::{Below, distribution, median, quantile};
use antiphon_sim::Machine;
use serde_json::{Map, Value, json};

use super::cases::Case;
use super::experiment::{Figures, Setting, Target};
use super::subjects::Subject;

/// A mechanism in a case.
pub struct Row {
    pub subject: &'static Subject,
    pub case: Case,
    pub latency: Latency,
    pub sender_ns: Option<f64>,
    pub last_ns: Option<f64>,
    pub sigma_ns: Option<f64>,
    /// The distribution over rounds; nothing unless it is a broadcast.
    pub sigma_cdf: Vec<Below>,
    figures: Figures,
}

/// Quantiles of latencies, all of which are there.
pub struct Latency {
    pub min: f64,
    pub p25: f64,
    pub p50: f64,
    pub p75: f64,
    pub p99: f64,
    pub mean: f64,
    pub cdf: Vec<Below>,
}

impl Latency {
    /// The quantiles of latencies, the least first; there is a first.
    fn of(sorted: &[f64]) -> Self {
        let at = |share| quantile(sorted, share).unwrap_or_default();
        Self {
            min: at(0.0),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p99: at(0.99),
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            cdf: distribution(sorted),
        }
    }

    fn put(&self, object: &mut Map<String, Value>) {
        let Self { min, p25, p50, p75, p99, mean, cdf } = self;
        let keys = [("min", min), ("p25", p25), ("p50", p50), ("p75", p75), ("p99", p99)];
        for (key, ns) in keys.into_iter().chain([("mean", mean)]) {
            object.insert(format!("{key}_ns"), json!(ns));
        }
        object.insert("cdf_ns".to_owned(), Below::object(cdf));
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

impl Row {
    /// Simulates it.
    ///
    /// # Errors
    ///
    /// If a waiter is not woken.
    pub fn of(
        setting: &Setting<'_>,
        subject: &'static Subject,
        case: Case,
    ) -> Result<Self, Failure> {
        let figures = subject.carry_out(setting, case);
        let figures = figures
            .map_err(|stuck| Failure::measured(format!("{}, {case}: {stuck}", subject.name)))?;
        Ok(Self {
            subject,
            case,
            latency: Latency::of(&sorted(&figures.all())),
            sender_ns: median(figures.sender_ns.clone()),
            last_ns: median(figures.last_ns.clone()),
            sigma_ns: median(figures.sigma_ns.clone()),
            sigma_cdf: distribution(&sorted(&figures.sigma_ns)),
            figures,
        })
    }

    /// The object for scripts.
    pub fn object(&self, machine: &Machine) -> Value {
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| _ = object.insert(key.to_owned(), value);
        put("model", json!(true));
        put("machine", json!(machine.name));
        put("subject", json!(self.subject.name));
        put("system", json!(self.subject.system.name()));
        put("case", json!(self.case.to_string()));
        put("threads", json!(self.case.waiters() + 1));
        put("sender_ns", json!(self.sender_ns));
        if let Case::Broadcast(_) = self.case {
            put("last_ns", json!(self.last_ns));
            put("sigma_ns", json!(self.sigma_ns));
            put("sigma_cdf_ns", Below::object(&self.sigma_cdf));
        }
        put("targets", self.targets(machine));
        put("trace", json!(format!("{:016x}", self.figures.trace)));
        self.latency.put(&mut object);
        Value::Object(object)
    }

    fn targets(&self, machine: &Machine) -> Value {
        let target = |target: &Target| {
            let mut object = Map::new();
            object.insert("cpu".to_owned(), json!(target.cpu));
            object.insert("node".to_owned(), json!(machine.socket_of(target.cpu)));
            Latency::of(&sorted(&target.latency_ns)).put(&mut object);
            Value::Object(object)
        };
        self.figures.targets.iter().map(target).collect()
    }
}

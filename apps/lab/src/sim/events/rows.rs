//! Rows: figures of a mechanism in a case, for scripts.
//!
//! For all waiters together, and for each of `targets`, the time from before the send until a
//! waiter is notified: `min_ns`, `p25_ns`, `p50_ns`, `p75_ns`, `p99_ns`, `mean_ns`, `cdf_ns`. In
//! addition, for all:
//!
//! | key | in | what |
//! |---|---|---|
//! | `sender_ns` | all | median time that notifying takes the sender |
//! | `last_ns` | broadcasts | time until the last waiter is notified, median of rounds |
//! | `sigma_ns`, `sigma_cdf_ns` | broadcasts | deviation within a round, median |

use antiphon_report::failure::Failure;
use antiphon_report::stats::{Below, distribution, median, quantile};
use antiphon_sim::{Delivery, Machine, Part};
use serde_json::{Value, json};

use super::cases::Case;
use super::experiment::{Figures, Setting, Target};
use super::subjects::Subject;
use crate::sim::report::{joined, row, trace};

/// The figures of a mechanism in a case.
pub struct Row {
    pub subject: &'static Subject,
    pub case: Case,
    /// How its interrupts were delivered; `None` if it has none.
    pub delivery: Option<Delivery>,
    pub latency: Latency,
    pub sender_ns: Option<f64>,
    pub last_ns: Option<f64>,
    pub sigma_ns: Option<f64>,
    /// Distribution of `sigma_ns` over rounds; empty unless the case is a broadcast.
    pub sigma_cdf: Vec<Below>,
    figures: Figures,
}

/// Quantiles of a non-empty set of latencies.
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
    /// Computes the quantiles of latencies in ascending order, which must not be empty.
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

    fn keys(&self) -> Value {
        json!({
            "min_ns": self.min, "p25_ns": self.p25, "p50_ns": self.p50, "p75_ns": self.p75,
            "p99_ns": self.p99, "mean_ns": self.mean, "cdf_ns": Below::object(&self.cdf),
        })
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

impl Row {
    /// Simulates the mechanism in the case.
    ///
    /// # Errors
    ///
    /// If a waiter is not woken.
    pub fn of(
        setting: &Setting<'_>,
        subject: &'static Subject,
        case: Case,
        delivery: Delivery,
    ) -> Result<Self, Failure> {
        Self::without(setting, subject, case, delivery, None)
    }

    /// The same on a machine without a part of the costs.
    ///
    /// # Errors
    ///
    /// If a waiter is not woken.
    pub fn without(
        setting: &Setting<'_>,
        subject: &'static Subject,
        case: Case,
        delivery: Delivery,
        part: Option<Part>,
    ) -> Result<Self, Failure> {
        let figures = subject.carry_out(setting, case, delivery, part);
        let figures = figures
            .map_err(|stuck| Failure::measured(format!("{}, {case}: {stuck}", subject.name)))?;
        Ok(Self {
            subject,
            case,
            delivery: subject.system.interrupts().then_some(delivery),
            latency: Latency::of(&sorted(&figures.all())),
            sender_ns: median(figures.sender_ns.clone()),
            last_ns: median(figures.last_ns.clone()),
            sigma_ns: median(figures.sigma_ns.clone()),
            sigma_cdf: distribution(&sorted(&figures.sigma_ns)),
            figures,
        })
    }

    /// Returns the name for people: the mechanism, and the delivery unless it is the machine's own.
    pub fn name(&self) -> String {
        match self.delivery {
            None | Some(Delivery::Kernel) => self.subject.name.to_owned(),
            Some(delivery) => format!("{}, {}", self.subject.name, delivery.name()),
        }
    }

    /// Returns the object for scripts.
    pub fn object(&self, machine: &Machine) -> Value {
        let keys = json!({
            "system": self.subject.system.name(), "delivery": self.delivery.map(Delivery::name),
            "case": self.case.to_string(),
            "sender_ns": self.sender_ns, "targets": self.targets(machine),
            "trace": trace(self.figures.trace),
        });
        let broadcast = match self.case {
            Case::Broadcast(_) => json!({
                "last_ns": self.last_ns, "sigma_ns": self.sigma_ns,
                "sigma_cdf_ns": Below::object(&self.sigma_cdf),
            }),
            Case::Unicast(_) => Value::Null,
        };
        let keys = joined(joined(keys, self.latency.keys()), broadcast);
        row(machine, self.subject.name, self.case.waiters() + 1, keys)
    }

    fn targets(&self, machine: &Machine) -> Value {
        let target = |target: &Target| {
            let node = machine.socket_of(target.cpu);
            let latency = Latency::of(&sorted(&target.latency_ns));
            joined(json!({ "cpu": target.cpu, "node": node }), latency.keys())
        };
        self.figures.targets.iter().map(target).collect()
    }
}

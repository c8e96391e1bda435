//! A row of a report, which can be written and read back.

use antiphon_report::table::printable;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::experiment::{Arbitration, Pages};

/// A row.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub head: Head,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Whether no other row of a search beats this one. Only known once all rows are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub front: Option<bool>,
}

/// The conditions of a simulated row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Marks the row as simulated, not measured.
    pub model: bool,
    pub machine: String,
    pub arbitration: Arbitration,
    pub pages: Pages,
    pub seed: u64,
    pub subject: String,
    pub case: String,
    pub threads: usize,
}

/// The result of a row.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    Figures(Box<Figures>),
    /// The lock could not make progress.
    Failed(Failed),
    /// The lock does not support the case.
    NotHere(NotHere),
}

/// Why a lock could not make progress.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failed {
    pub failed: String,
}

/// Why a lock does not support a case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NotHere {
    pub not_here: String,
}

/// Figures of [`super::experiment::Measured`]; `None` for a quotient whose divisor is 0.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    pub servers: usize,
    pub ops_per_s: f64,
    pub ops_per_s_of_seeds: Range,
    pub jain: Option<f64>,
    pub busier_half: Option<f64>,
    pub threads_in_1000: Option<f64>,
    pub remote_transfers_per_op: Option<f64>,
    pub local_transfers_per_op: Option<f64>,
    pub atomics_per_op: Option<f64>,
    pub cpu_ns_per_op: Option<f64>,
    pub stays_on_socket: Option<f64>,
    pub handover_ns: Option<f64>,
    pub handovers_with_wake: Option<f64>,
    pub wait_ns: Waits,
    pub longest_wait_ns: u64,
    pub failed_tries_per_op: Option<f64>,
    pub parks: u64,
    pub wakes: u64,
    pub wakes_per_op: Option<f64>,
    pub switches: u64,
    pub preemptions: u64,
    pub locks: usize,
    pub lock_bytes: usize,
    /// Hash of the whole run, in sixteen digits.
    pub trace: String,
}

/// Minimum and maximum over several seeds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    pub least: f64,
    pub most: f64,
    pub seeds: usize,
}

/// Time of acquisitions.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waits {
    pub p50: Option<u64>,
    pub p99: Option<u64>,
}

/// Upper bound of any rate, time or quotient of a simulation of ten seconds.
const MOST: f64 = 1e15;

impl Row {
    /// Parses a row that was printed as `value`.
    ///
    /// # Errors
    ///
    /// If it can't be a printed row: a key is missing or unknown, or a figure is out of range.
    pub fn read(value: &Value) -> Result<Self, String> {
        let has = |key| value.get(key).is_some();
        let outcome = if has("failed") {
            Failed::deserialize(value).map(Outcome::Failed)
        } else if has("not_here") {
            NotHere::deserialize(value).map(Outcome::NotHere)
        } else {
            Figures::deserialize(value).map(|figures| Outcome::Figures(Box::new(figures)))
        };
        let row = (|| {
            let front = value.get("front").map(bool::deserialize).transpose()?;
            Ok(Self { head: Head::deserialize(value)?, outcome: outcome?, front })
        })();
        let row = row.map_err(|error: serde_json::Error| error.to_string())?;
        let again = serde_json::to_value(&row).map_err(|error| error.to_string())?;
        if let Some(key) = odd_key(value, &again) {
            return Err(format!("{key:?}: a row has all of its keys, and no others"));
        }
        row.check()?;
        Ok(row)
    }

    fn check(&self) -> Result<(), String> {
        match &self.outcome {
            Outcome::Figures(figures) => figures.check(),
            Outcome::Failed(Failed { failed: why })
            | Outcome::NotHere(NotHere { not_here: why }) => {
                let shown = !why.is_empty() && printable(why) == *why;
                shown.then_some(()).ok_or_else(|| format!("{why:?} is not a known reason"))
            }
        }
    }
}

impl Figures {
    fn check(&self) -> Result<(), String> {
        let Range { least, most, .. } = self.ops_per_s_of_seeds;
        let figures = [
            ("ops_per_s", Some(self.ops_per_s), MOST),
            ("ops_per_s_of_seeds: least", Some(least), self.ops_per_s),
            ("ops_per_s_of_seeds: most", Some(most), MOST),
            ("jain", self.jain, 1.0),
            ("busier_half", self.busier_half, 1.0),
            ("threads_in_1000", self.threads_in_1000, 1000.0),
            ("remote_transfers_per_op", self.remote_transfers_per_op, MOST),
            ("local_transfers_per_op", self.local_transfers_per_op, MOST),
            ("atomics_per_op", self.atomics_per_op, MOST),
            ("cpu_ns_per_op", self.cpu_ns_per_op, MOST),
            ("stays_on_socket", self.stays_on_socket, 1.0),
            ("handover_ns", self.handover_ns, MOST),
            ("handovers_with_wake", self.handovers_with_wake, 1.0),
            ("failed_tries_per_op", self.failed_tries_per_op, MOST),
            ("wakes_per_op", self.wakes_per_op, MOST),
        ];
        for (key, figure, most) in figures {
            if let Some(figure) = figure.filter(|figure| !(0.0..=most).contains(figure)) {
                return Err(format!("{key}: {figure:?} is not from 0 to {most:?}"));
            }
        }
        if self.ops_per_s > most {
            return Err(format!("ops_per_s_of_seeds: most: {most:?} is less than ops_per_s"));
        }
        let digits = self.trace.bytes().filter(u8::is_ascii_hexdigit).count();
        if (digits, self.trace.len()) != (16, 16) {
            return Err("trace: not a hash in sixteen digits".to_owned());
        }
        Ok(())
    }
}

/// Returns a key that only one of the two objects has.
fn odd_key<'a>(one: &'a Value, other: &'a Value) -> Option<&'a String> {
    let only = |one: &'a Value, other: &Value| {
        let mut keys = one.as_object()?.keys();
        keys.find(|key| other.get(key.as_str()).is_none())
    };
    only(one, other).or_else(|| only(other, one))
}

//! Document 003, cooperative polling: §5, simulated on one core. `bench loop` and `lab play`
//! measure the same on the machine at hand.

pub mod fairness;
pub mod frames;
pub mod misbehaves;
pub mod one_group;
pub mod overhead;
pub mod periodic;
pub mod tardiness;

use antiphon_report::page::bars::Bar;
use antiphon_report::stats::jain;

use super::model::{Heard, Model, Players};
use crate::sim::event_loop::subjects::Subject;

/// Simulated time of a run, in seconds.
const SECONDS: f64 = 20.0;

/// Eight players that want about a seventh of a core each, beside four threads that only compute.
const EIGHT: Players =
    Players { case: "each", subject: Subject::Coop, players: 8, hogs: 4, round_us: 1_000 };

/// A system that knows nothing of timers, as CFS.
const SYSTEM: Players = Players { subject: Subject::Alone, ..EIGHT };
/// The players of one group.
const GROUP: Players = Players { case: "one", ..EIGHT };

fn conditions(model: &Model, what: &str) -> String {
    format!("one core of 8s-192c, {what}, seed {}", model.seed())
}

/// Bars of a figure of each player.
fn bars(group: &str, values: &[f64], about: &str) -> Vec<Bar> {
    let bar = |(nth, value): (usize, &f64)| Bar {
        group: group.to_owned(),
        name: format!("player {nth}"),
        value: Some(*value),
        about: about.to_owned(),
    };
    values.iter().enumerate().map(bar).collect()
}

/// Jain's index of figures of players.
fn fairness(values: &[f64]) -> f64 {
    jain(values.iter().map(|value| (value * 1e6).round() as u64)).unwrap_or(f64::NAN)
}

/// The value that a share of ascending values does not exceed; NaN without values.
fn below(sorted: &[f64], share: f64) -> f64 {
    antiphon_report::stats::quantile(sorted, share).unwrap_or(f64::NAN)
}

/// The tardiness of players that behave, in microseconds.
fn late(heard: &Heard) -> Vec<f64> {
    heard.late_us(false)
}

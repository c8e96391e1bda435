//! The values of a row of a lock: medians, quartiles and ratios; and the geometric means of rows.
//!
//! Each cell has one leading figure: nanoseconds of a pair (`ns_per_op`, less is better), critical
//! sections per second (`ops_per_s`, more is better), or the time of a given number of them
//! (`wall_ns`, less is better; `ratio_cpu` is the ratio of their CPU time, and of that of long
//! critical sections). `ratio` is ours over the first peer's, taken in each repetition, and then
//! the median: a disturbance of the machine for a second affects both. `ratio_best` is the same
//! ratio to the best of the locks that programs use by default ([`Family::common`], as far as they
//! were measured).

use antiphon_report::stats::{geometric_mean, medians};
use serde::Serialize;
use serde_json::{Value, json};

use super::measure::{Contended, Figures, Side, Spent};
use super::plan::{Cell, Plan};
use super::subjects::Family;
use crate::bench::neighbours::Load;
use crate::bench::ratio::{Better, Ratio};
use crate::bench::report::{self, Beside, Lead};

/// The results of one lock in one cell.
pub type Row = report::Row<Cell, Summary>;

/// The values of a row.
#[derive(Serialize)]
pub struct Summary {
    /// The leading figure.
    #[serde(flatten)]
    pub lead: Lead,
    /// Medians of all other figures of a contended cell.
    #[serde(flatten)]
    pub contended: Option<Contended>,
    /// Measured time of a repetition of a contended cell, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The longest waits of all repetitions of a contended cell.
    #[serde(flatten)]
    pub worst: Option<Worst>,
    /// Medians of the costs of a given number of critical sections.
    #[serde(flatten)]
    pub spent: Option<Spent>,
    /// The ratio to the first peer.
    #[serde(flatten)]
    pub ratio: Ratio,
    /// The ratio of the CPU time of a given number of critical sections, or of each long one.
    #[serde(flatten)]
    pub ratio_cpu: Option<Ratio>,
    /// The ratio to the best of the common mutexes.
    pub ratio_best: Option<f64>,
    /// Name of the best common lock.
    pub best: Option<&'static str>,
}

/// The longest waits of all repetitions, in nanoseconds.
#[derive(Clone, Copy, Serialize)]
pub struct Worst {
    /// The longest wait of all.
    #[serde(rename = "worst_wait_ns")]
    pub wait: Option<f64>,
    /// The longest wait of a reader.
    #[serde(rename = "worst_read_wait_ns", skip_serializing_if = "Option::is_none")]
    pub reader: Option<f64>,
    /// The longest wait of a writer.
    #[serde(rename = "worst_write_wait_ns", skip_serializing_if = "Option::is_none")]
    pub writer: Option<f64>,
}

impl Worst {
    fn of(repetitions: &[&Contended]) -> Self {
        let worst = |side: fn(&Contended) -> Option<&Side>| {
            let sides = repetitions.iter().filter_map(|one| side(one));
            sides.map(|side| side.longest_wait_ns).reduce(f64::max)
        };
        Self {
            wait: worst(|one| Some(&one.all)),
            reader: worst(|one| one.readers.as_ref()),
            writer: worst(|one| one.writers.as_ref()),
        }
    }
}

impl Summary {
    /// Summarises the repetitions of a lock of `plan`.
    pub fn of(plan: &Plan, one: &Beside<'_, Cell, Figures>) -> Self {
        let Cell { load, case, .. } = one.cell();
        let contended: Vec<_> = one.figures().iter().filter_map(contended).collect();
        let spent: Vec<_> = one.figures().iter().filter_map(spent).collect();
        let compares_cpu = !spent.is_empty() || case.is_long();
        let (key, better) = match case.contended() {
            true => ("ops_per_s", Better::More),
            false if spent.is_empty() => ("ns_per_op", Better::Less),
            false => ("wall_ns", Better::Less),
        };
        let best = one.best(plan.family.common(), better, lead);
        let ratio_best = best.and_then(|best| one.ratio_to(Some(best), "", lead).median());
        Self {
            lead: one.lead(key, lead),
            seconds: case.contended().then(|| plan.seconds_of(load)),
            worst: case.contended().then(|| Worst::of(&contended)),
            contended: medians(contended.iter().copied()),
            spent: medians(&spent),
            ratio: one.ratio("ratio", lead),
            ratio_cpu: compares_cpu.then(|| one.ratio("ratio_cpu", cpu_ns)),
            ratio_best,
            best: best.filter(|_| ratio_best.is_some()).map(|best| best.subject),
        }
    }
}

fn lead(figures: &Figures) -> f64 {
    match figures {
        Figures::Uncontended { ns_per_op } => *ns_per_op,
        Figures::Contended(contended) => contended.all.ops_per_s,
        Figures::Justine(spent) => spent.wall_ns,
    }
}

fn contended(figures: &Figures) -> Option<&Contended> {
    if let Figures::Contended(contended) = figures { Some(contended) } else { None }
}

fn spent(figures: &Figures) -> Option<Spent> {
    if let Figures::Justine(spent) = figures { Some(*spent) } else { None }
}

/// Returns the CPU time of all threads that [`Summary::ratio_cpu`] compares.
fn cpu_ns(figures: &Figures) -> Option<f64> {
    match figures {
        Figures::Justine(spent) => Some(spent.cpu_ns()),
        Figures::Contended(one) => Some(one.cpu_ns_per_op),
        Figures::Uncontended { .. } => None,
    }
}

/// Means over the cells of one lock under one load that are judged by the work done.
pub struct Means {
    /// The lock.
    pub subject: &'static str,
    /// The load.
    pub load: Load,
    /// Number of cells with a ratio.
    pub cells: usize,
    /// Geometric mean of `ratio`.
    pub mean: Option<f64>,
    /// Geometric mean of `ratio_best`.
    pub mean_best: Option<f64>,
    /// The worst `ratio`, and its cell.
    pub least: Option<(f64, Cell)>,
}

/// Returns the means of rows, by load and by lock of ours.
pub fn means(plan: &Plan, rows: &[Row]) -> Vec<Means> {
    let mut loads: Vec<_> = plan.cells.iter().map(|cell| cell.load).collect();
    loads.dedup();
    let pairs =
        loads.iter().flat_map(|load| plan.rounds.subjects.iter().map(move |lock| (*load, *lock)));
    pairs
        .map(|(load, subject)| {
            let cells = || {
                rows.iter().filter(move |row| {
                    let same = row.subject == subject && row.cell.load == load;
                    same && row.cell.case.is_judged_by_work()
                })
            };
            let ratios: Vec<_> =
                cells().filter_map(|row| Some((row.summary.ratio.median()?, row.cell))).collect();
            let best: Vec<_> = cells().filter_map(|row| row.summary.ratio_best).collect();
            let medians: Vec<_> = ratios.iter().map(|&(ratio, _)| ratio).collect();
            Means {
                subject,
                load,
                cells: ratios.len(),
                mean: geometric_mean(&medians),
                mean_best: geometric_mean(&best),
                least: ratios.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)),
            }
        })
        .filter(|means| means.cells > 0)
        .collect()
}

impl Means {
    /// Returns the object in JSON.
    pub fn json(&self, family: Family, peer: Option<&str>) -> Value {
        json!({
            "subject": self.subject, "peer": peer, "load": self.load.name(),
            "cells": self.cells, "geometric_mean": self.mean,
            "geometric_mean_best": self.mean_best, "best_of": family.common(),
            "least": self.least.map(|(ratio, _)| ratio),
            "least_at": self.least.map(|(_, cell)| cell.to_string()),
        })
    }
}

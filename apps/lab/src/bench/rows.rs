//! From repetitions to rows: medians, quartiles, ratios, and their geometric means.
//!
//! Each cell has one leading figure: nanoseconds of a pair (`ns_per_op`, less is better) or
//! critical sections a second (`ops_per_s`, more is better), or the time that a given number of
//! them takes (`wall_ns`, less is better; `ratio_cpu` is of their CPU time, and of that of long
//! critical sections). `ratio` is ours over
//! the first peer's, taken in each repetition and then the median of those: what disturbs the
//! machine for a second disturbs both. `ratio_best` is the same against the best of the locks that
//! programs have without asking ([`Family::common`], as far as they were measured).

use antiphon_report::stats::{Quartiles, geometric_mean, median, quartiles};
use serde_json::{Map, Value, json};

use super::measure::{Contended, Figures, Side, Spent};
use super::neighbours::Load;
use super::plan::{Cell, Measured, Plan};
use super::ratio::Ratio;
use super::rounds::{Trouble, mean};
use super::subjects::Family;
use super::waits::{self, Verdict};

/// The results of one lock in one cell.
pub struct Row {
    /// The lock.
    pub subject: &'static str,
    /// Whether it is one of ours.
    pub ours: bool,
    /// The conditions.
    pub cell: Cell,
    /// The leading figure.
    pub lead: Option<Quartiles>,
    /// Medians of everything else that a contended cell has.
    pub contended: Option<Contended>,
    /// Medians of the time of a given number of critical sections.
    pub spent: Option<Spent>,
    /// The ratio of the CPU time of those, or of each critical section, to the first peer.
    pub ratio_cpu: Option<Ratio>,
    /// How long a repetition measured.
    pub seconds: f64,
    /// The longest waits of all repetitions.
    pub worst: Worst,
    /// The ratio to the first peer.
    pub ratio: Option<Ratio>,
    /// The ratio to the best of the common mutexes, and which that is.
    pub ratio_best: Option<(f64, &'static str)>,
    /// Repetitions that count.
    pub repetitions: usize,
    /// CPUs that others used meanwhile, on average; not counted on a noisy machine.
    pub others_cpus: Option<f64>,
    /// Why there are no figures, or fewer.
    pub trouble: Option<Trouble>,
}

/// The longest waits of all repetitions, in nanoseconds.
#[derive(Clone, Copy)]
pub struct Worst {
    /// The longest wait of all.
    pub wait: Option<f64>,
    /// The longest wait of a reader.
    pub reader: Option<f64>,
    /// The longest wait of a writer.
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

/// The cells of one lock under one load that are judged by the work done, as one number.
pub struct Summary {
    /// The lock.
    pub subject: &'static str,
    /// The load.
    pub load: Load,
    /// Cells with a ratio.
    pub cells: usize,
    /// Geometric mean of `ratio`.
    pub mean: Option<f64>,
    /// Geometric mean of `ratio_best`.
    pub mean_best: Option<f64>,
    /// The worst `ratio`, and where.
    pub least: Option<(f64, Cell)>,
}

/// Everything that is printed.
pub struct Report {
    /// The first peer, to which ratios are.
    pub reference: Option<&'static str>,
    /// Rows in the order of cells.
    pub rows: Vec<Row>,
    /// Summaries by load and lock of ours.
    pub summaries: Vec<Summary>,
    /// Whether ours made any thread wait too long; by load, lock and rule.
    pub waits: Vec<Verdict>,
    family: Family,
    seconds: Option<f64>,
    seed: u64,
}

/// Makes rows of the measurements of `plan`.
pub fn put_together(plan: &Plan, measured: &[Measured]) -> Report {
    let reference = plan.rounds.peers.first().copied();
    let rows: Vec<_> = measured
        .iter()
        .map(|lock| {
            let cell: Vec<_> = measured.iter().filter(|other| other.cell == lock.cell).collect();
            row(plan, lock, &cell, reference)
        })
        .collect();
    let summaries = summaries(plan, &rows);
    let waits = reference.map(|peer| waits::verdicts(&rows, &plan.rounds.subjects, peer));
    let waits = waits.unwrap_or_default();
    let (family, seed) = (plan.family, plan.rounds.seed);
    let seconds = plan.cells.iter().map(|cell| plan.seconds_of(cell.load)).reduce(f64::min);
    Report { reference, rows, summaries, waits, family, seconds, seed }
}

fn row(plan: &Plan, lock: &Measured, cell: &[&Measured], reference: Option<&'static str>) -> Row {
    let named = |name: &str| cell.iter().find(|other| other.subject == name).copied();
    let leads = leads(lock);
    let contended: Vec<_> = lock.figures.iter().filter_map(contended).collect();
    let peer = reference.and_then(named);
    Row {
        subject: lock.subject,
        ours: plan.rounds.subjects.contains(&lock.subject),
        cell: lock.cell,
        worst: Worst::of(&contended),
        contended: Contended::medians(&contended),
        spent: Spent::medians(&spent(lock)),
        ratio_cpu: peer.and_then(|peer| {
            let [ours, theirs] = [lock, peer].map(|of| cpu_ns(of).into_iter());
            Ratio::of(ours.zip(theirs))
        }),
        seconds: plan.seconds_of(lock.cell.load),
        ratio: peer.and_then(|peer| ratio(lock, peer)),
        ratio_best: best(plan.family, cell, lock.cell)
            .and_then(|peer| Some((ratio(lock, peer)?.of.median, peer.subject))),
        lead: quartiles(leads),
        repetitions: lock.figures.len(),
        others_cpus: lock.others_cpus(),
        trouble: lock.trouble.clone(),
    }
}

/// The best of the common locks of a cell.
fn best<'a>(family: Family, cell: &[&'a Measured], of: Cell) -> Option<&'a Measured> {
    let common = cell.iter().filter(|lock| family.common().contains(&lock.subject));
    let judged = common.filter_map(|lock| Some((median(leads(lock))?, *lock)));
    let better = |a: &(f64, &Measured), b: &(f64, &Measured)| a.0.total_cmp(&b.0);
    let best = if of.case.contended() { judged.max_by(better) } else { judged.min_by(better) };
    best.map(|(_, lock)| lock)
}

fn lead(figures: &Figures) -> f64 {
    match figures {
        Figures::Uncontended { ns_per_op } => *ns_per_op,
        Figures::Contended(contended) => contended.all.ops_per_s,
        Figures::Justine(spent) => spent.wall_ns,
    }
}

fn leads(lock: &Measured) -> Vec<f64> {
    lock.figures.iter().map(lead).collect()
}

fn ratio(lock: &Measured, peer: &Measured) -> Option<Ratio> {
    Ratio::of(leads(lock).into_iter().zip(leads(peer)))
}

fn contended(figures: &Figures) -> Option<&Contended> {
    if let Figures::Contended(contended) = figures { Some(contended) } else { None }
}

fn spent(lock: &Measured) -> Vec<Spent> {
    let of = |figures: &Figures| match figures {
        Figures::Justine(spent) => Some(*spent),
        _ => None,
    };
    lock.figures.iter().filter_map(of).collect()
}

/// CPU time of all threads, for what [`Row::ratio_cpu`] is of.
fn cpu_ns(lock: &Measured) -> Vec<f64> {
    let of = |figures: &Figures| match figures {
        Figures::Justine(spent) => Some(spent.cpu_ns()),
        Figures::Contended(one) => Some(one.cpu_ns_per_op),
        Figures::Uncontended { .. } => None,
    };
    lock.figures.iter().filter_map(of).collect()
}

fn summaries(plan: &Plan, rows: &[Row]) -> Vec<Summary> {
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
                cells().filter_map(|row| Some((row.ratio?.of.median, row.cell))).collect();
            let best: Vec<_> = cells().filter_map(|row| Some(row.ratio_best?.0)).collect();
            let medians: Vec<_> = ratios.iter().map(|&(ratio, _)| ratio).collect();
            Summary {
                subject,
                load,
                cells: ratios.len(),
                mean: geometric_mean(&medians),
                mean_best: geometric_mean(&best),
                least: ratios.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)),
            }
        })
        .filter(|summary| summary.cells > 0)
        .collect()
}

impl Report {
    /// The failures, in one line; a lock that this machine can't have is none.
    pub fn trouble(&self) -> Option<String> {
        Trouble::failures(self.rows.iter().filter_map(|row| row.trouble.as_ref()))
    }

    /// CPUs that others used on average while the machine was meant to be idle.
    pub fn others_cpus(&self) -> Option<f64> {
        mean(self.rows.iter().filter_map(|row| row.others_cpus))
    }

    /// The body of the JSON report.
    pub fn json(&self) -> Value {
        let rows = self.values();
        let summary: Vec<_> = self
            .summaries
            .iter()
            .map(|one| {
                json!({
                    "subject": one.subject, "peer": self.reference, "load": one.load.name(),
                    "cells": one.cells, "geometric_mean": one.mean,
                    "geometric_mean_best": one.mean_best, "best_of": self.family.common(),
                    "least": one.least.map(|(ratio, _)| ratio),
                    "least_at": one.least.map(|(_, cell)| cell.to_string()),
                })
            })
            .collect();
        let waits: Vec<_> = self.waits.iter().map(|one| one.json(self.reference)).collect();
        json!({
            "rows": rows, "summary": summary, "waits": waits,
            "seconds": self.seconds, "seed": self.seed,
        })
    }

    /// The rows as JSON has them.
    pub fn values(&self) -> Vec<Value> {
        self.rows.iter().map(|row| self.row(row)).collect()
    }

    fn row(&self, row: &Row) -> Value {
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| _ = object.insert(key.to_owned(), value);
        put("subject", json!(row.subject));
        put("peer", json!(self.reference));
        put("ours", json!(row.ours));
        put("case", json!(row.cell.case.name()));
        if let Some(reads) = row.cell.reads {
            put("reads", json!(reads));
        }
        put("threads", json!(row.cell.threads));
        put("load", json!(row.cell.load.name()));
        put("repetitions", json!(row.repetitions));
        match (&row.trouble, &row.spent) {
            (Some(trouble), _) => {
                let (key, what) = trouble.json();
                put(key, json!(what));
                return Value::Object(object);
            }
            (None, Some(spent)) => {
                put("wall_ns", json!(spent.wall_ns));
                put("user_ns", json!(spent.user_ns));
                put("system_ns", json!(spent.system_ns));
            }
            (None, None) if !row.cell.case.contended() => {
                put("ns_per_op", json!(row.lead.map(|lead| lead.median)));
            }
            (None, None) => {
                put("seconds", json!(row.seconds));
                if let Ok(Value::Object(figures)) = serde_json::to_value(&row.contended) {
                    figures.into_iter().for_each(|(key, value)| put(&key, value));
                }
                put("worst_wait_ns", json!(row.worst.wait));
                for (key, worst) in [
                    ("worst_read_wait_ns", row.worst.reader),
                    ("worst_write_wait_ns", row.worst.writer),
                ] {
                    if let Some(worst) = worst {
                        put(key, json!(worst));
                    }
                }
            }
        }
        put("others_cpus", json!(row.others_cpus));
        put("p25", json!(row.lead.map(|lead| lead.p25)));
        put("p75", json!(row.lead.map(|lead| lead.p75)));
        put("ratio_best", json!(row.ratio_best.map(|(ratio, _)| ratio)));
        put("best", json!(row.ratio_best.map(|(_, name)| name)));
        Ratio::put(row.ratio, "ratio", &mut object);
        if row.spent.is_some() || row.cell.case.is_long() {
            Ratio::put(row.ratio_cpu, "ratio_cpu", &mut object);
        }
        Value::Object(object)
    }
}

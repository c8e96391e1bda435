//! The values of a row of a pool, and its columns. There is a row for each subject in each cell,
//! and in each step of a ramp. `ratio` is the ratio of tasks per second (in a step of the ramp: of
//! packets done in time); `ratio_p50`, `ratio_p99` and `ratio_cpu` are those of the other leading
//! figures.

use antiphon_report::stats::medians;
use antiphon_report::table::{Cell as Field, duration, si};
use serde::Serialize;
use serde_json::{Value, json};

use super::figures::{Counted, Figures, Latencies};
use crate::bench::columns::{Columns, named};
use crate::bench::ratio::Better::{Less, More};
use crate::bench::ratio::Ratio;
use crate::bench::report::{Beside, Lead, Row, failures, unmeasured};
use crate::bench::rounds::Cell;

/// The values of a row.
#[derive(Serialize)]
pub struct Summary {
    /// Step of the ramp, as a multiple of the capacity.
    #[serde(skip)]
    pub part: Option<f64>,
    /// Tasks per second; in a step of the ramp, packets per second that were done in time.
    #[serde(flatten)]
    pub rate: Lead,
    /// CPU time per task, in microseconds.
    pub cpu_us_per_task: Option<f64>,
    /// Medians of the latencies of each repetition.
    #[serde(rename = "latency_ns", serialize_with = "Latencies::report")]
    pub latency: Latencies,
    /// Additional values of a step of the ramp.
    #[serde(flatten)]
    pub step: Option<Step>,
    /// Counts of our pools.
    #[serde(flatten)]
    pub counts: Counts,
    /// The ratio of the leading figure.
    #[serde(flatten)]
    pub ratio: Ratio,
    /// The ratio of the median latency.
    #[serde(flatten)]
    pub ratio_p50: Ratio,
    /// The ratio of the 99th percentile.
    #[serde(flatten)]
    pub ratio_p99: Ratio,
    /// The ratio of CPU time.
    #[serde(flatten)]
    pub ratio_cpu: Ratio,
}

/// Additional values of a step of the ramp.
#[derive(Serialize)]
pub struct Step {
    offered_per_s: f64,
    backlog: f64,
}

/// Medians of the counts of our pools.
#[derive(Serialize)]
pub struct Counts {
    spawner_retries: Option<f64>,
    steal_attempts: Option<f64>,
    steal_hits: Option<f64>,
}

/// Summarises a subject: one summary, or one for each of these steps of a ramp.
pub fn summaries<C: Cell>(one: &Beside<'_, C, Figures>, steps: &'static [f64]) -> Vec<Summary> {
    (0..steps.len().max(1)).map(|step| summary(one, step, steps.get(step).copied())).collect()
}

fn summary<C: Cell>(one: &Beside<'_, C, Figures>, step: usize, part: Option<f64>) -> Summary {
    let seen = |figures: &Figures| figures.steps.get(step).cloned();
    let rate = |figures: &Figures| match figures.steps.len() {
        ..2 => Some(figures.tasks_per_s),
        _ => seen(figures).map(|step| step.goodput_per_s),
    };
    let cpu = |figures: &Figures| figures.cpu_us_per_task;
    let counted = |of: fn(&Counted) -> u64| {
        one.median(|figures| figures.counted.as_ref().map(|counted| of(counted) as f64))
    };
    let latency: Latencies =
        medians(one.figures().iter().filter_map(|it| it.steps.get(step))).unwrap_or_default();
    let Latencies { offered_per_s, backlog, .. } = latency;
    Summary {
        part,
        rate: one.lead(if part.is_some() { "goodput_per_s" } else { "tasks_per_s" }, rate),
        cpu_us_per_task: one.median(cpu),
        latency,
        step: part.map(|_| Step { offered_per_s, backlog }),
        counts: Counts {
            spawner_retries: counted(|counted| counted.spawner_retries),
            steal_attempts: counted(|counted| counted.steal_attempts),
            steal_hits: counted(|counted| counted.steal_hits),
        },
        ratio: one.ratio("ratio", rate),
        ratio_p50: one.ratio("ratio_p50", |figures| seen(figures).map(|step| step.p50)),
        ratio_p99: one.ratio("ratio_p99", |figures| seen(figures).map(|step| step.p99)),
        ratio_cpu: one.ratio("ratio_cpu", cpu),
    }
}

/// Returns the keys of a row's conditions: those of its cell, the policy, and the step of the ramp.
pub fn conditions<C: Serialize>(row: &Row<C, Summary>) -> Value {
    let mut keys = json!(row.cell);
    keys["policy"] = row.ours.then_some(row.subject).into();
    if let Some(part) = row.summary.part {
        keys["of_capacity"] = part.into();
    }
    keys
}

/// Returns the columns of a table.
pub fn columns<C>(rows: &[Row<C, Summary>]) -> Columns<C, Summary> {
    let is_ramp = rows[0].summary.part.is_some();
    let columns = Columns::of(rows)
        .condition("subject", |row| {
            let step = row.summary.part.map_or(String::new(), |part| format!(" at {part}×"));
            named(format!("{}{step}", row.subject), row.ours)
        })
        .quartiles(if is_ramp { ">done in time /s" } else { ">tasks/s" }, si, |of| of.rate.of)
        .ratio(More, |of| of.ratio)
        .time(">p50", |of| of.latency.p50)
        .time(">p99", |of| of.latency.p99)
        .time(">p99.9", |of| of.latency.p999)
        .time(">p99.99", |of| of.latency.p9999)
        .number(">CPU/task", |us| duration(us * 1e3), |of| of.cpu_us_per_task)
        .ratio(Less, |of| of.ratio_cpu);
    if is_ramp {
        return columns
            .number(">due /s", si, |of| of.latency.offered_per_s)
            .number(">backlog", si, |of| of.latency.backlog)
            .field("", |_| Field::text(""));
    }
    columns
        .number(">no room", si, |of| of.counts.spawner_retries)
        .number(">looks", si, |of| of.counts.steal_attempts)
        .number(">steals", si, |of| of.counts.steal_hits)
}

/// The explanation below the tables.
pub const ABOUT: &str = "\
Medians of repetitions; a ratio is the median of paired ratios. CPU is that of all threads but for
what spawners waited. No room: tasks that were run at once for want of it.
";

/// Returns the failures as one line. Subjects that this machine lacks count as failures only if
/// nothing else was measured.
pub fn trouble<C>(rows: &[Row<C, Summary>]) -> Option<String> {
    failures(rows).or_else(|| {
        let [_, how, why] = unmeasured(rows)?;
        Some(format!("nothing was measured: {how}: {why}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::neighbours::Load;
    use crate::bench::rounds::{Measured, Rounds};
    use std::fmt;

    const STEPS: [f64; 6] = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0];

    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Place;

    impl Cell for Place {
        fn load(&self) -> Load {
            Load::Idle
        }
    }

    impl fmt::Display for Place {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("place")
        }
    }

    fn measured(subject: &'static str, steps: usize, rates: &[f64]) -> Measured<Place, Figures> {
        let latencies = |step: usize| Latencies {
            p99: 1e9 / (step + 1) as f64,
            goodput_per_s: 10.0 * (step + 1) as f64,
            ..Latencies::default()
        };
        let figures = |&tasks_per_s: &f64| Figures {
            tasks_per_s,
            cpu_us_per_task: 1e6 / tasks_per_s,
            steps: (0..steps).map(latencies).collect(),
            counted: None,
        };
        Measured::of(Place, subject, rates.iter().map(figures).collect())
    }

    fn rows(steps: &'static [f64]) -> Vec<Row<Place, Summary>> {
        let rounds =
            Rounds { subjects: vec!["lifo/steal-half"], peers: vec!["loop"], ..Rounds::default() };
        let all = [
            measured("lifo/steal-half", steps.len().max(1), &[30.0, 20.0, 40.0]),
            measured("loop", steps.len().max(1), &[10.0, 10.0, 20.0]),
        ];
        Beside::all(&rounds, &all)
            .flat_map(|one| summaries(&one, steps).into_iter().map(move |it| one.row(it)))
            .collect()
    }

    #[test]
    fn a_row_has_medians_and_paired_ratios_to_the_first_peer() {
        let rows = rows(&[]);
        let Summary { rate, part, ratio, ratio_p50, ratio_p99, ratio_cpu, .. } = &rows[0].summary;
        assert_eq!(rate.of.map(|rate| (rate.p25, rate.median)), Some((25.0, 30.0)));
        assert_eq!((rows[0].repetitions, rows[0].ours, *part), (3, true, None));
        let ratios = [ratio, ratio_p50, ratio_p99, ratio_cpu].map(Ratio::median);
        assert_eq!(ratios, [Some(2.0), None, Some(1.0), Some(0.5)]);
        assert!(!rows[1].ours && trouble(&rows).is_none());
    }

    #[test]
    fn a_ramp_has_a_row_for_each_step_that_leads_with_what_was_done_in_time() {
        let rows = rows(&STEPS);
        assert_eq!(rows.len(), 12);
        let parts: Vec<_> = rows.iter().take(6).filter_map(|row| row.summary.part).collect();
        assert_eq!(parts, STEPS);
        let good: Vec<_> = rows.iter().filter_map(|row| row.summary.rate.median()).collect();
        assert_eq!((good[0], good[5]), (10.0, 60.0));
    }
}

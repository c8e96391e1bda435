//! Rules for waits, so that no lock is fast by starving threads; each cell is compared with the
//! first peer's figures in the same cell.
//!
//! | rule | of |
//! |---|---|
//! | at most twice the peer's | the median and the 99th percentile of waits at a random instant |
//! | at most twice the peer's | the longest wait |
//! | at most 0.05 below the peer's | Jain's index over windows of 10 ms |
//!
//! All figures are medians of repetitions, as in the tables. Cells that aren't judged by the work
//! done are left out: where readers never leave, the peer may serve no writer at all.

use antiphon_report::table::duration;
use serde_json::{Value, json};

use super::measure::Contended;
use super::plan::Cell;
use super::rows::Row;
use crate::bench::neighbours::Load;

/// Factor by which a wait may be longer than the peer's.
const LONGER: f64 = 2.0;
/// Amount by which Jain's index may be below the peer's.
const LESS_EVEN: f64 = 0.05;

/// The figure that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The median of the waits at a random instant.
    Median,
    /// The 99th percentile of the waits at a random instant.
    Late,
    /// The longest wait.
    Longest,
    /// Jain's index over 10 ms.
    Even,
}

/// A cell that breaks a rule, with our figure and the peer's.
pub struct Miss {
    /// The conditions.
    pub cell: Cell,
    /// The figure of our lock.
    pub ours: f64,
    /// The figure of the peer.
    pub theirs: f64,
}

/// Whether one lock of ours keeps one rule under one load.
pub struct Verdict {
    /// The lock.
    pub subject: &'static str,
    /// The load.
    pub load: Load,
    /// The rule.
    pub rule: Rule,
    /// Number of cells with figures of both locks.
    pub cells: usize,
    /// The cells that break the rule.
    pub misses: Vec<Miss>,
}

impl Rule {
    const ALL: [Self; 4] = [Self::Median, Self::Late, Self::Longest, Self::Even];

    /// Returns the key in JSON.
    fn key(self) -> &'static str {
        match self {
            Self::Median => "wait_ns_at_random_instant.p50",
            Self::Late => "wait_ns_at_random_instant.p99",
            Self::Longest => "longest_wait_ns",
            Self::Even => "jain_10ms",
        }
    }

    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Median => "wait p50* ≤ 2×",
            Self::Late => "wait p99* ≤ 2×",
            Self::Longest => "longest ≤ 2×",
            Self::Even => "Jain 10 ms ≥ − 0.05",
        }
    }

    fn figure(self, of: &Contended) -> Option<f64> {
        match self {
            Self::Median => Some(of.all.wait_ns_at_random_instant.p50),
            Self::Late => Some(of.all.wait_ns_at_random_instant.p99),
            Self::Longest => Some(of.all.longest_wait_ns),
            Self::Even => of.jain_10ms,
        }
    }

    fn is_kept(self, ours: f64, theirs: f64) -> bool {
        match self {
            Self::Even => ours >= theirs - LESS_EVEN,
            _ => ours <= LONGER * theirs,
        }
    }

    /// Formats a figure for people.
    pub fn shown(self, figure: f64) -> String {
        if self == Self::Even { format!("{figure:.2}") } else { duration(figure) }
    }
}

/// Returns whether each of `subjects` keeps each rule under each load, against `peer`, in the cells
/// that have both.
pub fn verdicts(rows: &[Row], subjects: &[&'static str], peer: &str) -> Vec<Verdict> {
    let mut loads: Vec<_> = rows.iter().map(|row| row.cell.load).collect();
    loads.dedup();
    let mut verdicts = Vec::new();
    for load in loads {
        for &subject in subjects {
            let pairs = || pairs(rows, subject, peer).filter(move |(cell, ..)| cell.load == load);
            let verdict = |rule: Rule| {
                let figures = pairs().filter_map(|(cell, ours, theirs)| {
                    let (ours, theirs) = (rule.figure(ours)?, rule.figure(theirs)?);
                    Some(Miss { cell, ours, theirs })
                });
                let (kept, misses): (Vec<_>, Vec<_>) =
                    figures.partition(|pair| rule.is_kept(pair.ours, pair.theirs));
                Verdict { subject, load, rule, cells: kept.len() + misses.len(), misses }
            };
            verdicts.extend(Rule::ALL.map(verdict).into_iter().filter(|one| one.cells > 0));
        }
    }
    verdicts
}

/// Returns the cells in which both were measured, with the figures of both.
fn pairs<'a>(
    rows: &'a [Row],
    subject: &'a str,
    peer: &'a str,
) -> impl Iterator<Item = (Cell, &'a Contended, &'a Contended)> {
    let of = move |name: &str, cell: Cell| {
        let found = rows.iter().find(|row| row.subject == name && row.cell == cell);
        found.filter(|row| row.trouble.is_none())?.summary.contended.as_ref()
    };
    let ours = rows.iter().filter(move |row| row.subject == subject && row.trouble.is_none());
    ours.filter(|row| row.cell.case.is_judged_by_work()).filter_map(move |row| {
        Some((row.cell, row.summary.contended.as_ref()?, of(peer, row.cell)?))
    })
}

impl Verdict {
    /// Returns the object in JSON.
    pub fn json(&self, peer: Option<&str>) -> Value {
        let missed: Vec<_> = self
            .misses
            .iter()
            .map(|miss| {
                json!({ "at": miss.cell.to_string(), "ours": miss.ours, "theirs": miss.theirs })
            })
            .collect();
        json!({
            "subject": self.subject, "peer": peer, "load": self.load.name(),
            "rule": self.rule.key(), "cells": self.cells,
            "kept": self.cells - self.misses.len(), "missed": missed,
        })
    }

    /// Returns the cells that break the rule, in one line.
    pub fn missed(&self) -> String {
        let shown = |miss: &Miss| {
            let [ours, theirs] = [miss.ours, miss.theirs].map(|figure| self.rule.shown(figure));
            format!("{} ({ours}, {theirs})", miss.cell)
        };
        self.misses.iter().map(shown).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::super::measure::Case;
    use super::super::rows::Summary;
    use super::*;
    use crate::bench::ratio::Ratio;
    use crate::bench::report::Lead;
    use crate::bench::rounds::Trouble;

    const OURS: &str = "shfl-mutex";

    fn cell(case: Case, threads: usize) -> Cell {
        Cell { load: Load::Idle, case, reads: None, threads }
    }

    fn row(subject: &'static str, cell: Cell, figures: [f64; 3], jain_10ms: Option<f64>) -> Row {
        let [p50, p99, longest_wait_ns] = figures;
        let contended = json!({
            "ops_per_s": 1e6,
            "acquire_ns": { "p50": 0.0, "p99": 0.0, "p999": 0.0, "max": 0.0 },
            "wait_ns_at_random_instant": { "p50": p50, "p99": p99 },
            "longest_wait_ns": longest_wait_ns,
            "jain": 1.0, "jain_10ms": jain_10ms,
            "switches_per_kop": 0.0, "cpu_ns_per_op": 0.0,
        });
        let contended = serde_json::from_value(contended).expect("as a repetition tells it");
        Row {
            subject,
            peer: None,
            ours: subject == OURS,
            cell,
            repetitions: 1,
            others_cpus: None,
            trouble: None,
            summary: Summary {
                lead: Lead { key: "ops_per_s", of: None },
                contended: Some(contended),
                seconds: None,
                worst: None,
                spent: None,
                ratio: Ratio::of("ratio", std::iter::empty()),
                ratio_cpu: None,
                ratio_best: None,
                best: None,
            },
        }
    }

    /// Returns the cells of `rows` that break a rule, by rule.
    fn missed(rows: &[Row]) -> Vec<(Rule, usize, Vec<usize>)> {
        let verdicts = verdicts(rows, &[OURS], "glibc");
        let threads =
            |one: &Verdict| one.misses.iter().map(|miss| miss.cell.threads).collect::<Vec<_>>();
        verdicts.iter().map(|one| (one.rule, one.cells, threads(one))).collect()
    }

    #[test]
    fn a_rule_is_kept_up_to_its_bound_and_missed_behind_it() {
        let [two, four] = [2, 4].map(|threads| cell(Case::Short, threads));
        let mut rows = vec![
            row(OURS, two, [20.0, 200.0, 2000.0], Some(0.75)),
            row("glibc", two, [10.0, 100.0, 1000.0], Some(0.8)),
            row(OURS, four, [20.0, 200.0, 2000.0], Some(0.75)),
            row("glibc", four, [10.0, 100.0, 1000.0], Some(0.8)),
            row("std", four, [1.0, 1.0, 1.0], Some(1.0)),
        ];
        let all = |of: [&[usize]; 4]| {
            let of = Rule::ALL.into_iter().zip(of);
            of.map(|(rule, missed)| (rule, 2, missed.to_vec())).collect::<Vec<_>>()
        };
        assert_eq!(missed(&rows), all([&[], &[], &[], &[]]));

        rows[2] = row(OURS, four, [20.1, 200.0, 2000.0], Some(0.75));
        assert_eq!(missed(&rows), all([&[4], &[], &[], &[]]));
        rows[2] = row(OURS, four, [0.0, 201.0, 2000.0], Some(1.0));
        assert_eq!(missed(&rows), all([&[], &[4], &[], &[]]));
        rows[2] = row(OURS, four, [0.0, 0.0, 2001.0], Some(0.75));
        rows[0] = row(OURS, two, [0.0, 0.0, 9e9], Some(0.74));
        assert_eq!(missed(&rows), all([&[], &[], &[2, 4], &[2]]));
    }

    #[test]
    fn what_was_not_measured_or_is_not_judged_has_no_part() {
        let [short, continuous] = [Case::Short, Case::Continuous].map(|case| cell(case, 2));
        let mut rows = vec![
            row(OURS, continuous, [9.0; 3], None),
            row("glibc", continuous, [1.0; 3], None),
            row(OURS, short, [9.0; 3], None),
        ];
        assert!(missed(&rows).is_empty());
        rows.push(row("glibc", short, [1.0; 3], Some(0.9)));
        let waits = [Rule::Median, Rule::Late, Rule::Longest];
        assert_eq!(missed(&rows), waits.map(|rule| (rule, 1, vec![2])));
        rows[3].trouble = Some(Trouble::Failed("it hangs".to_owned()));
        assert!(missed(&rows).is_empty());
    }

    #[test]
    fn a_miss_is_told_with_both_figures() {
        let at = cell(Case::FiveMicroseconds, 8);
        let rows = [
            row(OURS, at, [1.0, 1.0, 5e6], Some(0.3)),
            row("glibc", at, [1.0, 1.0, 2e6], Some(0.41)),
        ];
        let told: Vec<_> = verdicts(&rows, &[OURS], "glibc").iter().map(Verdict::missed).collect();
        let longest = "idle 5us, 8 threads (5.00 ms, 2.00 ms)";
        assert_eq!(told, ["", "", longest, "idle 5us, 8 threads (0.30, 0.41)"]);
        let value = verdicts(&rows, &[OURS], "glibc")[3].json(Some("glibc"));
        let missed = json!([{ "at": "idle 5us, 8 threads", "ours": 0.3, "theirs": 0.41 }]);
        assert_eq!(value["missed"], missed);
        assert_eq!((&value["cells"], &value["kept"]), (&json!(1), &json!(0)));
    }
}

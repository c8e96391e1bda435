//! The report of `bench loop`: keys for scripts, tables for people.

use antiphon_coop::available;
use antiphon_report::schedule::{Used, legend};
use antiphon_report::table::{Cell as Field, Table, Tone, duration, si};
use serde_json::{Value, json};

use super::Plan;
use super::cases::Cell;
use super::figures::Figures;
use super::measure::How;
use super::rows::{Row, Summary};
use crate::bench::benchmark::{Benchmark, ColumnsOf};
use crate::bench::columns::Columns;
use crate::bench::ratio::Better;
use crate::bench::report::Beside;
use crate::bench::rounds::Trouble;
use crate::compete::level::weakens;
use crate::compete::tardiness::Tardiness;
use crate::compete::terms::Grouping;
use crate::compete::tier_stats::TierStats;

impl Benchmark for Plan {
    type Summary = Summary;

    fn summaries(&self, one: &Beside<'_, Cell, Figures>) -> Vec<Summary> {
        vec![Summary::of(one)]
    }

    fn conditions(&self, row: &Row) -> Value {
        let Cell { load, players, hogs, competitor, hz, group, levels, cpus } = row.cell;
        json!({
            "needs": row.needs(), "costs": row.scheme().map(|scheme| scheme.costs),
            "options": self.how.schedule.json(row.used()),
            "case": if hogs > 0 { json!(competitor) } else { json!("players") },
            "load": load, "players_n": players, "hogs_n": hogs, "competitor": competitor,
            "hz": hz, "group": group, "grouped": row.grouped(), "levels": levels,
            "cpus_n": cpus, "threads": players + hogs,
        })
    }

    fn body(&self, rows: &[Row]) -> Value {
        let used = rows.iter().map(Row::used).max().unwrap_or(Used::Nothing);
        let How { demand, even, misbehave, sentinel_ns, schedule, .. } = self.how;
        json!({
            "seconds": self.seconds, "demand": demand, "alike": even, "misbehave": misbehave,
            "sentinel_us": sentinel_ns / 1000, "cpu_list": self.cpus,
            "options": schedule.json(used), "weaker": weaker(rows),
        })
    }

    fn columns(&self, rows: &[Row]) -> ColumnsOf<Self> {
        let late = |of: fn(&Tardiness) -> f64| move |summary: &Summary| of(&summary.tardiness);
        let of = |name: &'static str| move |summary: &Summary| summary.median(name);
        let time = |us: f64| duration(us * 1e3);
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let index = |value: f64| format!("{value:.3}");
        Columns::of(rows)
            .subject("subject")
            .condition("needs", |row| Field::text(row.needs()).tone(Tone::Faint))
            .number(">p50", time, late(|late| late.p50_us))
            .number(">p90", time, late(|late| late.p90_us))
            .number(">p99", time, late(|late| late.p99_us))
            .ratio(Better::Neither, |of| of.ratio)
            .number(">p99.9", time, late(|late| late.p999_us))
            .number(">max", time, late(|late| late.max_us))
            .number(">≤ 1 ms", percent, late(|late| late.within_1ms))
            .number(">beyond noise", time, of("beyond_noise_us"))
            .number(">Jain CPU", index, of("jain_cpu"))
            .number(">Jain fps", index, of("jain_fps"))
            .number(">players' CPU", percent, of("players_share"))
            .number(">frames/s", |fps| format!("{fps:.1}"), of("fps"))
            .number(">chunks/s", si, of("chunks_per_s"))
            .ratio(Better::Neither, |of| of.ratio_chunks)
            .number(">switches/s", si, of("switches_per_s"))
    }

    fn table(&self, rows: &[Row]) -> Table {
        // The reason is printed below the table.
        let kind = |trouble: &Trouble| Field::number(trouble.json().0).tone(Tone::Faint);
        self.columns(rows).table_with(rows, kind)
    }

    fn notes(&self, rows: &[Row]) -> String {
        let misbehaving = rows.iter().filter_map(misbehaving);
        misbehaving.chain(rows.iter().filter_map(tier_stats)).collect()
    }

    fn about(&self, rows: &[Row]) -> String {
        let mut text = troubles(rows) + &no_group(rows) + &costs(rows);
        let measured = rows.iter().filter(|row| row.trouble.is_none());
        text += &legend(measured.map(|row| (row.subject, row.used())), self.how.schedule);
        if let Some(level) = rows.iter().find_map(|row| row.summary.level.as_ref()) {
            text += &format!("Competing on: {}.\n", level.said());
            if let Some(why) = &level.not_first {
                text += &format!("--first has no effect: {why}.\n");
            }
        }
        if let Some(weaker) = weaker(rows) {
            text += &format!("{weaker}.\n");
        }
        if let Some(why) = rows.iter().find_map(|row| row.summary.no_sentinel.as_ref()) {
            text += &format!("No sentinel: {why}.\n");
        }
        text + RULE
    }
}

/// Names the measured tiers that are weaker against programs on other levels than the run's, if
/// there are any.
fn weaker(rows: &[Row]) -> Option<&'static str> {
    let measured = |row: &&Row| row.trouble.is_none();
    let tiers = rows.iter().filter(measured).filter_map(|row| row.scheme()?.tier);
    tiers.into_iter().any(weakens).then(|| available().weaker()).flatten()
}

const RULE: &str = "\
Tardiness is from when a timer is due to its dispatch: medians of repetitions, the most of all. To:
the median of paired ratios of p99, and of chunks decoded. Beyond noise: the most that a timer was
later than a thread of priority 99 in the same seconds. Jain's index is of the CPU time of all
programs, and of players' frames; 1 is fair. Switches are of all programs, without the sentinel's.
";

/// States why figures are missing: a line for each reason of each scheme.
fn troubles(rows: &[Row]) -> String {
    let said = rows.iter().filter_map(|row| {
        let (kind, what) = row.trouble.as_ref()?.json();
        Some(format!("{} {kind}: {what}.\n", row.subject))
    });
    once(said).concat()
}

/// Names the subjects whose players formed no group, though one was asked for.
fn no_group(rows: &[Row]) -> String {
    let asked = rows.iter().filter(|row| row.cell.group == Grouping::One);
    let names = once(asked.filter(|row| !row.grouped()).map(|row| row.subject));
    if names.is_empty() {
        return String::new();
    }
    format!("No group: the players of {} have a share each.\n", names.join(", "))
}

/// States what the measured schemes cost their users.
fn costs(rows: &[Row]) -> String {
    let measured = rows.iter().filter(|row| row.trouble.is_none());
    let lines =
        measured.filter_map(|row| Some(format!("{:<12}{}\n", row.subject, row.scheme()?.costs)));
    let lines = once(lines).concat();
    if lines.is_empty() { lines } else { format!("What it costs, beside what it needs:\n{lines}") }
}

/// Returns each value once, in order of first occurrence.
fn once<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    all.fold(Vec::new(), |mut kept, one| {
        if !kept.contains(&one) {
            kept.push(one);
        }
        kept
    })
}

fn misbehaving(row: &Row) -> Option<String> {
    let (first, others) = (row.summary.players.first()?, row.summary.others?);
    let [first, others] = [first.tardiness, others].map(|late| duration(late.p99_us * 1e3));
    let name = row.subject;
    Some(format!("{name}: the first player misbehaves: p99 {first}, of the others {others}\n"))
}

/// Describes the work of the tier of a row, over all its players and repetitions.
fn tier_stats(row: &Row) -> Option<String> {
    let stats = TierStats::sum(row.summary.players.iter().map(|player| &player.tier_stats));
    let raised = match (stats.raises, stats.borrowed_ns) {
        (Some(raises), Some(ns)) => {
            format!("; raised {} times, for {}", si(raises as f64), duration(ns as f64))
        }
        _ => String::new(),
    };
    Some(format!("{}: demoted: {}{raised}\n", row.subject, stats.demoted()?))
}

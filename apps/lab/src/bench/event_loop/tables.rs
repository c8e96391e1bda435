//! Tables for people.

use antiphon_report::schedule::legend;
use antiphon_report::table::{Cell as Field, Table, Tone, duration, si};

use super::rows::{Report, Row};
use crate::compete::terms::Grouping;
use crate::compete::tier_stats::TierStats;

/// All of them, and what is said of them.
pub fn text(report: &Report, colour: bool) -> String {
    let mut text = String::new();
    for rows in report.rows.chunk_by(|a, b| a.cell == b.cell) {
        text += &format!("{}\n{}\n", rows[0].cell, table(rows, report).render(colour));
        for player in rows.iter().filter(|row| row.others.is_some()) {
            text += &misbehaving(player);
        }
        text += &rows.iter().filter_map(tier_stats).collect::<String>();
    }
    text += &troubles(report);
    text += &no_group(report);
    text += &costs(report);
    let measured = report.rows.iter().filter(|row| row.trouble.is_none());
    text += &legend(measured.map(|row| (row.subject, row.used())), report.how.schedule);
    let level = report.rows.iter().find_map(|row| row.level.as_ref());
    if let Some(level) = level {
        text += &format!("Competing on: {}.\n", level.said());
        if let Some(why) = &level.not_first {
            text += &format!("--first has no effect: {why}.\n");
        }
    }
    if let Some(weaker) = report.weaker() {
        text += &format!("{weaker}.\n");
    }
    if let Some(why) = report.rows.iter().find_map(|row| row.no_sentinel.as_ref()) {
        text += &format!("No sentinel: {why}.\n");
    }
    text + RULE
}

const RULE: &str = "\
Tardiness is from when a timer is due to its dispatch: medians of repetitions, the most of all. To:
the median of paired ratios of p99, and of chunks decoded. Beyond noise: the most that a timer was
later than a thread of priority 99 in the same seconds. Jain's index is of the CPU time of all
programs, and of players' frames; 1 is fair. Switches are of all programs, without the sentinel's.
";

/// Why there are no figures: a line for each reason of each scheme.
fn troubles(report: &Report) -> String {
    let said = report.rows.iter().filter_map(|row| {
        let (kind, what) = row.trouble.as_ref()?.json();
        Some(format!("{} {kind}: {what}.\n", row.subject))
    });
    once(said).concat()
}

/// Names the subjects whose players were no group, though one was asked for.
fn no_group(report: &Report) -> String {
    let asked = report.rows.iter().filter(|row| row.cell.group == Grouping::One);
    let names = once(asked.filter(|row| !row.grouped()).map(|row| row.subject));
    if names.is_empty() {
        return String::new();
    }
    format!("No group: the players of {} have a share each.\n", names.join(", "))
}

/// The costs of the measured schemes for their users.
fn costs(report: &Report) -> String {
    let measured = report.rows.iter().filter(|row| row.trouble.is_none());
    let lines =
        measured.filter_map(|row| Some(format!("{:<12}{}\n", row.subject, row.scheme?.costs)));
    let lines = once(lines).concat();
    if lines.is_empty() { lines } else { format!("What it costs, beside what it needs:\n{lines}") }
}

/// Each once, in their order.
fn once<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    all.fold(Vec::new(), |mut kept, one| {
        if !kept.contains(&one) {
            kept.push(one);
        }
        kept
    })
}

fn misbehaving(row: &Row) -> String {
    let p99 = |us: f64| duration(us * 1e3);
    let (first, others) = (row.players.first(), row.others);
    first.zip(others).map_or(String::new(), |(first, others)| {
        format!(
            "{}: the first player misbehaves: p99 {}, of the others {}\n",
            row.subject,
            p99(first.tardiness.p99_us),
            p99(others.p99_us)
        )
    })
}

/// The work of the tier of a row, for all its players and repetitions.
fn tier_stats(row: &Row) -> Option<String> {
    let stats = TierStats::sum(row.players.iter().map(|player| &player.tier_stats));
    let raised = match (stats.raises, stats.borrowed_ns) {
        (Some(raises), Some(ns)) => {
            format!("; raised {} times, for {}", si(raises as f64), duration(ns as f64))
        }
        _ => String::new(),
    };
    Some(format!("{}: demoted: {}{raised}\n", row.subject, stats.demoted()?))
}

fn table(rows: &[Row], report: &Report) -> Table {
    let to = format!(">to {}", report.reference.unwrap_or("nothing"));
    let mut table = Table::new(&[
        "subject",
        "needs",
        ">p50",
        ">p90",
        ">p99",
        &to,
        ">p99.9",
        ">max",
        ">≤ 1 ms",
        ">beyond noise",
        ">Jain CPU",
        ">Jain fps",
        ">players' CPU",
        ">frames/s",
        ">chunks/s",
        &to,
        ">switches/s",
    ]);
    rows.iter().for_each(|row| table.row(line(row)));
    table
}

fn line(row: &Row) -> Vec<Field> {
    let name = Field::text(row.subject).tone(if row.ours { Tone::Plain } else { Tone::Faint });
    let needs = Field::text(row.needs()).tone(Tone::Faint);
    if let Some(trouble) = &row.trouble {
        // Why, is said below.
        return vec![name, needs, Field::number(trouble.json().0).tone(Tone::Faint)];
    }
    let time = |us: f64| Field::number(duration(us * 1e3));
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let of = |name: &str, show: &dyn Fn(f64) -> String| {
        Field::number(row.median(name).map_or("-".to_owned(), show))
    };
    let index = |value: f64| format!("{value:.3}");
    let late = row.tardiness;
    let ratio = |ratio: Option<crate::bench::ratio::Ratio>| {
        let text = ratio.map_or("-".to_owned(), |ratio| format!("{:.2}×", ratio.of.median));
        Field::number(text)
    };
    vec![
        name,
        needs,
        time(late.p50_us),
        time(late.p90_us),
        time(late.p99_us),
        ratio(row.ratio),
        time(late.p999_us),
        time(late.max_us),
        Field::number(percent(late.within_1ms)),
        of("beyond_noise_us", &|us| duration(us * 1e3)),
        of("jain_cpu", &index),
        of("jain_fps", &index),
        of("players_share", &percent),
        of("fps", &|fps| format!("{fps:.1}")),
        of("chunks_per_s", &si),
        ratio(row.ratio_chunks),
        of("switches_per_s", &si),
    ]
}

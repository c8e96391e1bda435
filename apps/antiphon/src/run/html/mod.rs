//! The report of a run as one page that needs nothing else: no network, no font, no library.
//!
//! Everything is there without the script, which only sorts tables and picks a histogram. The names
//! of the program and of its functions are text wherever they stand. Should that fail, the page's
//! policy lets no script run but its own, which has a number that no writer of a name could know
//! before.

mod charts;
mod graph;
mod layout;
mod tables;

use antiphon_record::Histogram;
use antiphon_report::page::{self, escape};
use antiphon_report::table::duration;
use antiphon_report::{report, shell};
use serde_json::Value;

use super::summary::{LockRow, Report};
use crate::verdict;

const SCRIPT: &str = include_str!("page.js");
/// How many call sites have a histogram of their own.
const HISTOGRAMS: usize = 12;
const SECOND_NS: f64 = 1e9;

/// The page.
pub fn page(report: &Report) -> String {
    let sites = report.by_site();
    let notes: String =
        report.notes.iter().map(|note| format!("<p class=note>{}</p>\n", escape(note))).collect();
    let parts = [
        verdict::html(&verdict::of(report)),
        figures(report),
        notes,
        tables::loops(report),
        blocked(report),
        tables::locks(&sites, report.run.profile),
        tables::classes(&report.locks, report.run.profile),
        tables::callers(&report.callers, &sites),
        lengths(&sites),
        tables::order(report),
        tables::threads(report),
    ];
    let body = under_the_title(report) + &parts.concat();
    page::page(&shell::line(&report.run.command), &body, Some(SCRIPT))
}

/// The program and the machine, below the title.
fn under_the_title(report: &Report) -> String {
    let machine = report::machine();
    let text = |key: &str| match &machine[key] {
        Value::String(text) => escape(text),
        other => escape(&other.to_string()),
    };
    format!(
        "<p class=faint>{} · locks: {} · {}, {} CPUs, Linux {} · {} · antiphon {}</p>\n",
        escape(&report.run.ended),
        escape(&report.run.lock),
        text("cpu"),
        text("cpus"),
        text("kernel"),
        text("date"),
        env!("CARGO_PKG_VERSION"),
    )
}

fn figures(report: &Report) -> String {
    let all: f64 = report.blocked.kinds().iter().map(|kind| kind.2).sum();
    let mut figures = vec![
        ("run", duration(report.run.wall.as_secs_f64() * SECOND_NS), false),
        ("threads seen", report.threads.to_string(), false),
        ("blocked, all threads", duration(all * SECOND_NS), false),
    ];
    if let Some(share) = report.reachable_share() {
        figures.push(("of that in locks", format!("{:.0} %", share * 100.0), false));
    }
    let order = &report.order;
    if let Some((mean, max)) = order.depth {
        figures.push(("locks held at once", format!("{mean:.2} · max {max}"), false));
    }
    if let Some((mean, max)) = order.nests {
        figures.push(("taken in one go", format!("{mean:.2} · max {max}"), false));
        let inversions = order.inversions.len();
        figures.push(("taken in both orders", inversions.to_string(), inversions > 0));
    }
    let figure = |(name, value, alarm): (&str, String, bool)| {
        let class = if alarm { " class=alarm" } else { "" };
        format!("<div><dt>{name}</dt><dd{class}>{value}</dd></div>\n")
    };
    format!("<dl>\n{}</dl>\n", figures.into_iter().map(figure).collect::<String>())
}

fn blocked(report: &Report) -> String {
    let kinds = report.blocked.kinds();
    let all: f64 = kinds.iter().map(|kind| kind.2).sum();
    if all <= 0.0 {
        return "<h2>Blocked time</h2>\n<p>No thread was seen blocked.</p>\n".to_owned();
    }
    let mut bar = String::new();
    let mut rows = String::new();
    let (mut ours, mut theirs) = (0, 0);
    for (key, name, seconds, reachable) in kinds.into_iter().filter(|kind| kind.2 > 0.0) {
        let class = match (key, reachable) {
            ("sleep", _) => "idle".to_owned(),
            (_, true) => shade("ours", &mut ours),
            _ => shade("theirs", &mut theirs),
        };
        let share = seconds / all * 100.0;
        let time = duration(seconds * SECOND_NS);
        bar += &format!(
            "<span class=\"{class}\" style=\"width:{share:.2}%\" title=\"{name}: {time}\"></span>"
        );
        rows += &format!(
            "<tr><td><span class=\"key {class}\"></span>{name}<td class=n>{time}\
             <td class=n>{share:.1} %\n"
        );
    }
    let reachable = report.reachable_share().map_or(String::new(), |share| {
        let whose = report.reachable_locks();
        format!("<p>{:.0} % of it, sleep apart, is in {whose}.</p>\n", share * 100.0)
    });
    format!(
        "<h2>Blocked time, summed over threads</h2>\n{reachable}<div class=stack>{bar}</div>\n\
         <table><thead><tr><th>in<th class=n>time<th class=n>share<tbody>\n{rows}</table>\n"
    )
}

/// The class of the next one of that colour.
fn shade(colour: &str, so_far: &mut usize) -> String {
    let shade = ["", " second", " third", " fourth"][*so_far % 4];
    *so_far += 1;
    format!("{colour}{shade}")
}

/// Histograms: of all waits, and of the call sites with most.
fn lengths(sites: &[LockRow]) -> String {
    let mut all = Histogram::default();
    sites.iter().for_each(|row| all.add(&row.wait));
    let Some(drawn) = charts::waits(&all) else { return String::new() };
    let figure = |at: usize, svg: &str| {
        let hidden = if at == 0 { "" } else { " hidden" };
        format!("<figure class=histogram data-of={at}{hidden}>\n{svg}</figure>\n")
    };
    let mut options = "<option value=0>all call sites".to_owned();
    let mut figures = figure(0, &drawn);
    for (at, row) in (1..).zip(sites.iter().take(HISTOGRAMS)) {
        let Some(svg) = charts::waits(&row.wait) else { continue };
        options += &format!("<option value={at}>{}, {}", escape(&row.site.label()), row.kind);
        figures += &figure(at, &svg);
    }
    format!(
        "<h2>How long waits were</h2>\n<p hidden><label for=histogram-of>of</label> \
         <select id=histogram-of>{options}</select></p>\n{figures}"
    )
}

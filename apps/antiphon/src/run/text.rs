//! The report of a run as text.

use std::fmt::Write as _;

use antiphon_record::Histogram;
use antiphon_report::shell;
use antiphon_report::table::{Cell, Table, Tone, count, duration, printable, shortened};
use antiphon_report::words::{several, wrapped};

use super::classes::{self, Class};
use super::order::Place;
use super::summary::{CONDITION, LockRow, Report};
use crate::verdict;

/// The most call sites that are shown; the others are in the JSON report.
const SITES: usize = 20;
/// The most classes of locks that are shown.
const CLASSES: usize = 10;
/// The most call sites that are shown with their callers.
const TREES: usize = 5;
/// The most findings of the verdict that are shown.
const FINDINGS: usize = 3;
/// Letters of a place in the table of locks that were taken in both orders.
const PLACE: usize = 30;
/// The most groups of locks taken in both orders that are shown.
const INVERSIONS: usize = 5;
/// A kind of waiting with a smaller share of the total is left out.
const LEAST_SHARE: f64 = 0.001;
const SECOND_NS: f64 = 1e9;

/// The form of a report's text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Form {
    /// Whether to use a terminal's colours.
    pub colour: bool,
    /// Whether to show all call sites, with their whole names and inlined functions.
    pub wide: bool,
}

/// The report as text.
pub fn render(report: &Report, form: Form) -> String {
    let colour = form.colour;
    let mut out = String::new();
    let run = &report.run;
    let seen = match (run.is_outside(), run.profile) {
        (true, _) => "seen from outside",
        (_, true) => "all acquisitions recorded",
        (_, false) => "waits recorded",
    };
    // Writing to a string does not fail, here and below.
    let _ = writeln!(
        out,
        "\nantiphon: {} · {} · {} · {} seen · locks: {}, {seen}",
        printable(&shell::line(&run.command)),
        duration(run.wall.as_secs_f64() * SECOND_NS),
        run.ended,
        several(report.threads as u64, "thread"),
        run.lock,
    );
    let most = if form.wide { usize::MAX } else { FINDINGS };
    out += &verdict::text(&verdict::of(report), most);
    if !report.notes.is_empty() {
        out.push('\n');
    }
    for note in &report.notes {
        let _ = writeln!(out, "{}", wrapped(&printable(note), verdict::COLUMNS));
    }
    out.extend(report.coop.as_ref().map(|coop| coop.text(colour)));
    blocked(&mut out, report, colour);
    locks(&mut out, report, form);
    classes(&mut out, report, form);
    callers(&mut out, report, form);
    order(&mut out, report);
    if let Some(trace) = &report.trace {
        let _ = writeln!(out, "\n{}", printable(&trace.to_string()));
    }
    out
}

fn blocked(out: &mut String, report: &Report, colour: bool) {
    let all: f64 = report.blocked.kinds().iter().map(|kind| kind.2).sum();
    if all <= 0.0 {
        let _ = writeln!(out, "\nNo thread was seen blocked.");
        return;
    }
    let _ = writeln!(out, "\nBlocked time, summed over threads");
    if let Some(share) = report.reachable_share() {
        let whose = report.reachable_locks();
        let _ = writeln!(out, "{:.0} % of it, sleep apart, is in {whose}", share * 100.0);
    }
    let mut table = Table::new(&["in", ">time", ">share", "known from"]);
    for (key, name, seconds, reachable) in report.blocked.kinds() {
        if seconds / all < LEAST_SHARE {
            continue;
        }
        let source = match (reachable, key) {
            (true, _) => "every wait",
            (_, "run_queue") => "the kernel's count",
            _ => "samples",
        };
        table.row(vec![
            Cell::text(name).tone(if reachable { Tone::Good } else { Tone::Plain }),
            Cell::number(duration(seconds * SECOND_NS)),
            Cell::number(format!("{:.1} %", seconds / all * 100.0)),
            Cell::text(source).tone(Tone::Faint),
        ]);
    }
    out.push_str(&table.render(colour));
    if report.blocked.raw_futex > 0.05 * all && !report.run.is_outside() {
        let _ = writeln!(
            out,
            "Raw futexes are out of a preloaded library's reach: Rust's std and parking_lot, Go, \
             Java's\nmonitors, OpenMP, glibc's barriers, and all locks of programs that were left \
             alone."
        );
    }
}

fn locks(out: &mut String, report: &Report, form: Form) {
    let sites = report.by_site();
    if sites.is_empty() {
        if report.processes > 0 && !report.run.profile {
            let _ = writeln!(out, "\n{}", nothing(report));
        }
        return;
    }
    let waits: Vec<_> = sites.iter().filter(|row| row.contended > 0).collect();
    if !waits.is_empty() {
        let _ = writeln!(out, "\nWaits by call site, longest in all first");
        let heads = [&["call site", "kind", ">locks", ">waits"], &TIMES[..]].concat();
        let row = |row: &LockRow| {
            [fields(row, row.site_and_waiters(), row.contended), times(&row.wait)].concat()
        };
        table(out, &heads, &waits, row, form);
    } else if !report.run.profile {
        let _ = writeln!(out, "\n{}", nothing(report));
    }
    let taken =
        |row: &&LockRow| report.run.profile && row.acquisitions > 0 && row.kind != CONDITION;
    let mut held: Vec<_> = sites.iter().filter(taken).collect();
    held.sort_by_key(|row| std::cmp::Reverse(row.hold.sum_ns));
    if !held.is_empty() {
        let _ = writeln!(out, "\nHeld by call site, longest in all first");
        let heads = [&["taken at", "kind", ">locks", ">times"], &TIMES[..]].concat();
        let row = |row: &LockRow| {
            [fields(row, row.holder(), row.acquisitions), times(&row.hold)].concat()
        };
        table(out, &heads, &held, row, form);
    }
}

const TIMES: [&str; 4] = [">p50", ">p99", ">longest", ">in all"];

/// A table of the first call sites, and, in the wide form, their full names.
fn table(
    out: &mut String,
    heads: &[&str],
    rows: &[&LockRow],
    cells: impl Fn(&LockRow) -> Vec<Cell>,
    form: Form,
) {
    let most = if form.wide { usize::MAX } else { SITES };
    let mut table = Table::new(heads);
    for row in rows.iter().take(most) {
        table.row(cells(row));
    }
    out.push_str(&table.render(form.colour));
    if rows.len() > most {
        let more = rows.len() - most;
        let _ = writeln!(out, "… and {more} more: --wide or --report F.json has them all");
    }
    for row in rows.iter().take(most).filter(|_| form.wide) {
        let _ = writeln!(out, "\n{}", printable(&row.site.label()));
        for line in row.site.wide() {
            let _ = writeln!(out, "  {}", printable(&line));
        }
    }
}

/// The locks by what names them.
fn classes(out: &mut String, report: &Report, form: Form) {
    let classes = classes::classes(&report.locks);
    let most = if form.wide { usize::MAX } else { CLASSES };
    let used = |class: &&Class| class.contended > 0 || report.run.profile;
    let shown: Vec<_> = classes.iter().filter(used).collect();
    if shown.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nLocks by variable, or by where they were initialised or first taken");
    let mut heads = vec!["lock", "kind", ">locks", ">waits", ">waited"];
    heads.extend(report.run.profile.then_some(">held"));
    let mut table = Table::new(&heads);
    for class in shown.iter().take(most) {
        let name = if form.wide { class.name.clone() } else { class.label() };
        let all =
            |ns: u64| Cell::number(if ns == 0 { "-".to_owned() } else { duration(ns as f64) });
        let mut cells = vec![
            Cell::text(printable(&name)),
            Cell::text(class.kind).tone(Tone::Faint),
            Cell::number(count(class.locks as u64)),
            Cell::number(count(class.contended)),
            all(class.wait.sum_ns),
        ];
        cells.extend(report.run.profile.then(|| all(class.hold.sum_ns)));
        table.row(cells);
    }
    out.push_str(&table.render(form.colour));
    if shown.len() > most {
        let more = shown.len() - most;
        let _ = writeln!(out, "… and {more} more: --wide or --report F.json has them all");
    }
}

/// The callers of the sites with the longest waits.
fn callers(out: &mut String, report: &Report, form: Form) {
    let most = if form.wide { usize::MAX } else { TREES };
    let sites = report.by_site();
    let waited = sites.iter().filter(|row| row.contended > 0);
    let trees: Vec<_> = waited
        .map(|row| (row, report.callers.tree(row)))
        .filter(|(_, tree)| !tree.is_empty())
        .take(most)
        .collect();
    if trees.is_empty() {
        return;
    }
    let (waits, cut) = report.callers.counts();
    let all = sites.iter().map(|row| row.contended).sum();
    let _ = writeln!(
        out,
        "\nCallers, by their share of a site's waiting (stacks of {} of {} waits, {} cut short)",
        count(waits),
        count(all),
        count(cut),
    );
    for (row, tree) in trees {
        let _ = writeln!(out, "{}, {}", printable(&row.site.label()), row.kind);
        for line in tree.lines() {
            let _ = writeln!(out, "{line}");
        }
    }
}

/// The sentence of a report without rows: it claims that nothing happened only if everything was
/// seen.
pub fn nothing(report: &Report) -> &'static str {
    if report.unseen == 0 {
        "No thread had to wait for a lock."
    } else {
        "No wait for a lock was recorded, but the recording is incomplete: see the lines above."
    }
}

fn fields(row: &LockRow, site: String, times: u64) -> Vec<Cell> {
    vec![
        Cell::text(site),
        Cell::text(row.kind).tone(Tone::Faint),
        Cell::number(row.locks.to_string()),
        Cell::number(count(times)),
    ]
}

fn times(times: &Histogram) -> Vec<Cell> {
    let one = |ns: Option<u64>| Cell::number(ns.map_or("-".to_owned(), |ns| duration(ns as f64)));
    let some = |ns: u64| (!times.is_empty()).then_some(ns);
    [times.p50(), times.p99(), some(times.max_ns), some(times.sum_ns)].map(one).to_vec()
}

fn order(out: &mut String, report: &Report) {
    let order = &report.order;
    if let Some((mean, max)) = order.depth.filter(|&(_, max)| max > 1) {
        let _ = writeln!(out, "\nLocks held at once: {mean:.2} on average, {max} at most");
        if let Some((mean, max)) = order.nests {
            let _ = writeln!(
                out,
                "Locks taken in one go, from none held to none held: {mean:.2} on average, \
                 {max} at most"
            );
        }
    }
    let groups = order.by_site();
    for &(locks, steps) in groups.iter().take(INVERSIONS) {
        let how = if steps.len() == 2 { "both orders" } else { "a circle" };
        let _ = writeln!(
            out,
            "\nTaken in {how}, a deadlock in waiting if that can happen at the same time{}",
            if locks > 1 { format!(" ({locks} times, with other locks)") } else { String::new() }
        );
        let mut table = Table::new(&["held", "since", "took", "at", ">times"]);
        for step in steps {
            let lock = |place: &Place| Cell::text(place.name());
            table.row(vec![
                lock(&step.held),
                Cell::text(shortened(&step.held.site, PLACE)),
                lock(&step.taken),
                Cell::text(shortened(&step.taken.site, PLACE)),
                Cell::number(count(step.count)),
            ]);
        }
        out.push_str(&table.render(false));
    }
    if groups.len() > INVERSIONS {
        let more = groups.len() - INVERSIONS;
        let _ = writeln!(out, "… and {more} more: --report F.json has them all");
    }
}

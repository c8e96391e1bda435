//! The report of a run as text.

use std::fmt::Write as _;

use antiphon_record::Histogram;
use antiphon_report::shell;
use antiphon_report::table::{Cell, Table, Tone, count, duration, printable};
use antiphon_report::words::several;

use super::order::Place;
use super::summary::{LockRow, Report};

/// How many call sites are shown; the others are in the JSON report.
const SITES: usize = 20;
/// How many groups of locks that were taken in both orders are shown.
const INVERSIONS: usize = 5;
/// A kind of waiting with a smaller share of all is not worth a line.
const LEAST_SHARE: f64 = 0.001;
const SECOND_NS: f64 = 1e9;

/// The report, with colours or without.
pub fn render(report: &Report, colour: bool) -> String {
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
    for note in &report.notes {
        let _ = writeln!(out, "{}", printable(note));
    }
    out.extend(report.coop.as_ref().map(|coop| coop.text(colour)));
    blocked(&mut out, report, colour);
    locks(&mut out, report, colour);
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

fn locks(out: &mut String, report: &Report, colour: bool) {
    let sites = report.by_site();
    if sites.is_empty() {
        if report.processes > 0 && !report.run.profile {
            let _ = writeln!(out, "\n{}", nothing(report));
        }
        return;
    }
    let profile = report.run.profile;
    let _ = writeln!(out, "\nLocks by call site, most waiting first");
    let mut heads = vec!["call site", "kind", ">locks"];
    if profile {
        heads.push(">taken");
    }
    heads.extend([">waited", ">p50", ">p99", ">longest", ">in all"]);
    if profile {
        heads.extend([">held p50", ">p99", ">in all"]);
    }
    let mut table = Table::new(&heads);
    for row in sites.iter().take(SITES) {
        table.row(fields(row, profile));
    }
    out.push_str(&table.render(colour));
    if sites.len() > SITES {
        let more = sites.len() - SITES;
        let _ = writeln!(out, "… and {more} more: --report F.json has them all");
    }
}

/// The sentence of a report without rows: it says that nothing happened only if all was seen.
pub fn nothing(report: &Report) -> &'static str {
    if report.unseen == 0 {
        "No thread had to wait for a lock."
    } else {
        "No wait for a lock was recorded, but the recording is incomplete: see the lines above."
    }
}

fn fields(row: &LockRow, profile: bool) -> Vec<Cell> {
    let number = |number: u64| Cell::number(count(number));
    let mut fields = vec![
        Cell::text(row.site_and_waiters()),
        Cell::text(row.kind).tone(Tone::Faint),
        Cell::number(row.locks.to_string()),
    ];
    if profile {
        // A condition is waited for and not taken.
        let taken = row.acquisitions > 0;
        fields.push(if taken { number(row.acquisitions) } else { Cell::number("-") });
    }
    fields.push(number(row.contended));
    fields.extend(times(&row.wait, true));
    if profile {
        fields.extend(times(&row.hold, false));
    }
    fields
}

fn times(times: &Histogram, longest: bool) -> Vec<Cell> {
    let one = |ns: Option<u64>| Cell::number(ns.map_or("-".to_owned(), |ns| duration(ns as f64)));
    let some = !times.is_empty();
    let mut cells = vec![one(times.p50()), one(times.p99())];
    if longest {
        cells.push(one(some.then_some(times.max_ns)));
    }
    cells.push(one(some.then_some(times.sum_ns)));
    cells
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
            let address = |place: &Place| Cell::text(format!("{:#x}", place.address));
            table.row(vec![
                address(&step.held),
                Cell::text(&step.held.site),
                address(&step.taken),
                Cell::text(&step.taken.site),
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

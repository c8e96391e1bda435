//! The study as one self-contained page: curves, tables, the recommendation. It has no script, and
//! its policy lets none run.

use std::fmt::Write as _;

use antiphon_replay::{IDEAL, Row, Subject};
use antiphon_report::page;
use antiphon_report::page::curves::{Curve, drawing};
use antiphon_report::page::escape;
use antiphon_report::shell;
use antiphon_report::table::{count, duration, si};

use super::study::Study;
use crate::verdict;

/// The page.
pub fn page(study: &Study) -> String {
    let title = format!("{} on {}", shell::line(&study.command), study.asked.machine.name);
    let notes: String =
        study.notes.iter().map(|note| format!("<p class=note>{}</p>\n", escape(note))).collect();
    let figures = [
        ("recorded", duration(study.recorded_ns as f64)),
        ("threads, as recorded", study.recorded_threads.to_string()),
        ("acquisitions", count(study.takes)),
    ];
    let figure =
        |(name, value): (&str, String)| format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n");
    let body = format!(
        "<p class=faint>All figures are simulated · antiphon {}</p>\n<dl>\n{}</dl>\n\
         {}{notes}{}{}{}",
        env!("CARGO_PKG_VERSION"),
        figures.into_iter().map(figure).collect::<String>(),
        verdict::html(&verdict::replay::of(study)),
        curves(study),
        rows(study),
        sites(study),
    );
    page::page(&title, &body, None)
}

/// Acquisitions per second by number of threads: one curve for each lock, and the ideal one.
fn curves(study: &Study) -> String {
    let curve = |lock: &Subject| {
        let rate = |&threads: &usize| study.row(lock.name, threads)?.ops_per_s();
        let points = study.asked.threads.iter();
        let points = points.filter_map(|threads| Some((*threads as f64, rate(threads)?)));
        Curve { name: lock.name.to_owned(), points: points.collect(), dashed: lock.name == IDEAL }
    };
    let curves: Vec<_> = study.asked.locks.iter().map(curve).collect();
    let drawn = drawing(&curves, si);
    format!("<h2>Acquisitions a second over threads</h2>\n<figure>\n{drawn}</figure>\n")
}

fn rows(study: &Study) -> String {
    let cell = |value: Option<String>| {
        format!("<td class=n>{}", value.unwrap_or_else(|| "does not end".to_owned()))
    };
    let row = |row: &Row| {
        format!(
            "<tr><td>{}{}{}{}{}{}\n",
            row.lock,
            cell(Some(row.threads.to_string())),
            cell(row.ops_per_s().map(si)),
            cell(study.speedup(row).map(|speedup| format!("{speedup:.2}×"))),
            cell(row.wait_share().map(|share| format!("{:.1} %", share * 100.0))),
            cell(row.mean(|played| played.end_ns as f64).map(duration)),
        )
    };
    format!(
        "<h2>Locks</h2>\n<div class=wide><table><thead><tr><th>lock<th class=n>threads\
         <th class=n>acquired/s<th class=n>speed-up<th class=n>waiting<th class=n>takes<tbody>\n{}\
         </table></div>\n",
        study.rows.iter().map(row).collect::<String>()
    )
}

fn sites(study: &Study) -> String {
    if study.sites.is_empty() {
        return String::new();
    }
    let mut rows = String::new();
    for site in &study.sites {
        let gain = site.half_the_hold.map(|gain| format!("{:+.1} %", gain * 100.0));
        let _ = writeln!(
            rows,
            "<tr><td class=site>{}<td class=n>{}<td class=n>{:.0} %<td class=n>{}",
            escape(&site.name),
            count(site.takes),
            site.wait_share * 100.0,
            gain.unwrap_or_else(|| "does not end".to_owned()),
        );
    }
    format!(
        "<h2>Where threads wait, with glibc's lock</h2>\n<p>What all would gain if locks taken \
         there were held half as long.</p>\n<div class=wide><table><thead><tr><th>site\
         <th class=n>acquired<th class=n>of the waiting<th class=n>half the hold time<tbody>\n\
         {rows}</table></div>\n"
    )
}

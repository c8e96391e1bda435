//! The study as one page that needs nothing else: curves, tables, the recommendation. It has no
//! script, and its policy lets none run.

use std::fmt::Write as _;

use antiphon_replay::{GLIBC, IDEAL, Row};

use super::study::Study;
use super::text::said;
use crate::output::shell;
use crate::output::table::{count, duration, si};
use crate::run::html::{STYLE, escape};

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 360.0;
/// Around the curves; to the right there is room for names.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 40.0;
/// One after the other; ours first.
const COLOURS: [&str; 6] = ["#1f7a8c", "#6a4fb3", "#3f9142", "#b3477d", "#8a6d1f", "#4a6fa5"];

/// The page.
pub fn page(study: &Study) -> String {
    let title = escape(&format!("{} on {}", shell::line(&study.command), study.asked.machine.name));
    let notes: String =
        study.notes.iter().map(|note| format!("<p class=note>{}</p>\n", escape(note))).collect();
    let figures = [
        ("recorded", duration(study.recorded_ns as f64)),
        ("threads, as recorded", study.recorded_threads.to_string()),
        ("acquisitions", count(study.takes)),
    ];
    let figure =
        |(name, value): (&str, String)| format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n");
    format!(
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; \
         style-src 'unsafe-inline'\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<h1>{title}</h1>\n<p class=faint>All figures are simulated · antiphon {}</p>\n\
         <dl>\n{}</dl>\n<p><strong>{}</strong></p>\n{notes}{}{}{}</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        figures.into_iter().map(figure).collect::<String>(),
        escape(&said(study)),
        curves(study),
        rows(study),
        sites(study),
    )
}

/// Acquisitions a second over threads: one curve a lock.
fn curves(study: &Study) -> String {
    let threads = &study.asked.threads;
    let (Some(&least), Some(&most)) = (threads.first(), threads.last()) else {
        return String::new();
    };
    let rates = study.rows.iter().filter_map(Row::ops_per_s);
    let top = rates.fold(f64::MIN_POSITIVE, f64::max);
    let span = (most as f64 / least as f64).ln().max(f64::MIN_POSITIVE);
    let x = |threads: usize| {
        let part = (threads as f64 / least as f64).ln() / span;
        LEFT + if least == most { 0.5 } else { part } * (WIDTH - LEFT - RIGHT)
    };
    let y = |rate: f64| TOP + (1.0 - rate / top) * (HEIGHT - TOP - BOTTOM);
    let mut svg = format!(
        "<svg class=chart viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=img aria-label=\"acquisitions a \
         second over threads\">\n"
    );
    axes(&mut svg, threads, top, (&x, &y));
    let mut labels: Vec<(f64, String, &str)> = Vec::new();
    let mut ours = COLOURS.into_iter().cycle();
    for lock in &study.asked.locks {
        let colour = match lock.name {
            GLIBC => "var(--theirs)",
            IDEAL => "var(--faint)",
            _ => ours.next().unwrap_or("var(--ours)"),
        };
        let rate = |&threads: &usize| Some((threads, study.row(lock.name, threads)?.ops_per_s()?));
        let points: Vec<(usize, f64)> = threads.iter().filter_map(rate).collect();
        curve(&mut svg, (lock.name, colour), &points, (&x, &y));
        labels.extend(points.last().map(|&(_, rate)| (y(rate), lock.name.to_owned(), colour)));
    }
    names(&mut svg, labels);
    format!("<h2>Acquisitions a second over threads</h2>\n<figure>\n{svg}</svg>\n</figure>\n")
}

type Axes<'a> = (&'a dyn Fn(usize) -> f64, &'a dyn Fn(f64) -> f64);

fn axes(svg: &mut String, threads: &[usize], top: f64, (x, y): Axes<'_>) {
    for part in 0..=4 {
        let rate = top * f64::from(part) / 4.0;
        // Writing to a string does not fail, here and below.
        let _ = writeln!(
            svg,
            "<line class=grid x1={LEFT} x2={} y1={1:.1} y2={1:.1} />\
             <text x={2} y={3:.1} text-anchor=end>{4}</text>",
            WIDTH - RIGHT,
            y(rate),
            LEFT - 8.0,
            y(rate) + 4.0,
            si(rate),
        );
    }
    for &count in threads {
        let _ = writeln!(
            svg,
            "<text x={:.1} y={} text-anchor=middle>{count}</text>",
            x(count),
            HEIGHT - BOTTOM + 18.0
        );
    }
}

fn curve(
    svg: &mut String,
    (name, colour): (&str, &str),
    points: &[(usize, f64)],
    (x, y): Axes<'_>,
) {
    let line: Vec<_> =
        points.iter().map(|&(count, rate)| format!("{:.1},{:.1}", x(count), y(rate))).collect();
    let dashes = if name == IDEAL { " stroke-dasharray=\"6 5\"" } else { "" };
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=none stroke=\"{colour}\" stroke-width=2{dashes} />",
        line.join(" ")
    );
    for &(count, rate) in points {
        let _ = writeln!(
            svg,
            "<circle cx={:.1} cy={:.1} r=3.5 fill=\"{colour}\"><title>{name}, {count} threads: \
             {}/s</title></circle>",
            x(count),
            y(rate),
            si(rate),
        );
    }
}

/// The names of the curves at their ends, none upon another.
fn names(svg: &mut String, mut labels: Vec<(f64, String, &str)>) {
    labels.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut last = f64::MIN;
    for (y, name, colour) in labels {
        let y = (y + 4.0).max(last + 15.0);
        last = y;
        let _ = writeln!(
            svg,
            "<text x={} y={y:.1} style=\"fill:{colour}\">{}</text>",
            WIDTH - RIGHT + 12.0,
            escape(&name)
        );
    }
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

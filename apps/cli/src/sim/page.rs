//! The rows as one page that needs nothing else: for each case two drawings, one curve a lock, and
//! what others have measured beside them.

use std::fmt::Write as _;

use serde_json::Value;

use super::{cases, published, tables};
use crate::output::table::si;

const STYLE: &str = include_str!("../run/html/page.css");
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 70.0;
/// Where the names of the curves stand.
const RIGHT: f64 = 190.0;
const TOP: f64 = 16.0;
const BASE: f64 = HEIGHT - 40.0;
/// Between the names of two curves.
const LINE: f64 = 15.0;

/// One curve: what it is called, its points, and whether it was measured by others.
struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
    published: bool,
}

/// The page of `rows`, of which those of a case stand together, and in it those of a lock.
pub fn page(machine: &str, heading: &str, rows: &[Value]) -> String {
    let mut body = String::new();
    for of_case in rows.chunk_by(|one, next| one["case"] == next["case"]) {
        let name = of_case[0]["case"].as_str().unwrap_or_default();
        let about = cases::named(name).map_or("", |case| case.about);
        // Writing to a string does not fail, here and below.
        let _ = write!(body, "<h2>{name}: {about}</h2>\n<p class=faint>Operations a second</p>\n");
        let known = published::of(machine, name).map(|known| Curve {
            name: format!("{}, measured", known.subject),
            points: known.points.iter().map(|&(at, mega)| (at as f64, mega * 1e6)).collect(),
            published: true,
        });
        let work: Vec<_> = curves(of_case, "ops_per_s").into_iter().chain(known).collect();
        body += &drawing(&work, si);
        if work.iter().any(|curve| curve.published) {
            let _ = writeln!(body, "<p class=faint>Dashed: {}</p>", published::SOURCE);
        }
        body += "<p class=faint>Jain's index of the threads' operations</p>\n";
        body += &drawing(&curves(of_case, "jain"), |value| format!("{value:.2}"));
    }
    let text = tables::text(rows, false).replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; \
         style-src 'unsafe-inline'\">\n<title>antiphon sim</title>\n<style>\n{STYLE}\
         .curve {{ fill: none; stroke-width: 2 }} .published {{ stroke-dasharray: 5 4 }}\n\
         </style>\n</head>\n<body>\n<h1>antiphon sim</h1>\n<p>{}</p>\n{body}\
         <h2>Figures</h2>\n<div class=wide><pre>{text}</pre></div>\n</body>\n</html>\n",
        heading.replace('&', "&amp;").replace('<', "&lt;")
    )
}

fn curves(rows: &[Value], key: &str) -> Vec<Curve> {
    let of_lock = |rows: &[Value]| Curve {
        name: rows[0]["subject"].as_str().unwrap_or_default().to_owned(),
        points: rows
            .iter()
            .filter_map(|row| Some((row["threads"].as_f64()?, row[key].as_f64()?)))
            .collect(),
        published: false,
    };
    rows.chunk_by(|one, next| one["subject"] == next["subject"]).map(of_lock).collect()
}

/// Threads across, each doubling as wide as the next; figures from 0 up.
fn drawing(curves: &[Curve], words: impl Fn(f64) -> String) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let most = points().map(|point| point.1).fold(f64::MIN_POSITIVE, f64::max);
    let last = points().map(|point| point.0).fold(2.0, f64::max);
    let x = |at: f64| LEFT + at.max(1.0).log2() / last.log2() * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| BASE - value / most * (BASE - TOP);
    let mut svg = format!("<svg class=chart viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=img>\n");
    for part in 0..=4 {
        let value = most * f64::from(part) / 4.0;
        let (at, text) = (y(value), words(value));
        let _ = writeln!(
            svg,
            "<line class=grid x1={LEFT} x2={} y1={at:.1} y2={at:.1} />\
             <text x={} y={:.1} text-anchor=end>{text}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0
        );
    }
    let mut threads: Vec<_> = points().map(|point| point.0 as u64).collect();
    threads.sort_unstable();
    threads.dedup();
    for count in threads {
        let at = x(count as f64);
        let _ = writeln!(
            svg,
            "<text class=faint x={at:.1} y={:.1} text-anchor=middle>{count}</text>",
            BASE + 18.0
        );
    }
    let _ = writeln!(
        svg,
        "<text class=faint x={:.1} y={:.1} text-anchor=end>threads</text>",
        WIDTH - RIGHT,
        BASE + 34.0
    );
    let names = names(curves, &y);
    for (number, curve) in curves.iter().enumerate() {
        draw(&mut svg, curve, colour(number), names[number], (&x, &y));
    }
    svg + "</svg>\n"
}

type Scale<'a> = &'a dyn Fn(f64) -> f64;

fn draw(svg: &mut String, curve: &Curve, colour: String, name_at: f64, (x, y): (Scale, Scale)) {
    let Some(&(_, end)) = curve.points.last() else { return };
    let points: Vec<_> =
        curve.points.iter().map(|&(at, value)| format!("{:.1},{:.1}", x(at), y(value))).collect();
    let kind = if curve.published { "curve published" } else { "curve" };
    let _ = writeln!(
        svg,
        "<polyline class=\"{kind}\" style=\"stroke:{colour}\" points=\"{}\"><title>{}</title>\
         </polyline>",
        points.join(" "),
        curve.name
    );
    for &(at, value) in &curve.points {
        let _ = writeln!(
            svg,
            "<circle style=\"fill:{colour}\" cx={:.1} cy={:.1} r=3><title>{}, {at} threads: {}\
             </title></circle>",
            x(at),
            y(value),
            curve.name,
            si(value)
        );
    }
    let (from, to) = (WIDTH - RIGHT + 4.0, WIDTH - RIGHT + 22.0);
    let _ = writeln!(
        svg,
        "<line style=\"stroke:{colour}\" x1={from} x2={to} y1={:.1} y2={name_at:.1} />\
         <text x={} y={:.1}>{}</text>",
        y(end),
        to + 4.0,
        name_at + 4.0,
        curve.name
    );
}

/// How high the name of each curve stands: where the curve ends, but none over another.
fn names(curves: &[Curve], y: Scale) -> Vec<f64> {
    let end = |curve: &Curve| curve.points.last().map_or(BASE, |&(_, value)| y(value));
    let mut order: Vec<_> = (0..curves.len()).collect();
    // From the bottom up.
    order.sort_by(|&one, &other| end(&curves[other]).total_cmp(&end(&curves[one])));
    let mut places = vec![0.0; curves.len()];
    let mut below = BASE + LINE;
    for curve in order {
        below = end(&curves[curve]).min(below - LINE);
        places[curve] = below;
    }
    places
}

/// Hues as far apart as the golden angle, so that neighbours differ.
fn colour(number: usize) -> String {
    format!("hsl({:.0} 65% 45%)", number as f64 * 137.5 % 360.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn there_is_a_curve_for_each_lock_and_one_for_what_was_measured() {
        let row = |subject: &str, threads: u64, figure: f64| {
            json!({
                "case": "lock2", "subject": subject, "threads": threads, "ops_per_s": figure,
                "jain": 1.0,
            })
        };
        let rows = [row("mcs", 1, 1e6), row("mcs", 72, 2e6), row("cna", 1, 1e6)];
        let page = page("e7-8895v3-4s", "x < y", &rows);
        // Two locks twice, and two that others have measured.
        assert_eq!(page.matches("<polyline").count(), 6);
        assert_eq!(page.matches("class=\"curve published\"").count(), 2);
        assert!(page.contains("x &lt; y") && page.contains("cna, measured"));
        assert!(!page.contains("NaN") && !page.contains("inf"));
    }

    #[test]
    fn no_name_stands_over_another() {
        let curve =
            |end: f64| Curve { name: String::new(), points: vec![(1.0, end)], published: false };
        let curves: Vec<_> = [5.0, 5.0, 5.1, 0.0, 9.0].map(curve).into();
        let mut places = names(&curves, &|value| 300.0 - value * 30.0);
        places.sort_by(f64::total_cmp);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LINE - 1e-9), "{places:?}");
    }
}

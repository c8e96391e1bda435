//! The report as one self-contained page: for each case two drawings, with a curve for each lock,
//! beside published measurements.

use std::fmt::Write as _;

use antiphon_report::page;
use antiphon_report::page::curves::{Curve, drawing};
use antiphon_report::page::escape;
use antiphon_report::table::si;
use serde_json::Value;

use super::{cases, published, tables};

/// Returns the page of `rows`. Rows of a case must be adjacent, and within it those of a lock.
pub fn page(machine: &str, heading: &str, rows: &[Value]) -> String {
    let mut body = format!("<p>{}</p>\n", escape(heading));
    for of_case in rows.chunk_by(|one, next| one["case"] == next["case"]) {
        let name = of_case[0]["case"].as_str().unwrap_or_default();
        let about = cases::named(name).map_or("", |case| case.about);
        // Writing to a string does not fail, here and below.
        let _ = write!(body, "<h2>{name}: {about}</h2>\n<p class=faint>Operations a second</p>\n");
        let known = published::of(machine, name).map(|known| Curve {
            name: format!("{}, measured", known.subject),
            points: known.points.iter().map(|&(at, mega)| (at as f64, mega * 1e6)).collect(),
            dashed: true,
        });
        let work: Vec<_> = curves(of_case, "ops_per_s").into_iter().chain(known).collect();
        body += &drawing(&work, si);
        if work.iter().any(|curve| curve.dashed) {
            let _ = writeln!(body, "<p class=faint>Dashed: {}</p>", published::SOURCE);
        }
        body += "<p class=faint>Jain's index of the threads' operations</p>\n";
        body += &drawing(&curves(of_case, "jain"), |value| format!("{value:.2}"));
        for note in tables::notes(of_case).lines() {
            let _ = writeln!(body, "<p class=faint>{}</p>", escape(note));
        }
    }
    page::with_tables("antiphon sim", &body, &tables::text(rows, false))
}

fn curves(rows: &[Value], key: &str) -> Vec<Curve> {
    let name = |row: &Value| row["subject"].as_str().unwrap_or_default().to_owned();
    let point = |row: &Value| Some((row["threads"].as_f64()?, row[key].as_f64()?));
    let mut curves = Curve::by_name(rows, name, point);
    curves.retain(|curve| !curve.points.is_empty());
    curves
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
        let absent = json!({
            "case": "lock2", "subject": "rcl", "threads": 1, "servers": 1, "not_here": "a & b",
        });
        let rows = [row("mcs", 1, 1e6), row("mcs", 72, 2e6), row("cna", 1, 1e6), absent];
        let page = page("e7-8895v3-4s", "x < y", &rows);
        // Two locks in two drawings, and two curves of published measurements.
        assert_eq!(page.matches("<polyline").count(), 6);
        assert_eq!(page.matches("class=\"curve dashed\"").count(), 2);
        assert!(page.contains("<p class=faint>rcl is not here: a &amp; b</p>"));
        assert!(page.contains("x &lt; y") && page.contains("cna, measured"));
        assert!(!page.contains("NaN") && !page.contains("inf"));
    }
}

//! The rows as one page that needs nothing else: for each set of conditions the distribution of
//! tardiness by each scheme; where numbers of players were asked for, what becomes of them (of the
//! frame rate it is the document's figure 13); and the tables.

use std::fmt::Write as _;

use antiphon_report::page;
use antiphon_report::page::curves::{Curve, distribution, drawing_of};
use antiphon_report::page::escape;
use antiphon_report::table::{duration, si};

use super::rows::{Report, Row};
use super::tables;

/// All of it.
pub fn page(report: &Report) -> String {
    let mut body = String::new();
    for rows in report.rows.chunk_by(|one, next| one.cell == next.cell) {
        let curves: Vec<_> = rows.iter().filter(|row| !row.cdf.is_empty()).map(curve).collect();
        // Writing to a string does not fail, here and below.
        let _ = write!(
            body,
            "<h2>{}</h2>\n<p class=faint>How late timers are</p>\n<figure>\n{}</figure>\n",
            escape(&rows[0].cell.to_string()),
            distribution(&curves, |us| duration(us * 1e3)),
        );
        for row in rows {
            if let Some(trouble) = &row.trouble {
                let (kind, what) = trouble.json();
                let name = row.subject;
                let _ = writeln!(body, "<p class=faint>{name}: {kind}: {}</p>", escape(what));
            }
        }
    }
    for (what, curves) in by_players(report) {
        let _ = write!(
            body,
            "<h2>{what}, by players</h2>\n<figure>\n{}</figure>\n",
            drawing_of("player", &curves, si)
        );
    }
    let tables = escape(&tables::text(report, false));
    let _ = writeln!(body, "<h2>Figures</h2>\n<div class=wide><pre>{tables}</pre></div>");
    page::page("antiphon bench loop", &body, None)
}

fn curve(row: &Row) -> Curve {
    Curve::of_distribution(row.subject, &row.cdf, !row.ours)
}

/// The curves by the number of players, where several were asked for.
fn by_players(report: &Report) -> Vec<(&'static str, Vec<Curve>)> {
    let Some(first) = report.rows.first() else { return Vec::new() };
    let like = |row: &&Row| {
        let cell = super::cases::Cell { players: first.cell.players, ..row.cell };
        cell == first.cell && row.trouble.is_none()
    };
    let rows: Vec<_> = report.rows.iter().filter(like).collect();
    let curves = |figure: &str, each: bool| {
        let mut curves: Vec<Curve> = Vec::new();
        for row in &rows {
            let Some(value) = row.median(figure) else { continue };
            let players = row.cell.players as f64;
            let point = (players, if each { value / players } else { value });
            match curves.iter_mut().find(|curve| curve.name == row.subject) {
                Some(curve) => curve.points.push(point),
                None => curves.push(Curve {
                    name: row.subject.to_owned(),
                    points: vec![point],
                    dashed: !row.ours,
                }),
            }
        }
        curves
    };
    if rows.iter().all(|row| row.cell.players == first.cell.players) {
        return Vec::new();
    }
    vec![
        ("Frames that each player shows a second", curves("fps", true)),
        ("Frames shown a second", curves("fps", false)),
        ("Chunks decoded a second", curves("chunks_per_s", false)),
        ("Context switches a second", curves("switches_per_s", false)),
    ]
}

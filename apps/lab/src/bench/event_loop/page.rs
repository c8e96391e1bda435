//! The report as one self-contained page: for each set of conditions, the distribution of tardiness
//! by scheme; where several numbers of players were asked for, the figures by that number (for the
//! frame rate, this is the document's figure 13); and the tables.

use antiphon_report::page::curves::{Curve, drawing_of};
use antiphon_report::table::{duration, si};

use super::Plan;
use super::rows::Row;
use crate::bench::{benchmark, page};

/// Returns the whole page.
pub fn page(plan: &Plan, rows: &[Row]) -> String {
    let cells = rows.chunk_by(|one, next| one.cell == next.cell).map(|rows| {
        let (title, caption) = (rows[0].cell.to_string(), "How late timers are");
        let show = |us| duration(us * 1e3);
        page::distributions(&title, caption, rows, |of| &of.cdf, show)
    });
    let by_players = by_players(rows).into_iter().map(|(what, curves)| {
        let drawing = drawing_of("player", &curves, si);
        format!("<h2>{what}, by players</h2>\n<figure>\n{drawing}</figure>\n")
    });
    let drawings: String = cells.chain(by_players).collect();
    page::page("loop", &drawings, &benchmark::text(plan, rows, false))
}

/// Returns the curves by number of players, if several numbers were asked for.
fn by_players(rows: &[Row]) -> Vec<(&'static str, Vec<Curve>)> {
    let Some(first) = rows.first() else { return Vec::new() };
    let like = |row: &&Row| {
        let cell = super::cases::Cell { players: first.cell.players, ..row.cell };
        cell == first.cell && row.trouble.is_none()
    };
    let rows: Vec<_> = rows.iter().filter(like).collect();
    let curves = |figure: &str, each: bool| {
        let mut curves: Vec<Curve> = Vec::new();
        for row in &rows {
            let Some(value) = row.summary.median(figure) else { continue };
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

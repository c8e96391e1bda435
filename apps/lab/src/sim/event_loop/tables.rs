//! The tables of `sim loop`.

use antiphon_report::table::{Cell, Table, si};

use super::rows::Row;
use super::subjects::Subject;
use crate::named::Named as _;

/// Returns a table for each case.
pub fn text(rows: &[Row], colour: bool) -> String {
    let mut text = String::new();
    for of_case in rows.chunk_by(|one, next| one.case.name == next.case.name) {
        let case = of_case[0].case;
        text += &format!("{}: {}\n{}\n", case.name, case.about, table(of_case).render(colour));
    }
    text + &legend(rows) + RULE
}

/// Returns a legend of the subjects.
fn legend(rows: &[Row]) -> String {
    let mut subjects: Vec<Subject> = Vec::new();
    for row in rows {
        if !subjects.contains(&row.subject) {
            subjects.push(row.subject);
        }
    }
    let line = |subject: Subject| format!("{:<11}{}\n", subject.name(), subject.about());
    subjects.into_iter().map(line).collect()
}

const RULE: &str = "\
p50 …      how late timers are dispatched, in microseconds; others': without those that misbehave
jain       Jain's index: of CPU time of all threads, of players', of the frames they have shown
share      players' part of all CPU time
frames/s   shown, of all players; switches and turns (given by the subject) are a core's, a second
far        lines from another socket, a turn
";

const HEADS: [&str; 17] = [
    "",
    ">cores",
    "place",
    ">players",
    ">hogs",
    ">p50",
    ">p99",
    ">p99.9",
    ">max",
    ">others' p99",
    ">jain",
    ">players",
    ">frames",
    ">share",
    ">frames/s",
    ">switches",
    ">turns",
];

fn table(rows: &[Row]) -> Table {
    let heads: Vec<_> = HEADS.into_iter().chain([">far", ">moves"]).collect();
    let mut table = Table::new(&heads);
    for row in rows {
        let late = row.tardiness;
        let us = |us: f64| Cell::number(format!("{us:.0}"));
        let index = |index: f64| Cell::number(format!("{index:.3}"));
        let known = |figure: Option<String>| Cell::number(figure.unwrap_or_else(|| "-".to_owned()));
        table.row(vec![
            Cell::text(row.subject.name()),
            Cell::number(row.cores.to_string()),
            Cell::text(row.placement.name()),
            Cell::number(row.players.to_string()),
            Cell::number((row.hogs * row.cores).to_string()),
            us(late.p50_us),
            us(late.p99_us),
            us(late.p999_us),
            us(late.max_us),
            known(row.others.map(|others| format!("{:.0}", others.p99_us))),
            index(row.jain_cpu),
            index(row.jain_cpu_players),
            index(row.jain_fps),
            Cell::number(format!("{:.1} %", 100.0 * row.players_share)),
            Cell::number(si(row.frames_per_s)),
            Cell::number(format!("{:.0}", row.switches_per_s)),
            known(row.handovers_per_s.map(|turns| format!("{turns:.0}"))),
            known(row.remote_per_handover.map(|far| format!("{far:.2}"))),
            Cell::number(row.moves.to_string()),
        ]);
    }
    table
}

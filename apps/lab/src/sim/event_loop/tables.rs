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

fn table(rows: &[Row]) -> Table {
    let us = |us: f64| Cell::number(format!("{us:.0}"));
    let index = |index: f64| Cell::number(format!("{index:.3}"));
    let count = |count: usize| Cell::number(count.to_string());
    Table::of(
        rows,
        &[
            ("", &|row| Cell::text(row.subject.name())),
            (">cores", &|row| count(row.cores)),
            ("place", &|row| Cell::text(row.placement.name())),
            (">players", &|row| count(row.players)),
            (">hogs", &|row| count(row.hogs * row.cores)),
            (">p50", &|row| us(row.tardiness.p50_us)),
            (">p99", &|row| us(row.tardiness.p99_us)),
            (">p99.9", &|row| us(row.tardiness.p999_us)),
            (">max", &|row| us(row.tardiness.max_us)),
            (">others' p99", &|row| Cell::known(row.others, |late| format!("{:.0}", late.p99_us))),
            (">jain", &|row| index(row.jain_cpu)),
            (">players", &|row| index(row.jain_cpu_players)),
            (">frames", &|row| index(row.jain_fps)),
            (">share", &|row| Cell::number(format!("{:.1} %", 100.0 * row.players_share))),
            (">frames/s", &|row| Cell::number(si(row.frames_per_s))),
            (">switches", &|row| Cell::number(format!("{:.0}", row.switches_per_s))),
            (">turns", &|row| Cell::known(row.handovers_per_s, |turns| format!("{turns:.0}"))),
            (">far", &|row| Cell::known(row.remote_per_handover, |far| format!("{far:.2}"))),
            (">moves", &|row| Cell::number(row.moves.to_string())),
        ],
    )
}

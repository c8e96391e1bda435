//! The results of the replays as tables.

use antiphon_replay::{IDEAL, Row};
use antiphon_report::shell;
use antiphon_report::table::{Cell, Table, Tone, count, duration, printable, shortened, si};
use antiphon_report::words::{noun, several, wrapped};

use super::study::Study;
use crate::verdict;

/// The text of the results.
pub fn text(study: &Study, colour: bool) -> String {
    let mut out = format!(
        "{}: recorded in {} with {}, {} {}; simulated on {}\n",
        printable(&shortened(&shell::line(&study.command), 60)),
        duration(study.recorded_ns as f64),
        several(study.recorded_threads as u64, "thread"),
        count(study.takes),
        noun(study.takes, "acquisition"),
        printable(&study.asked.machine.name),
    );
    out += &verdict::text(&verdict::replay::of(study), usize::MAX);
    out.push('\n');
    out += &rows(study).render(colour);
    if !study.sites.is_empty() {
        out += "\n";
        out += &sites(study).render(colour);
    }
    if !study.notes.is_empty() {
        out.push('\n');
    }
    for note in &study.notes {
        let note = printable(&format!("Note: {note}"));
        out += &format!("{}\n", wrapped(&note, verdict::COLUMNS));
    }
    out
}

fn rows(study: &Study) -> Table {
    let mut table =
        Table::new(&["lock", ">threads", ">acquired/s", ">speed-up", ">waiting", ">takes"]);
    for row in &study.rows {
        table.row(cells(study, row));
    }
    table
}

/// The cells of a row: its figures, or that the replay does not end.
fn cells(study: &Study, row: &Row) -> Vec<Cell> {
    let tone = if row.lock == IDEAL { Tone::Faint } else { Tone::Plain };
    let number = |value: Option<String>| {
        Cell::number(value.unwrap_or_else(|| "does not end".to_owned())).tone(tone)
    };
    let speedup = study.speedup(row);
    let better = match speedup {
        _ if row.lock == IDEAL => tone,
        Some(speedup) if speedup >= 1.03 => Tone::Good,
        Some(speedup) if speedup <= 0.97 => Tone::Bad,
        _ => tone,
    };
    vec![
        Cell::text(row.lock).tone(tone),
        number(Some(row.threads.to_string())),
        number(row.ops_per_s().map(si)),
        number(speedup.map(|speedup| format!("{speedup:.2}×"))).tone(better),
        number(row.wait_share().map(|share| format!("{:.1} %", share * 100.0))),
        number(row.mean(|played| played.end_ns as f64).map(duration)),
    ]
}

fn sites(study: &Study) -> Table {
    let mut table = Table::new(&["site", ">acquired", ">of the waiting", ">half the hold time"]);
    for site in &study.sites {
        let gain = site.half_the_hold.map(|gain| format!("{:+.1} %", gain * 100.0));
        table.row(vec![
            Cell::text(shortened(&printable(&site.name), 48)),
            Cell::number(count(site.takes)),
            Cell::number(format!("{:.0} %", site.wait_share * 100.0)),
            Cell::number(gain.unwrap_or_else(|| "does not end".to_owned())),
        ]);
    }
    table
}

//! The tables of locks.

use antiphon_report::stats::Quartiles;
use antiphon_report::table::{Cell as Field, Table, Tone, colour_stdout, duration, si};

use super::measure::{Case, Contended, JUSTINE_THREADS, Side, Spent};
use super::plan::Cell;
use super::rows::{Means, Row, Summary};
use super::waits::Verdict;
use crate::bench::columns::{self, maybe};
use crate::bench::ratio::{Better, Ratio};

/// A ratio this close to 1 is not coloured.
const NEAR: f64 = 0.05;

type Columns = columns::Columns<Cell, Summary>;

/// Returns the columns of the table of these rows.
pub fn columns(rows: &[Row]) -> Columns {
    let Cell { case, reads, .. } = rows[0].cell;
    let to = rows[0].peer.unwrap_or("nothing");
    let (columns, to_peer) = (Columns::of(rows), format!(">to {to}"));
    let with_threads = |columns: Columns| {
        columns
            .condition(">threads", |row| Field::number(row.cell.threads.to_string()))
            .subject("lock")
    };
    match (case, reads) {
        (Case::Continuous, _) => sides(with_threads(columns)),
        (Case::Justine, _) => justine(columns.subject("lock"), &to_peer),
        (case, _) if case.is_long() => long(with_threads(columns), &to_peer),
        (Case::Short | Case::FiveMicroseconds, Some(_)) => {
            let columns = work(with_threads(columns), &to_peer).number(">Jain", two, jain);
            let columns = waits(columns, "read p50*", readers);
            price(waits(columns, "write p50*", writers))
        }
        (Case::Short | Case::FiveMicroseconds, None) => {
            let columns = work(with_threads(columns), &to_peer);
            let columns = columns.number(">Jain", two, jain).number(">10 ms", two, |summary| {
                summary.contended.as_ref().and_then(|one| one.jain_10ms)
            });
            price(waits(columns, "wait p50*", all))
        }
        _ => {
            let columns = columns.subject("lock").quartiles(">ns a pair", two, lead);
            let columns = share(columns, &format!(">ratio to {to}"), Better::Less, to_first);
            share(columns, ">to the best", Better::Less, to_best)
        }
    }
}

/// The heading of a table.
pub fn heading(cell: &Cell) -> String {
    let load = cell.load.name();
    let reads = cell.reads.map_or(String::new(), |reads| format!(", {reads} % of them reads"));
    match cell.case {
        Case::Uncontended => format!("Uncontended, a second thread alive, load {load}"),
        Case::UncontendedAlone => format!("Uncontended, no thread ever made, load {load}"),
        Case::UncontendedRead => format!("Reads, uncontended, load {load}"),
        Case::UncontendedWrite => format!("Writes, uncontended, load {load}"),
        Case::Short => format!("Contended, short critical sections{reads}, load {load}"),
        Case::FiveMicroseconds => {
            format!("Contended, critical sections of 5 µs{reads}, load {load}")
        }
        Case::HundredMicroseconds => {
            format!("Contended, critical sections of 100 µs, load {load}")
        }
        Case::Millisecond => format!("Contended, critical sections of 1 ms, load {load}"),
        Case::TenMilliseconds => format!("Contended, critical sections of 10 ms, load {load}"),
        Case::Sleep => format!("Contended, owners that sleep for 1 ms, load {load}"),
        Case::Justine => {
            format!(
                "{JUSTINE_THREADS} threads, 100 000 increments each, load {load}; less is better"
            )
        }
        Case::Continuous => {
            format!("One writer, and readers of 5 µs that come again at once, load {load}")
        }
    }
}

/// Returns the geometric means, the waits and the explanation below the tables.
pub fn about(rows: &[Row], means: &[Means], waits: &[Verdict], reference: &str) -> String {
    let (mut text, colour) = (String::new(), colour_stdout());
    if !means.is_empty() {
        text += "Geometric means over the contended cells; more is better\n";
        text += &format!("{}\n", geometric(means, reference).render(colour));
    }
    if !waits.is_empty() {
        text += &format!("Waits beside those of {reference}, cell by cell; ours, theirs\n");
        text += &format!("{}\n", waiting(waits).render(colour));
    }
    text += "Medians of repetitions; a ratio is the median of paired ratios.\n";
    if rows.iter().any(|row| row.cell.case.contended()) {
        text += "Jain: fairness over the whole time and over windows of 10 ms, 1 is equal shares.\n\
                 * of the waits that an observer meets at a random instant.\n";
    }
    text
}

/// Adds the costs of a given number of critical sections.
fn justine(columns: Columns, to: &str) -> Columns {
    let spent = |of: fn(&Spent) -> f64| move |summary: &Summary| summary.spent.as_ref().map(of);
    let columns = columns.quartiles(">wall", duration, lead);
    let columns = share(columns, to, Better::Less, to_first);
    let columns = share(columns, ">best", Better::Less, to_best)
        .time(">user", spent(|spent| spent.user_ns))
        .time(">system", spent(|spent| spent.system_ns))
        .time(">CPU time", spent(Spent::cpu_ns));
    share(columns, to, Better::Less, cpu)
}

/// Adds the costs of waiters while critical sections are long.
fn long(columns: Columns, to: &str) -> Columns {
    let columns = columns.number(">ops/s", si, |summary| summary.lead.median());
    let columns = share(columns, to, Better::More, to_first)
        .time(">longest wait", |summary| all(summary).map(|all| all.longest_wait_ns));
    share(price(columns), to, Better::Less, cpu)
}

/// Adds the figures of readers and writers. Where readers never leave, the work done means nothing:
/// a lock that starves the writer does the most.
fn sides(columns: Columns) -> Columns {
    let work = |side: fn(&Summary) -> Option<&Side>| {
        move |summary: &Summary| side(summary).map_or(0.0, |side| side.ops_per_s)
    };
    let columns = waits(columns.number(">writes/s", si, work(writers)), "write p50*", writers);
    let columns = columns
        .time(">longest of all", |summary| summary.worst.and_then(|worst| worst.writer))
        .number(">reads/s", si, work(readers));
    waits(columns, "read p50*", readers)
}

/// Adds the work done, and its ratios to the peers' work.
fn work(columns: Columns, to: &str) -> Columns {
    let columns = columns.quartiles(">ops/s", si, lead);
    share(share(columns, to, Better::More, to_first), ">best", Better::More, to_best)
}

/// Adds the cost of the work.
fn price(columns: Columns) -> Columns {
    let of =
        |of: fn(&Contended) -> f64| move |summary: &Summary| summary.contended.as_ref().map(of);
    columns
        .number(">switches/kop", two, of(|one| one.switches_per_kop))
        .time(">CPU/op", of(|one| one.cpu_ns_per_op))
}

/// Adds the waits of all threads, of readers or of writers, if there were any.
fn waits(columns: Columns, p50: &str, side: fn(&Summary) -> Option<&Side>) -> Columns {
    let of = |of: fn(&Side) -> f64| move |summary: &Summary| side(summary).map(of);
    columns
        .time(&format!(">{p50}"), of(|side| side.wait_ns_at_random_instant.p50))
        .time(">p99*", of(|side| side.wait_ns_at_random_instant.p99))
        .time(">longest", of(|side| side.longest_wait_ns))
}

/// Adds a column of ratios. Our ratios are coloured unless they are near 1.
fn share(columns: Columns, head: &str, better: Better, of: fn(&Summary) -> Option<f64>) -> Columns {
    columns.field(head, move |row| {
        let Some(ratio) = of(&row.summary) else { return Field::number("-") };
        let goodness = if better == Better::More { ratio } else { 1.0 / ratio };
        let tone = match goodness {
            _ if !row.ours => Tone::Faint,
            good if good > 1.0 + NEAR => Tone::Good,
            good if good < 1.0 - NEAR => Tone::Bad,
            _ => Tone::Plain,
        };
        Field::number(times(ratio)).tone(tone)
    })
}

fn lead(summary: &Summary) -> Option<Quartiles> {
    summary.lead.of
}

fn to_first(summary: &Summary) -> Option<f64> {
    summary.ratio.median()
}

fn to_best(summary: &Summary) -> Option<f64> {
    summary.ratio_best
}

fn cpu(summary: &Summary) -> Option<f64> {
    summary.ratio_cpu.as_ref().and_then(Ratio::median)
}

fn all(summary: &Summary) -> Option<&Side> {
    summary.contended.as_ref().map(|one| &one.all)
}

fn readers(summary: &Summary) -> Option<&Side> {
    summary.contended.as_ref()?.readers.as_ref()
}

fn writers(summary: &Summary) -> Option<&Side> {
    summary.contended.as_ref()?.writers.as_ref()
}

fn jain(summary: &Summary) -> Option<f64> {
    summary.contended.as_ref()?.jain
}

fn two(figure: f64) -> String {
    format!("{figure:.2}")
}

fn times(ratio: f64) -> String {
    format!("{ratio:.2}×")
}

fn geometric(means: &[Means], reference: &str) -> Table {
    let to = format!(">to {reference}");
    let mut table = Table::new(&["lock", "load", ">cells", &to, ">to the best", ">least", "where"]);
    for one in means {
        table.row(vec![
            Field::text(one.subject),
            Field::text(one.load.name()),
            Field::number(one.cells.to_string()),
            maybe(one.mean, times),
            maybe(one.mean_best, times),
            maybe(one.least.map(|(ratio, _)| ratio), times),
            Field::text(one.least.map_or(String::new(), |(_, cell)| cell.to_string())),
        ]);
    }
    table
}

fn waiting(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new(&["lock", "load", "rule", ">kept in", "missed in"]);
    for one in verdicts {
        let kept = one.cells - one.misses.len();
        let tone = if one.misses.is_empty() { Tone::Plain } else { Tone::Bad };
        table.row(vec![
            Field::text(one.subject),
            Field::text(one.load.name()),
            Field::text(one.rule.name()),
            Field::number(format!("{kept} of {}", one.cells)).tone(tone),
            Field::text(one.missed()),
        ]);
    }
    table
}

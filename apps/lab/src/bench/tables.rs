//! The tables of `bench`.

use antiphon_report::stats::Quartiles;
use antiphon_report::table::{Cell as Field, Table, Tone, colour_stdout, duration, si};

use super::measure::{Case, Contended, JUSTINE_THREADS, Side};
use super::plan::Cell;
use super::rounds::Trouble;
use super::rows::{Report, Row, Summary};
use super::waits::Verdict;

/// A ratio as near to 1 as this is no difference worth a colour.
const NEAR: f64 = 0.05;

/// All of them.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    let colour = colour_stdout();
    let mut groups: Vec<(Cell, Vec<&Row>)> = Vec::new();
    for row in &report.rows {
        let same = |cell: &Cell| {
            let of = |cell: &Cell| (cell.load, cell.case, cell.reads);
            of(cell) == of(&row.cell)
        };
        match groups.last_mut().filter(|(cell, _)| same(cell)) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((row.cell, vec![row])),
        }
    }
    let reference = report.reference.unwrap_or("nothing");
    for (cell, rows) in groups {
        text += &format!("{}\n", heading(cell));
        let table = match (cell.case, cell.reads) {
            (Case::Continuous, _) => sides(&rows),
            (Case::Justine, _) => justine(&rows, reference),
            (case, _) if case.is_long() => long(&rows, reference),
            (Case::Short | Case::FiveMicroseconds, Some(_)) => mixed(&rows, reference),
            (Case::Short | Case::FiveMicroseconds, None) => contended(&rows, reference),
            _ => alone(&rows, reference),
        };
        text += &format!("{}\n", table.render(colour));
    }
    if !report.summaries.is_empty() {
        text += "Geometric means over the contended cells; more is better\n";
        text += &format!("{}\n", summary(&report.summaries, reference).render(colour));
    }
    if !report.waits.is_empty() {
        text += &format!("Waits beside those of {reference}, cell by cell; ours, theirs\n");
        text += &format!("{}\n", waiting(&report.waits).render(colour));
    }
    text += "Medians of repetitions; a ratio is the median of paired ratios.\n";
    if report.rows.iter().any(|row| row.cell.case.contended()) {
        text += "Jain: fairness over the whole time and over windows of 10 ms, 1 is equal shares.\n\
                 * of the waits that an observer meets at a random instant.\n";
    }
    text
}

fn heading(cell: Cell) -> String {
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

fn alone(rows: &[&Row], reference: &str) -> Table {
    let ratio = format!(">ratio to {reference}");
    let mut table = Table::new(&["lock", ">ns a pair", ">quartiles", &ratio, ">to the best"]);
    for row in rows {
        let mut fields = vec![name(row)];
        match row.lead.filter(|_| row.trouble.is_none()) {
            None => fields.push(trouble(row.trouble.as_ref())),
            Some(lead) => fields.extend([
                Field::number(format!("{:.2}", lead.median)),
                Field::number(format!("{:.2} – {:.2}", lead.p25, lead.p75)).tone(Tone::Faint),
                share(row.ratio.map(|ratio| ratio.of.median), row, |ratio| 1.0 / ratio),
                share(row.ratio_best.map(|(ratio, _)| ratio), row, |ratio| 1.0 / ratio),
            ]),
        }
        table.row(fields);
    }
    table
}

/// The table of the costs of a given number of critical sections.
fn justine(rows: &[&Row], reference: &str) -> Table {
    let ratio = format!(">to {reference}");
    let mut table = Table::new(&[
        "lock",
        ">wall",
        ">quartiles",
        &ratio,
        ">best",
        ">user",
        ">system",
        ">CPU time",
        &ratio,
    ]);
    for row in rows {
        let mut fields = vec![name(row)];
        match (row.spent, row.lead) {
            (Some(spent), Some(lead)) if row.trouble.is_none() => fields.extend([
                Field::number(duration(lead.median)),
                Field::number(format!("{} – {}", duration(lead.p25), duration(lead.p75)))
                    .tone(Tone::Faint),
                share(row.ratio.map(|ratio| ratio.of.median), row, |ratio| 1.0 / ratio),
                share(row.ratio_best.map(|(ratio, _)| ratio), row, |ratio| 1.0 / ratio),
                Field::number(duration(spent.user_ns)),
                Field::number(duration(spent.system_ns)),
                Field::number(duration(spent.cpu_ns())),
                share(row.ratio_cpu.map(|ratio| ratio.of.median), row, |ratio| 1.0 / ratio),
            ]),
            _ => fields.push(trouble(row.trouble.as_ref())),
        }
        table.row(fields);
    }
    table
}

fn contended(rows: &[&Row], reference: &str) -> Table {
    let ratio = format!(">to {reference}");
    let mut table = Table::new(&[
        ">threads",
        "lock",
        ">ops/s",
        ">quartiles",
        &ratio,
        ">best",
        ">Jain",
        ">10 ms",
        ">wait p50*",
        ">p99*",
        ">longest",
        ">switches/kop",
        ">CPU/op",
    ]);
    for row in rows {
        let mut fields = vec![Field::number(row.cell.threads.to_string()), name(row)];
        match (&row.contended, row.lead) {
            (Some(one), Some(lead)) if row.trouble.is_none() => {
                fields.extend(throughput(row, lead));
                fields.extend([index(one.jain), index(one.jain_10ms)]);
                fields.extend(waits(Some(&one.all)));
                fields.extend(price(one));
            }
            _ => fields.push(trouble(row.trouble.as_ref())),
        }
        table.row(fields);
    }
    table
}

/// The table of the costs of waiters while critical sections are long.
fn long(rows: &[&Row], reference: &str) -> Table {
    let ratio = format!(">to {reference}");
    let columns =
        [">threads", "lock", ">ops/s", &ratio, ">longest wait", ">switches/kop", ">CPU/op", &ratio];
    let mut table = Table::new(&columns);
    for row in rows {
        let mut fields = vec![Field::number(row.cell.threads.to_string()), name(row)];
        match (&row.contended, row.lead) {
            (Some(one), Some(lead)) if row.trouble.is_none() => {
                fields.push(Field::number(si(lead.median)));
                fields.push(share(row.ratio.map(|ratio| ratio.of.median), row, |ratio| ratio));
                let [_, _, longest] = waits(Some(&one.all));
                fields.push(longest);
                fields.extend(price(one));
                fields.push(share(row.ratio_cpu.map(|ratio| ratio.of.median), row, |ratio| {
                    1.0 / ratio
                }));
            }
            _ => fields.push(trouble(row.trouble.as_ref())),
        }
        table.row(fields);
    }
    table
}

fn mixed(rows: &[&Row], reference: &str) -> Table {
    let ratio = format!(">to {reference}");
    let mut table = Table::new(&[
        ">threads",
        "lock",
        ">ops/s",
        ">quartiles",
        &ratio,
        ">best",
        ">Jain",
        ">read p50*",
        ">p99*",
        ">longest",
        ">write p50*",
        ">p99*",
        ">longest",
        ">switches/kop",
        ">CPU/op",
    ]);
    for row in rows {
        let mut fields = vec![Field::number(row.cell.threads.to_string()), name(row)];
        match (&row.contended, row.lead) {
            (Some(one), Some(lead)) if row.trouble.is_none() => {
                fields.extend(throughput(row, lead));
                fields.push(index(one.jain));
                fields.extend(waits(one.readers.as_ref()));
                fields.extend(waits(one.writers.as_ref()));
                fields.extend(price(one));
            }
            _ => fields.push(trouble(row.trouble.as_ref())),
        }
        table.row(fields);
    }
    table
}

/// The table of readers and writers. Where readers never leave, the work done says nothing: a lock
/// that starves the writer does the most.
fn sides(rows: &[&Row]) -> Table {
    let mut table = Table::new(&[
        ">threads",
        "lock",
        ">writes/s",
        ">write p50*",
        ">p99*",
        ">longest",
        ">longest of all",
        ">reads/s",
        ">read p50*",
        ">p99*",
        ">longest",
    ]);
    for row in rows {
        let mut fields = vec![Field::number(row.cell.threads.to_string()), name(row)];
        match &row.contended {
            Some(one) if row.trouble.is_none() => {
                let [readers, writers] = [one.readers.as_ref(), one.writers.as_ref()];
                let work =
                    |side: Option<&Side>| Field::number(si(side.map_or(0.0, |s| s.ops_per_s)));
                fields.push(work(writers));
                fields.extend(waits(writers));
                fields.push(Field::number(row.worst.writer.map_or("-".to_owned(), duration)));
                fields.push(work(readers));
                fields.extend(waits(readers));
            }
            _ => fields.push(trouble(row.trouble.as_ref())),
        }
        table.row(fields);
    }
    table
}

/// The work done, and its share of what others did.
fn throughput(row: &Row, lead: Quartiles) -> [Field; 4] {
    [
        Field::number(si(lead.median)),
        Field::number(format!("{} – {}", si(lead.p25), si(lead.p75))).tone(Tone::Faint),
        share(row.ratio.map(|ratio| ratio.of.median), row, |ratio| ratio),
        share(row.ratio_best.map(|(ratio, _)| ratio), row, |ratio| ratio),
    ]
}

/// The cost of the work.
fn price(one: &Contended) -> [Field; 2] {
    [
        Field::number(format!("{:.2}", one.switches_per_kop)),
        Field::number(duration(one.cpu_ns_per_op)),
    ]
}

/// The waits of all, of readers or of writers, if there were any.
fn waits(side: Option<&Side>) -> [Field; 3] {
    let figure = |of: fn(&Side) -> f64| {
        Field::number(side.map_or("-".to_owned(), |side| duration(of(side))))
    };
    [
        figure(|side| side.wait_ns_at_random_instant.p50),
        figure(|side| side.wait_ns_at_random_instant.p99),
        figure(|side| side.longest_wait_ns),
    ]
}

fn summary(summaries: &[Summary], reference: &str) -> Table {
    let to = format!(">to {reference}");
    let mut table = Table::new(&["lock", "load", ">cells", &to, ">to the best", ">least", "where"]);
    for one in summaries {
        let ratio = |ratio: Option<f64>| {
            Field::number(ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}×")))
        };
        table.row(vec![
            Field::text(one.subject),
            Field::text(one.load.name()),
            Field::number(one.cells.to_string()),
            ratio(one.mean),
            ratio(one.mean_best),
            ratio(one.least.map(|(ratio, _)| ratio)),
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

fn name(row: &Row) -> Field {
    Field::text(row.subject).tone(if row.ours { Tone::Plain } else { Tone::Faint })
}

/// Why there are no figures.
pub fn trouble(trouble: Option<&Trouble>) -> Field {
    match trouble {
        Some(Trouble::Missing(what)) => Field::text(format!("skipped: {what}")).tone(Tone::Faint),
        Some(Trouble::Failed(what)) => Field::text(format!("failed: {what}")).tone(Tone::Bad),
        None => Field::text("-"),
    }
}

/// A ratio, coloured by `goodness` of it, which is above 1 where ours is better.
fn share(ratio: Option<f64>, row: &Row, goodness: impl Fn(f64) -> f64) -> Field {
    let Some(ratio) = ratio else { return Field::number("-") };
    let tone = match goodness(ratio) {
        _ if !row.ours => Tone::Faint,
        good if good > 1.0 + NEAR => Tone::Good,
        good if good < 1.0 - NEAR => Tone::Bad,
        _ => Tone::Plain,
    };
    Field::number(format!("{ratio:.2}×")).tone(tone)
}

fn index(jain: Option<f64>) -> Field {
    Field::number(jain.map_or("-".to_owned(), |jain| format!("{jain:.2}")))
}

//! The tables of `sim tasks`.

use antiphon_report::table::{Cell, Table, duration, si};

use super::cases::Case;
use super::experiment::Figures;
use super::rows::Row;
use super::subjects::Form;
use crate::named::Named as _;

/// Returns a table for each case.
pub fn text(rows: &[Row], colour: bool) -> String {
    let mut text = String::new();
    for of_case in rows.chunk_by(|one, next| one.case.name == next.case.name) {
        let table = table(of_case).render(colour);
        text += &format!("{}\n{table}\n", heading(of_case[0].case));
    }
    text + RULE + &legend(rows)
}

/// Returns a legend of the subjects.
fn legend(rows: &[Row]) -> String {
    let mut said = Vec::new();
    for Row { subject, .. } in rows {
        let line = format!("{:<21}{}\n", subject.name, subject.about);
        if subject.form == Form::Ours && !said.contains(&line) {
            said.push(line);
        }
    }
    said.concat()
}

/// The heading of a table.
pub fn heading(case: &Case) -> String {
    let Case { name, about, figure, packets, .. } = case;
    format!("{name}: {about} (published: {figure}, {packets} packets)")
}

const RULE: &str = "\
published        the dissertation's scheduler, with its defects; its figures are to the right
p50 …            of a task, from when it is made ready to its end
busy             the share of the workers' time that is the tasks' own, and the spawners'
push             what making a task ready takes, the mean; retries: how often there was no room
tries, hits      of thieves, a task; far, near: lines that move, a task: from another node, or not
";

const HEADS: [&str; 17] = [
    "",
    "form",
    ">workers",
    ">packets/s",
    ">published",
    ">p50",
    ">p99",
    ">p99.9",
    ">p99.99",
    ">busy",
    ">push",
    ">retries",
    ">tries",
    ">hits",
    ">far",
    ">near",
    ">parks",
];

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&HEADS);
    for row in rows {
        let mut cells = vec![
            Cell::text(row.subject.name),
            Cell::text(row.subject.form.name()),
            Cell::number(row.workers.to_string()),
            Cell::number(si(row.ops_per_s())),
            Cell::number(row.published_ops_per_s().map_or("-".to_owned(), si)),
        ];
        let quantile = |share| Cell::number(duration(row.quantile_ns(share)));
        cells.extend([0.5, 0.99, 0.999, 0.9999].map(quantile));
        cells.push(Cell::number(format!("{:.2}", row.busy())));
        cells.push(Cell::number(duration(row.per_task(|figures| figures.push_ns))));
        let counts: [fn(&Figures) -> u64; 6] = [
            |figures| figures.retries,
            |figures| figures.attempts,
            |figures| figures.hits,
            Figures::remote,
            Figures::local,
            |figures| figures.counts.parks,
        ];
        cells.extend(counts.map(|count| Cell::number(format!("{:.2}", row.per_task(count)))));
        table.row(cells);
    }
    table
}

//! The table of the ways to tell other CPUs: a row for each mechanism, from figures
//! `MECHANISM.PART.STATISTIC`.
//!
//! | column | contents |
//! |---|---|
//! | `source` | the least time of the sender's part |
//! | `rest` | from there until the receiver knows |
//! | `handling` | the part of `rest` that the receiver's CPU takes, as measured on the sender's |
//! | `way` | the part of `rest` between the two CPUs |
//! | `syscall` | an empty system call, if there is one in `source`, or in `rest` |
//! | `all` | all others are told at once: until the last knows |
//! | `sender`, `sigma` | the sender's part of that; the deviation of the times when they know |
//! | `× base` | the ratio of medians, to the first mechanism of the same table |

use antiphon_report::table::{Cell, Table, count, printable};

/// Figures by name.
pub type Figures = [(String, u64)];

/// Returns the figure with this name.
pub fn figure(figures: &Figures, name: &str) -> Option<u64> {
    figures.iter().find(|(other, _)| other == name).map(|(_, value)| *value)
}

/// Returns the mechanisms that have figures, in their order.
pub fn mechanisms(figures: &Figures) -> Vec<&str> {
    let name = |(name, _): &'_ (String, u64)| name.find(".unicast.median");
    figures.iter().filter_map(|one| Some(&one.0[..name(one)?])).collect()
}

/// Returns the table of all mechanisms, with times in `unit`; `None` if there are no such figures.
pub fn table(figures: &Figures, unit: &str) -> Option<Table> {
    let all = mechanisms(figures);
    let base = *all.first()?;
    let base_median = figure(figures, &format!("{base}.unicast.median"));
    let ratio = format!(">× {base}");
    let mut table = Table::new(&[
        unit,
        ">least",
        ">median",
        ">p99",
        ">source",
        ">rest",
        ">handling",
        ">way",
        ">syscall",
        ">all: least",
        ">median",
        ">p99",
        ">sender",
        ">sigma",
        &ratio,
    ]);
    for name in all {
        let of = |part: &str| figure(figures, &format!("{name}.{part}"));
        let (least, own) = (of("unicast.min"), of("own.min"));
        let source = of("source.min");
        let median = of("unicast.median");
        let ratio = median.zip(base_median).filter(|(_, base)| *base > 0);
        let ratio = ratio.map(|(median, base)| format!("{:.2}", median as f64 / base as f64));
        let mut row = vec![Cell::text(printable(name))];
        row.extend([least, median, of("unicast.p99"), source].map(number));
        row.extend([less(least, source), less(own, source), less(least, own)].map(number));
        row.push(number(of("syscall.min")));
        let broadcast = ["broadcast.min", "broadcast.median", "broadcast.p99"];
        row.extend(broadcast.map(|part| number(of(part))));
        row.extend(["broadcast_source.median", "sigma.median"].map(|part| number(of(part))));
        row.push(Cell::number(ratio.unwrap_or_else(none)));
        table.row(row);
    }
    Some(table)
}

/// Returns the difference of two figures; `None` if noise has made it negative.
fn less(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one?.checked_sub(other?)
}

fn number(value: Option<u64>) -> Cell {
    Cell::number(value.map_or_else(none, count))
}

fn none() -> String {
    "–".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_what_was_measured_and_what_follows_from_it() {
        let figures = [
            ("raw.unicast.min", 100),
            ("raw.unicast.median", 110),
            ("raw.source.min", 30),
            ("raw.own.min", 90),
            ("line.unicast.median", 55),
            ("line.unicast.min", 20),
            ("line.source.min", 30),
            ("line.syscall.min", 9),
            ("else", 1),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        assert_eq!(mechanisms(&figures), ["raw", "line"]);
        let text = table(&figures, "ticks").expect("mechanisms").render(false);
        let rows: Vec<Vec<_>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        let raw = [
            "raw", "100", "110", "–", "30", "70", "60", "10", "–", "–", "–", "–", "–", "–", "1.00",
        ];
        let line =
            ["line", "20", "55", "–", "30", "–", "–", "–", "9", "–", "–", "–", "–", "–", "0.50"];
        assert_eq!(rows[1], raw);
        assert_eq!(rows[2], line);
        assert!(table(&figures[7..], "ticks").is_none());
    }
}

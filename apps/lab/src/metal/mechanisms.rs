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
    let of = |name: &str, part: &str| figure(figures, &format!("{name}.{part}"));
    let base_median = of(base, "unicast.median").filter(|base| *base > 0);
    let ratio = |name| {
        let both = of(name, "unicast.median").zip(base_median);
        Cell::known(both, |(median, base)| format!("{:.2}", median as f64 / base as f64))
    };
    let number = |figure| Cell::known(figure, count);
    let rest = |name, of_all| less(of(name, of_all), of(name, "source.min"));
    let way = |name| less(of(name, "unicast.min"), of(name, "own.min"));
    Some(Table::of(
        &all,
        &[
            (unit, &|name| Cell::text(printable(name))),
            (">least", &|name| number(of(name, "unicast.min"))),
            (">median", &|name| number(of(name, "unicast.median"))),
            (">p99", &|name| number(of(name, "unicast.p99"))),
            (">source", &|name| number(of(name, "source.min"))),
            (">rest", &|name| number(rest(name, "unicast.min"))),
            (">handling", &|name| number(rest(name, "own.min"))),
            (">way", &|name| number(way(name))),
            (">syscall", &|name| number(of(name, "syscall.min"))),
            (">all: least", &|name| number(of(name, "broadcast.min"))),
            (">median", &|name| number(of(name, "broadcast.median"))),
            (">p99", &|name| number(of(name, "broadcast.p99"))),
            (">sender", &|name| number(of(name, "broadcast_source.median"))),
            (">sigma", &|name| number(of(name, "sigma.median"))),
            (&format!(">× {base}"), &|name| ratio(name)),
        ],
    ))
}

/// Returns the difference of two figures; `None` if noise has made it negative.
fn less(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one?.checked_sub(other?)
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
            "raw", "100", "110", "-", "30", "70", "60", "10", "-", "-", "-", "-", "-", "-", "1.00",
        ];
        let line =
            ["line", "20", "55", "-", "30", "-", "-", "-", "9", "-", "-", "-", "-", "-", "0.50"];
        assert_eq!(rows[1], raw);
        assert_eq!(rows[2], line);
        assert!(table(&figures[7..], "ticks").is_none());
    }
}

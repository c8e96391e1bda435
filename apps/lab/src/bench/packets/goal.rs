//! A latency goal, such as `p99<200us`, and the policies that meet it.

use std::fmt;
use std::str::FromStr;

use antiphon_report::table::duration;

use super::cases::Cell;
use crate::bench::pools::figures::Latencies;
use crate::bench::pools::rows::Summary;
use crate::bench::report;

type Row = report::Row<Cell, Summary>;

/// An upper bound of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    figure: Figure,
    below_ns: f64,
}

/// A figure of latency, with its name.
#[derive(Clone, Copy, Debug)]
struct Figure {
    name: &'static str,
    of: fn(&Latencies) -> f64,
}

const FIGURES: [Figure; 7] = [
    Figure { name: "mean", of: |seen| seen.mean },
    Figure { name: "p20", of: |seen| seen.p20 },
    Figure { name: "p50", of: |seen| seen.p50 },
    Figure { name: "p99", of: |seen| seen.p99 },
    Figure { name: "p999", of: |seen| seen.p999 },
    Figure { name: "p9999", of: |seen| seen.p9999 },
    Figure { name: "max", of: |seen| seen.max },
];
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

impl PartialEq for Figure {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("{what}; write a figure, '<' and a time: p99<200us");
        let (name, bound) =
            text.split_once('<').ok_or_else(|| wrong(&format!("no '<' in '{text}'")))?;
        let figure = FIGURES.into_iter().find(|figure| figure.name == name.trim());
        let figure = figure.ok_or_else(|| {
            let known = FIGURES.map(|figure| figure.name).join(", ");
            format!("no figure '{}'; there are: {known}", name.trim())
        })?;
        let below_ns = time(bound.trim());
        let below_ns = below_ns.ok_or_else(|| wrong(&format!("'{bound}' is not a time")))?;
        Ok(Self { figure, below_ns })
    }
}

/// Converts a number with a unit to nanoseconds.
fn time(text: &str) -> Option<f64> {
    let unit = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit);
    let (_, ns) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let number: f64 = number.trim().parse().ok()?;
    (number > 0.0 && number.is_finite()).then_some(number * ns)
}

impl Goal {
    /// Returns whether the subject of a row meets the goal.
    pub fn is_met(&self, row: &Row) -> bool {
        row.repetitions > 0 && row.trouble.is_none() && self.seen(row) < self.below_ns
    }

    /// Returns the figure that the goal bounds, in nanoseconds.
    pub fn seen(&self, row: &Row) -> f64 {
        (self.figure.of)(&row.summary.latency)
    }

    /// Returns the subjects that meet the goal, the best first, one per line. `Err` if none does;
    /// its text names the closest.
    pub fn verdict(&self, rows: &[Row]) -> Result<String, String> {
        let mut rows: Vec<_> = rows.iter().filter(|row| row.repetitions > 0).collect();
        rows.sort_by(|a, b| self.seen(a).total_cmp(&self.seen(b)));
        let line = |row: &&Row| {
            let workers = row.cell.workers;
            format!("{} on {workers} workers: {}", row.subject, duration(self.seen(row)))
        };
        let met: Vec<_> = rows.iter().filter(|row| self.is_met(row)).map(line).collect();
        match (met.is_empty(), rows.first()) {
            (false, _) => Ok(format!("{self} is met by\n  {}\n", met.join("\n  "))),
            (true, Some(closest)) => {
                Err(format!("none meets {self}; {} is closest", line(closest)))
            }
            (true, None) => Err(format!("none was measured that could meet {self}")),
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} < {}", self.figure.name, duration(self.below_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_a_figure_and_a_time() {
        let of = |text: &str| text.parse::<Goal>().map(|goal| (goal.figure.name, goal.below_ns));
        assert_eq!(of("p99<200us"), Ok(("p99", 200_000.0)));
        assert_eq!(of(" mean < 1.5 ms "), Ok(("mean", 1_500_000.0)));
        assert_eq!(of("max<1s"), Ok(("max", 1e9)));
        for (wrong, told) in [
            ("", "no '<'"),
            ("p99", "write a figure"),
            ("p98<1us", "there are: mean, p20"),
            ("p99<200", "is not a time"),
            ("p99<us", "is not a time"),
            ("p99<-1us", "is not a time"),
            ("p99<0ns", "is not a time"),
            ("p99<1h", "is not a time"),
        ] {
            assert!(of(wrong).is_err_and(|why| why.contains(told)), "{wrong}: {told}");
        }
        assert_eq!("p50<20us".parse::<Goal>().map(|it| it.to_string()), Ok("p50 < 20.0 µs".into()));
    }
}

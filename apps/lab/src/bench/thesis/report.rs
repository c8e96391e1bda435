//! From repetitions to a table of policies, workloads and figures: which subject is best in each
//! column, and whether one is best in all.

use antiphon_report::stats::{Quartiles, geometric_mean, quartiles};
use antiphon_report::table::{Cell as Field, Table, Tone};
use serde_json::{Value, json};

use super::workloads::{COLUMNS, Cell, Column, Workload};
use crate::bench::rounds::{Measured as Of, Trouble, mean};

/// The measurements of one subject in one workload.
pub type Measured = Of<Cell, Vec<f64>>;

/// The figures of a subject.
pub struct Row {
    subject: &'static str,
    /// Whether it is a single policy, not a composition.
    single: bool,
    /// Figures by column, for the columns that it has.
    figures: Vec<Option<Quartiles>>,
    trouble: Option<Trouble>,
}

/// The report.
pub struct Report {
    rows: Vec<Row>,
    others_cpus: Option<f64>,
    seed: u64,
    workers: usize,
}

/// Rank of a figure in its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The best median.
    Best,
    /// A figure whose quartiles overlap those of the best.
    Near,
    Behind,
}

/// Makes rows of the measurements: one for each subject.
pub fn put_together(
    singles: &[&'static str],
    all: &[&'static str],
    measured: &[Measured],
    seed: u64,
    workers: usize,
) -> Report {
    let row = |&subject: &&'static str| {
        let mine = || measured.iter().filter(move |one| one.subject == subject);
        let figure = |(at, column): (usize, &Column)| {
            let first = COLUMNS.iter().position(|it| it.workload == column.workload)?;
            let one = mine().find(|one| one.cell.workload == column.workload)?;
            quartiles(one.figures.iter().map(|figures| figures[at - first]).collect())
        };
        Row {
            subject,
            single: singles.contains(&subject),
            figures: COLUMNS.iter().enumerate().map(figure).collect(),
            trouble: mine().find_map(|one| one.trouble.clone()),
        }
    };
    let others_cpus = mean(measured.iter().filter_map(Measured::others_cpus));
    Report { rows: all.iter().map(row).collect(), others_cpus, seed, workers }
}

impl Report {
    /// Returns the failures as one line.
    pub fn trouble(&self) -> Option<String> {
        Trouble::failures(self.rows.iter().filter_map(|row| row.trouble.as_ref()))
    }

    /// Returns the CPUs that other processes used, on average.
    pub fn others_cpus(&self) -> Option<f64> {
        self.others_cpus
    }

    fn place(&self, row: &Row, at: usize) -> Option<Place> {
        let column = &COLUMNS[at];
        let mine = row.figures[at]?;
        let all = self.rows.iter().filter_map(|row| row.figures[at]);
        let better = |a: &Quartiles, b: &Quartiles| {
            let (a, b) = (a.median, b.median);
            if column.more { b.total_cmp(&a) } else { a.total_cmp(&b) }
        };
        let best = all.min_by(better)?;
        let reaches = if column.more { mine.p75 >= best.p25 } else { mine.p25 <= best.p75 };
        Some(match reaches {
            _ if mine == best => Place::Best,
            true => Place::Near,
            false => Place::Behind,
        })
    }

    /// Returns the number of columns in which a row is best or near the best, and the number that
    /// it has.
    fn wins(&self, row: &Row) -> (usize, usize) {
        let places = || (0..COLUMNS.len()).filter_map(|at| self.place(row, at));
        (places().filter(|place| *place != Place::Behind).count(), places().count())
    }

    /// Returns the single policies that run all workloads, and are best or near the best in all
    /// columns.
    fn perfect(&self) -> Vec<&'static str> {
        let all = self.rows.iter().filter(|row| row.single);
        all.filter(|row| self.wins(row) == (COLUMNS.len(), COLUMNS.len()))
            .map(|row| row.subject)
            .collect()
    }

    /// Returns the ratios of a row's figures to another row's in the mixed workload, if both have
    /// them, such that more is better; and their geometric mean.
    fn against(&self, row: &Row, other: &Row) -> Option<(Vec<f64>, f64)> {
        let mixed = COLUMNS.iter().enumerate();
        let mixed = mixed.filter(|(_, column)| column.workload == Workload::Mixed);
        let times = mixed.map(|(at, column)| {
            Some(column.times(row.figures[at]?.median, other.figures[at]?.median))
        });
        let times: Vec<f64> = times.collect::<Option<_>>()?;
        let mean = geometric_mean(&times)?;
        Some((times, mean))
    }

    /// Returns the single policy that is best in the mixed workload, by the geometric mean of its
    /// figures.
    fn best_single(&self) -> Option<&Row> {
        let singles = || self.rows.iter().filter(|row| row.single);
        let first = singles().find(|row| self.against(row, row).is_some())?;
        let mean = |row: &Row| self.against(row, first).map_or(0.0, |(_, mean)| mean);
        singles().max_by(|a, b| mean(a).total_cmp(&mean(b)))
    }

    /// Returns the conclusion from the table.
    fn verdict(&self) -> String {
        let perfect = self.perfect();
        let mut text = match perfect.as_slice() {
            [] => "No policy is best, or near the best, in every column.\n".to_owned(),
            some => format!("Best, or near the best, in every column: {}\n", some.join(", ")),
        };
        let Some(single) = self.best_single() else { return text };
        let name = single.subject;
        text += &format!("The best single policy on the mixed workload is {name}.\n");
        for row in self.rows.iter().filter(|row| !row.single) {
            let Some((times, mean)) = self.against(row, single) else { continue };
            let wins = times.iter().filter(|&&times| times > 1.0).count();
            text += &format!(
                "{}: {mean:.2} times as good by the geometric mean; better in {wins} of {}\n",
                row.subject,
                times.len()
            );
        }
        text
    }

    /// Returns the text for people: a table for each workload, and the conclusion.
    pub fn text(&self, colour: bool) -> String {
        let mut text = format!("{} workers\n\n", self.workers);
        for workload in super::workloads::WORKLOADS {
            let columns = || {
                let all = COLUMNS.iter().enumerate();
                all.filter(move |(_, column)| column.workload == workload)
            };
            let heads = columns().map(|(_, column)| format!(">{}", column.name));
            let heads: Vec<_> = [workload.name().to_owned()].into_iter().chain(heads).collect();
            let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
            for row in self.rows.iter().filter(|row| {
                columns().any(|(at, _)| row.figures[at].is_some()) || row.trouble.is_some()
            }) {
                let figures = columns().map(|(at, column)| self.field(row, at, column));
                table.row([Field::text(row.subject)].into_iter().chain(figures).collect());
            }
            text += &format!("{}\n", table.render(colour));
        }
        text +=
            "* is the best of its column; ~ is one whose quartiles reach to those of the best.\n";
        text + &self.verdict()
    }

    fn field(&self, row: &Row, at: usize, column: &Column) -> Field {
        let Some(of) = row.figures[at] else { return Field::number("-") };
        let figure = column.show(of.median);
        match self.place(row, at) {
            Some(Place::Best) => Field::number(format!("{figure} *")).tone(Tone::Good),
            Some(Place::Near) => Field::number(format!("{figure} ~")),
            _ => Field::number(format!("{figure}  ")),
        }
    }

    /// Returns the object for scripts.
    pub fn json(&self) -> Value {
        let single = self.best_single();
        let row = |row: &Row| {
            let figure = |(at, column): (usize, &Column)| {
                let of = row.figures[at]?;
                let place = self.place(row, at)?;
                Some(json!({
                    "workload": column.workload.name(), "figure": column.name,
                    "unit": if column.is_time { "ns" } else { "1/s" },
                    "median": of.median, "p25": of.p25, "p75": of.p75,
                    "best": place == Place::Best, "near": place != Place::Behind,
                }))
            };
            let figures: Vec<_> = COLUMNS.iter().enumerate().filter_map(figure).collect();
            let against = single.and_then(|single| self.against(row, single));
            let mut object = json!({
                "subject": row.subject, "single": row.single, "workers": self.workers,
                "figures": figures, "to_best_single": against.map(|(_, mean)| mean),
            });
            if let Some(trouble) = &row.trouble {
                let (key, what) = trouble.json();
                object[key] = what.into();
            }
            object
        };
        json!({
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "best_everywhere": self.perfect(),
            "best_single": single.map(|row| row.subject),
            "seed": self.seed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures that are `good` times as good as 100, in each column of these workloads.
    fn measured(subject: &'static str, good: f64, of: &[Workload]) -> Vec<Measured> {
        let one = |&workload: &Workload| {
            let columns = COLUMNS.iter().filter(|column| column.workload == workload);
            let figure = |column: &Column| if column.more { 100.0 * good } else { 100.0 / good };
            let figures: Vec<f64> = columns.map(figure).collect();
            let cell = Cell { workload, workers: 2, frames: 5, part: 1.0 };
            Measured::of(cell, subject, vec![figures; 3])
        };
        of.iter().map(one).collect()
    }

    fn report(lifo_options: f64, pools: f64) -> Report {
        use super::super::workloads::WORKLOADS;
        let mut all = measured("fifo", 1.0, &WORKLOADS);
        for workload in WORKLOADS {
            let good = if workload == Workload::Options { lifo_options } else { 2.0 };
            all.extend(measured("lifo", good, &[workload]));
        }
        all.extend(measured("pools", pools, &[Workload::Mixed]));
        put_together(&["fifo", "lifo"], &["fifo", "lifo", "pools"], &all, 1, 2)
    }

    #[test]
    fn who_is_best_in_all_columns_is_named() {
        let perfect = report(2.0, 1.0);
        assert_eq!(perfect.perfect(), ["lifo"]);
        assert!(perfect.verdict().contains("in every column: lifo"), "{}", perfect.verdict());
        let not = report(0.5, 1.0);
        assert!(not.perfect().is_empty());
        assert!(not.verdict().contains("No policy is best"), "{}", not.verdict());
        let text = not.text(false);
        assert!(text.contains("fifo       100 *  100 ns *  100 ns *"), "{text}");
    }

    #[test]
    fn compositions_are_held_to_the_best_single_policy() {
        for (pools, told) in [(1.0, "pools: 0.50 times"), (4.0, "pools: 2.00 times")] {
            let report = report(0.5, pools);
            assert_eq!(report.best_single().map(|row| row.subject), Some("lifo"));
            assert!(report.verdict().contains(told), "{}", report.verdict());
            let json = report.json();
            assert_eq!(
                (&json["best_single"], &json["rows"][2]["single"]),
                (&"lifo".into(), &false.into())
            );
            assert_eq!(json["rows"][2]["figures"].as_array().map(Vec::len), Some(6));
            assert_eq!(json["rows"][0]["figures"].as_array().map(Vec::len), Some(COLUMNS.len()));
        }
    }
}

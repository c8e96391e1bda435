//! Rows with measured and predicted figures, and their means.

use antiphon_report::stats::{geometric_mean, median};
use serde_json::{Value, json};

use super::agree::{Compared, REFERENCE, Ranking};
use super::compare::{Cell, by_setting};
use super::peer::GLIBC;
use super::workload::Case;
use super::{native, simulated};

/// A figure in both worlds.
#[derive(Clone, Debug)]
pub struct Row {
    /// The case.
    pub case: Case,
    /// Number of threads.
    pub threads: usize,
    /// Whether threads share CPUs.
    pub crowded: bool,
    /// The lock.
    pub subject: &'static str,
    /// Name of the figure, with its unit.
    pub metric: &'static str,
    /// Measured here: the median and the quartiles over all repetitions' windows.
    pub measured: Option<[f64; 3]>,
    /// Figure of the simulation.
    pub predicted: Option<f64>,
    /// Comparison of the work with that of the futex mutex.
    pub compared: Option<Compared>,
    /// How the lock failed.
    pub trouble: Option<String>,
}

impl Row {
    /// Returns predicted over measured.
    pub fn ratio(&self) -> Option<f64> {
        let ([measured, ..], predicted) = (self.measured?, self.predicted?);
        (measured > 0.0 && predicted > 0.0).then(|| predicted / measured)
    }

    /// Returns the object for scripts.
    pub fn object(&self) -> Value {
        let [measured, p25, p75] = match self.measured {
            Some(quartiles) => quartiles.map(Some),
            None => [None; 3],
        };
        let mut object = json!({
            "case": self.case.name, "threads": self.threads, "share_cpus": self.crowded,
            "subject": self.subject, "metric": self.metric, "measured": measured, "p25": p25,
            "p75": p75, "predicted": self.predicted,
            "error": self.ratio().map(|ratio| ratio - 1.0),
        });
        if let Some(compared) = &self.compared {
            object["to_futex"] = compared.object();
        }
        if let Some(trouble) = &self.trouble {
            object["failed"] = json!(trouble);
        }
        object
    }
}

/// Makes the rows of all cells.
pub fn rows(cells: &[Cell]) -> Vec<Row> {
    let of_setting = |of_setting: &[Cell]| {
        let reference = of_setting.iter().find(|cell| cell.lock == REFERENCE);
        of_setting.iter().flat_map(|cell| rows_of(cell, reference)).collect::<Vec<_>>()
    };
    by_setting(cells).flat_map(of_setting).collect()
}

fn rows_of(cell: &Cell, reference: Option<&Cell>) -> Vec<Row> {
    let setting = &cell.setting;
    let row = |metric, of: &dyn Fn(&native::Measured) -> [f64; 3], predicted| {
        let all: Vec<_> = cell.measured.iter().flatten().map(of).collect();
        let nth = |n: usize| median(all.iter().map(|quartiles| quartiles[n]).collect());
        let measured = (|| Some([nth(0)?, nth(1)?, nth(2)?]))();
        Row {
            case: setting.case,
            threads: setting.places.len(),
            crowded: setting.crowded,
            subject: cell.lock,
            metric,
            measured,
            predicted,
            compared: None,
            trouble: cell.trouble.clone(),
        }
    };
    let mean = |cell: &Cell, of: fn(&simulated::Predicted) -> f64| {
        let count = cell.predicted.len();
        (count > 0).then(|| cell.predicted.iter().map(of).sum::<f64>() / count as f64)
    };
    let rounds = |one: &native::Measured| {
        let figure = one.rounds_per_s;
        [figure.median, figure.p25, figure.p75]
    };
    let work = |cell| mean(cell, |one| one.rounds_per_s);
    let mut first = row(THROUGHPUT, &rounds, work(cell));
    if let Some(reference) = reference.filter(|_| cell.lock != REFERENCE) {
        let pairs = cell.measured.iter().zip(&reference.measured);
        let ratio = |(one, other): (&Option<native::Measured>, &Option<native::Measured>)| {
            let [one, other] = [one.as_ref()?, other.as_ref()?].map(|of| of.rounds_per_s.median);
            (other > 0.0).then(|| one / other)
        };
        let predicted = work(cell).zip(work(reference).filter(|&other| other > 0.0));
        let predicted = predicted.map(|(one, other)| one / other);
        first.compared = Some(Compared::of(pairs.filter_map(ratio).collect(), predicted));
    }
    let mut rows = vec![first];
    if setting.crowded {
        let handed = |one: &native::Measured| [one.hand_over_ns; 3];
        rows.push(row("hand_over_ns", &handed, mean(cell, |one| one.hand_over_ns)));
        let switches = |one: &native::Measured| [one.switches_per_1000; 3];
        rows.push(row("switches_per_kop", &switches, mean(cell, |one| one.switches_per_1000)));
    }
    rows
}

/// Groups the throughput rows by case and number of threads.
pub fn by_cell(rows: &[Row]) -> Vec<Vec<&Row>> {
    let mut cells: Vec<Vec<&Row>> = Vec::new();
    for row in rows.iter().filter(|row| row.metric == THROUGHPUT) {
        let same = |of: &Vec<&Row>| of[0].case == row.case && of[0].threads == row.threads;
        match cells.last_mut().filter(|of| same(of)) {
            Some(of) => of.push(row),
            None => cells.push(vec![row]),
        }
    }
    cells
}

/// Returns the ranking of the locks of such a cell in both worlds.
pub fn ranking(of_cell: &[&Row]) -> Option<Ranking> {
    let both = |row: &&&Row| row.subject != GLIBC;
    let figures = |row: &&Row| Some((row.subject, row.measured?[0], row.predicted?));
    Ranking::of(&of_cell.iter().filter(both).filter_map(figures).collect::<Vec<_>>())
}

/// The mean over the rows of one case, number of threads and metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Mean {
    /// Name of the case.
    pub case: &'static str,
    /// Number of threads.
    pub threads: usize,
    /// The metric.
    pub metric: &'static str,
    /// Geometric mean of predicted over measured.
    pub ratio: Option<f64>,
    /// Smallest and largest ratio.
    pub range: Option<(f64, f64)>,
    /// Number of rows that were measured and predicted.
    pub rows: usize,
    /// Maximal deviation of the mean from 1, if one is promised.
    pub band: Option<f64>,
}

/// Returns the promised maximal deviation of a case's mean from 1: for one thread, and for two with
/// a CPU each; there is no promise for more threads.
fn band(threads: usize, crowded: bool, metric: &str) -> Option<f64> {
    match (threads, metric) {
        (1, THROUGHPUT) => Some(0.05),
        (2, THROUGHPUT) if !crowded => Some(0.15),
        _ => None,
    }
}

/// The metric that all runs have.
pub const THROUGHPUT: &str = "ops_per_s";

impl Mean {
    /// Returns whether the mean is within its band.
    pub fn holds(&self) -> Option<bool> {
        Some((self.ratio? - 1.0).abs() <= self.band?)
    }

    /// Returns the object for scripts.
    pub fn object(&self) -> Value {
        json!({
            "case": self.case, "threads": self.threads, "metric": self.metric,
            "ratio": self.ratio, "least": self.range.map(|range| range.0),
            "most": self.range.map(|range| range.1), "rows": self.rows, "band": self.band,
            "holds": self.holds(),
        })
    }
}

/// Returns the means of `rows`, in the order in which their cases begin.
pub fn means(rows: &[Row]) -> Vec<Mean> {
    let key = |row: &Row| (row.case.name, row.threads, row.crowded, row.metric);
    let mut keys: Vec<_> = Vec::new();
    for row in rows {
        if !keys.contains(&key(row)) {
            keys.push(key(row));
        }
    }
    let mean = |(case, threads, crowded, metric)| {
        let of = rows.iter().filter(|row| key(row) == (case, threads, crowded, metric));
        let ratios: Vec<_> = of.filter_map(Row::ratio).collect();
        let least = ratios.iter().copied().reduce(f64::min);
        let range = least.zip(ratios.iter().copied().reduce(f64::max));
        let (ratio, rows) = (geometric_mean(&ratios), ratios.len());
        let band = band(threads, crowded, metric);
        Mean { case, threads, metric, ratio, range, rows, band }
    };
    keys.into_iter().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::super::settings::Setting;
    use super::super::workload::{EMPTY, SHORT};
    use super::*;

    fn row(case: Case, threads: usize, measured: Option<f64>, predicted: f64) -> Row {
        let measured = measured.map(|value| [value; 3]);
        Row {
            case,
            threads,
            crowded: false,
            subject: "tas",
            metric: THROUGHPUT,
            measured,
            predicted: Some(predicted),
            compared: None,
            trouble: None,
        }
    }

    #[test]
    fn a_mean_is_of_its_case_and_says_whether_it_holds() {
        let rows = [
            row(EMPTY, 2, Some(10.0), 5.0),
            row(EMPTY, 2, Some(10.0), 20.0),
            row(SHORT, 2, Some(10.0), 8.0),
            row(SHORT, 1, Some(10.0), 9.0),
            row(SHORT, 2, None, 8.0),
        ];
        let means = means(&rows);
        assert_eq!(means.len(), 3);
        assert!(means[0].ratio.is_some_and(|ratio| (ratio - 1.0).abs() < 1e-12));
        assert_eq!((means[0].range, means[0].rows), (Some((0.5, 2.0)), 2));
        let held: Vec<_> = means.iter().map(Mean::holds).collect();
        assert_eq!(held, [Some(true), Some(false), Some(false)]);
        assert_eq!((means[1].case, means[1].rows), (SHORT.name, 1), "one was not measured");
    }

    #[test]
    fn ratios_are_of_runs_of_the_same_repetition() {
        let run = |rounds_per_s: f64| {
            let rounds_per_s = crate::pinned::Figure {
                median: rounds_per_s,
                p25: rounds_per_s,
                p75: rounds_per_s,
                windows: 8,
                dropped: 0,
            };
            native::Measured { rounds_per_s, hand_over_ns: 0.0, switches_per_1000: 0.0 }
        };
        let predicted = |rounds_per_s| simulated::Predicted {
            rounds_per_s,
            hand_over_ns: 0.0,
            switches_per_1000: 0.0,
        };
        let setting = Setting { case: SHORT, places: vec![0, 1], crowded: false };
        let mut cells = super::super::compare::cells(&[setting]);
        let cell = |lock: &str| {
            let place = cells.iter().position(|cell| cell.lock == lock);
            place.expect("it is compared")
        };
        let (futex, mcs) = (cell(REFERENCE), cell("mcs"));
        cells[futex].measured = vec![Some(run(10.0)), None, Some(run(100.0))];
        cells[mcs].measured = vec![Some(run(20.0)), Some(run(1.0)), Some(run(220.0))];
        cells[futex].predicted = vec![predicted(1.0), predicted(3.0)];
        cells[mcs].predicted = vec![predicted(4.0)];
        let rows = rows(&cells);
        let of = |lock: &str| rows.iter().find(|row| row.subject == lock).expect("it has a row");
        let compared = of("mcs").compared.expect("it is compared");
        assert_eq!((compared.measured, compared.predicted), (Some([2.1, 2.0, 2.2]), Some(2.0)));
        assert!(of(REFERENCE).compared.is_none(), "it is level with itself");
        let of_cell = by_cell(&rows);
        assert_eq!((of_cell.len(), of_cell[0].len()), (1, cells.len()));
        // By the medians of all runs, including a run whose counterpart was disturbed.
        assert_eq!(ranking(&of_cell[0]).map(|ranking| (ranking.pairs, ranking.same)), Some((1, 0)));
    }

    #[test]
    fn an_error_is_the_share_by_which_the_prediction_is_off() {
        let object = row(EMPTY, 2, Some(10.0), 8.0).object();
        assert!(object["error"].as_f64().is_some_and(|error| (error + 0.2).abs() < 1e-12));
        assert!(row(EMPTY, 2, None, 8.0).object()["error"].is_null());
    }
}

//! The results of the pairs: a row for the time, one for CPU time, and one for each metric.

use antiphon_report::stats::{Interval, median};
use antiphon_report::table::{Cell, Table, duration, si};
use serde_json::{Value, json};

use super::MOST;

/// The figures of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The time from start to end.
    pub seconds: f64,
    /// CPU time of the program and of the children that it waited for.
    pub cpu_s: f64,
    /// The metrics, in the order in which they were requested.
    pub metrics: Vec<f64>,
}

/// Two consecutive runs.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The run with glibc's locks.
    pub glibc: Run,
    /// The run with ours.
    pub ours: Run,
    /// Whether the run with ours came first.
    pub ours_first: bool,
}

/// The figures of one quantity over all pairs.
struct Row<'a> {
    name: &'a str,
    glibc: f64,
    ours: f64,
    ratio: Interval,
}

/// The results of one trial, with enough pairs for an interval.
pub struct Outcome<'a> {
    lock: &'a str,
    pairs: &'a [Pair],
    time: Interval,
    rows: Vec<Row<'a>>,
}

impl<'a> Outcome<'a> {
    /// Evaluates the pairs. `None` if there are too few of them for an interval.
    pub fn of(lock: &'a str, pairs: &'a [Pair], metrics: &[&'a str]) -> Option<Self> {
        let row = |name, of: &dyn Fn(&Run) -> f64| {
            let ratios = pairs.iter().map(|pair| of(&pair.ours) / of(&pair.glibc)).collect();
            Some(Row {
                name,
                glibc: median(pairs.iter().map(|pair| of(&pair.glibc)).collect())?,
                ours: median(pairs.iter().map(|pair| of(&pair.ours)).collect())?,
                ratio: Interval::of(ratios)?,
            })
        };
        let mut rows =
            vec![row("time a run", &|run| run.seconds)?, row("CPU time a run", &|run| run.cpu_s)?];
        let time = rows[0].ratio;
        for (index, name) in metrics.iter().enumerate() {
            rows.push(row(name, &|run| run.metrics[index])?);
        }
        Some(Self { lock, pairs, time, rows })
    }

    /// The JSON object for scripts.
    pub fn json(&self) -> Value {
        let pairs: Vec<_> = self.pairs.iter().map(|pair| self.pair(pair)).collect();
        let metrics: serde_json::Map<_, _> = self.rows[2..]
            .iter()
            .map(|row| {
                let both = json!({
                    "glibc": row.glibc, "ours": row.ours, "ratio": interval_json(row.ratio),
                });
                (row.name.to_owned(), both)
            })
            .collect();
        json!({
            "lock": self.lock, "pairs": pairs, "verdict": self.time.verdict(),
            "ratio": interval_json(self.time), "cpu_ratio": interval_json(self.rows[1].ratio),
            "metrics": metrics,
        })
    }

    fn pair(&self, pair: &Pair) -> Value {
        let metrics = self.rows[2..].iter().enumerate().map(|(index, row)| {
            let both = [pair.glibc.metrics[index], pair.ours.metrics[index]];
            (row.name.to_owned(), json!({ "glibc": both[0], "ours": both[1] }))
        });
        json!({
            "glibc_s": pair.glibc.seconds, "ours_s": pair.ours.seconds,
            "glibc_cpu_s": pair.glibc.cpu_s, "ours_cpu_s": pair.ours.cpu_s,
            "ratio": pair.ours.seconds / pair.glibc.seconds,
            "first": if pair.ours_first { self.lock } else { "glibc" },
            "metrics": metrics.collect::<serde_json::Map<_, _>>(),
        })
    }

    /// The text for terminals.
    pub fn text(&self, colour: bool) -> String {
        let mut table = Table::new(&["", ">glibc", &format!(">{}", self.lock), ">ratio", ">95 %"]);
        for (index, row) in self.rows.iter().enumerate() {
            let value = |value: f64| match index {
                0 | 1 => duration(value * 1e9),
                _ => si(value),
            };
            let Interval { low95, median, high95 } = row.ratio;
            table.row(vec![
                Cell::text(row.name),
                Cell::number(value(row.glibc)),
                Cell::number(value(row.ours)),
                Cell::number(format!("{median:.3}×")),
                Cell::number(format!("{low95:.3} to {high95:.3}")),
            ]);
        }
        let cpu = match self.rows[1].ratio.verdict() {
            "faster" => "less",
            "slower" => "more",
            _ => "no difference shown",
        };
        let Interval { low95, median, high95 } = self.time;
        format!(
            "{}{} takes {median:.3}× the time of glibc (95 %: {low95:.3} to {high95:.3}, {} \
             pairs)\nverdict: {}; CPU time a run: {cpu}\n",
            table.render(colour),
            self.lock,
            self.pairs.len(),
            self.verdict(),
        )
    }

    /// The verdict on the time, in words; where no difference was shown, how large one may still
    /// be.
    fn verdict(&self) -> String {
        let Interval { low95, high95, .. } = self.time;
        if low95 > 1.0 || high95 < 1.0 {
            return self.time.verdict().to_owned();
        }
        let [less, more] = [low95, high95].map(|ratio| (ratio - 1.0).abs() * 100.0);
        let mut said = format!(
            "no difference shown: from {less:.1} % less time to {more:.1} % more is possible"
        );
        // The interval's width falls with the root of the number of pairs.
        let pairs = self.pairs.len() * 4;
        if pairs <= MOST {
            said += &format!(", and half of that with --pairs {pairs}");
        }
        said
    }
}

fn interval_json(interval: Interval) -> Value {
    let Interval { low95, median, high95 } = interval;
    json!({ "median": median, "low95": low95, "high95": high95 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quantity_has_its_own_ratio() {
        let run = |seconds, cpu_s, rate| Run { seconds, cpu_s, metrics: vec![rate] };
        let pair = |slower| Pair {
            glibc: run(2.0, 4.0, 100.0),
            ours: run(1.0 + slower, 2.0, 200.0),
            ours_first: true,
        };
        let pairs: Vec<_> = (0..6).map(|n| pair(f64::from(n) / 100.0)).collect();
        let outcome = Outcome::of("shfl-mutex", &pairs, &["req/s"]).unwrap();
        let json = outcome.json();
        assert_eq!(json["ratio"]["low95"], 0.5);
        assert_eq!(json["ratio"]["high95"], 1.05 / 2.0);
        assert_eq!(json["cpu_ratio"]["median"], 0.5);
        assert_eq!(json["metrics"]["req/s"]["ratio"]["median"], 2.0);
        assert_eq!(json["pairs"][0]["metrics"]["req/s"]["ours"], 200.0);
        let text = outcome.text(false);
        let line = text.lines().find(|line| line.starts_with("req/s")).unwrap();
        assert!(line.contains("100") && line.contains("200") && line.contains("2.000×"), "{line}");
        assert!(text.ends_with("verdict: faster; CPU time a run: less\n"), "{text}");
        assert!(Outcome::of("shfl-mutex", &pairs[1..], &[]).is_none(), "five have no interval");
    }

    #[test]
    fn a_difference_that_was_not_shown_has_its_bounds_and_a_way_to_narrow_them() {
        let run = |seconds, cpu_s| Run { seconds, cpu_s, metrics: Vec::new() };
        let pair = |ratio| Pair { glibc: run(1.0, 1.0), ours: run(ratio, 1.0), ours_first: true };
        let pairs: Vec<_> = [0.9, 1.0, 1.0, 1.0, 1.1, 1.25].into_iter().map(pair).collect();
        let said = |pairs: &[Pair]| {
            let text = Outcome::of("shfl-mutex", pairs, &[]).unwrap().text(false);
            text.lines().last().unwrap_or_default().to_owned()
        };
        assert_eq!(
            said(&pairs),
            "verdict: no difference shown: from 10.0 % less time to 25.0 % more is possible, and \
             half of that with --pairs 24; CPU time a run: no difference shown"
        );
        let many: Vec<_> = pairs.iter().cycle().take(MOST / 2).cloned().collect();
        assert!(!said(&many).contains("--pairs"), "more than there may be");
    }
}

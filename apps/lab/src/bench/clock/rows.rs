//! The results of the repetitions of each subject.

use antiphon_report::stats::{Interval, Quartiles, median, quartiles};
use antiphon_report::table::{Cell, Table, Tone, si};
use serde_json::{Value, json};

use super::measure::Outcome;
use crate::clocks::Subject;

/// The figures of a subject with a number of threads.
pub struct Row {
    subject: Subject,
    threads: usize,
    ns_per_op: Quartiles,
    aborts_per_kop: f64,
    /// Ratio to the reference, by paired repetitions: the median, and its interval if there are six
    /// or more.
    ratio: Option<(f64, Option<Interval>)>,
}

impl Row {
    /// Returns the rows of one number of threads, from outcomes by subject and repetition.
    pub fn of(threads: usize, subjects: &[Subject], outcomes: &[Vec<Outcome>]) -> Vec<Self> {
        let reference = |subject: &Subject| {
            let place = subjects.iter().position(|one| one.name == subject.reference)?;
            (subject.reference != subject.name).then(|| &outcomes[place])
        };
        let row = |(&subject, own): (&Subject, &Vec<Outcome>)| {
            let figures = |of: fn(&Outcome) -> f64| own.iter().map(of).collect::<Vec<_>>();
            let ratios = |other: &Vec<Outcome>| {
                let pairs = own.iter().zip(other);
                pairs.map(|(own, other)| own.ns_per_op / other.ns_per_op).collect::<Vec<_>>()
            };
            let ratios = reference(&subject).map(ratios);
            Some(Self {
                subject,
                threads,
                ns_per_op: quartiles(figures(|one| one.ns_per_op))?,
                aborts_per_kop: median(figures(|one| one.aborts_per_kop))?,
                ratio: ratios.and_then(|all| Some((median(all.clone())?, Interval::of(all)))),
            })
        };
        subjects.iter().zip(outcomes).filter_map(row).collect()
    }

    /// Returns the object for scripts.
    pub fn json(&self) -> Value {
        let Quartiles { p25, median, p75 } = self.ns_per_op;
        let interval = self.ratio.and_then(|(_, interval)| interval);
        json!({
            "subject": self.subject.name, "threads": self.threads,
            "ns_per_op": median, "p25": p25, "p75": p75,
            "ops_per_s": self.threads as f64 * 1e9 / median,
            "aborts_per_kop": self.aborts_per_kop,
            "reference": self.subject.reference,
            "ratio": self.ratio.map(|(ratio, _)| ratio),
            "ratio_low95": interval.map(|interval| interval.low95),
            "ratio_high95": interval.map(|interval| interval.high95),
        })
    }
}

/// Returns the table for people.
pub fn text(rows: &[Row], colour: bool) -> String {
    let mut table = Table::new(&[
        ">threads",
        "subject",
        ">ns each",
        ">quartiles",
        ">ops/s",
        ">ratio",
        ">95 %",
        "to",
        ">aborts/kop",
    ]);
    for row in rows {
        let Quartiles { p25, median, p75 } = row.ns_per_op;
        let interval = row.ratio.and_then(|(_, interval)| interval);
        let interval = interval.map_or("-".to_owned(), |interval| {
            format!("{:.3} – {:.3}", interval.low95, interval.high95)
        });
        let (ratio, to) = match row.ratio {
            Some((ratio, _)) => (format!("{ratio:.3}×"), row.subject.reference),
            None => ("-".to_owned(), "-"),
        };
        table.row(vec![
            Cell::number(row.threads.to_string()),
            Cell::text(row.subject.name),
            Cell::number(format!("{median:.1}")),
            Cell::number(format!("{p25:.1} – {p75:.1}")).tone(Tone::Faint),
            Cell::number(si(row.threads as f64 * 1e9 / median)),
            Cell::number(ratio),
            Cell::number(interval).tone(Tone::Faint),
            Cell::text(to),
            Cell::number(format!("{:.2}", row.aborts_per_kop)),
        ]);
    }
    format!(
        "{}Medians of repetitions; a ratio is the median of paired ratios, less is better.\n",
        table.render(colour)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks;

    #[test]
    fn ratios_are_of_pairs_and_the_reference_has_none() {
        let subjects = clocks::named("shared,ordo,tl2-ordo").expect("these are known");
        let outcomes = |ns: &[f64]| {
            let outcome = |&ns_per_op: &f64| Outcome { ns_per_op, aborts_per_kop: 2.0 };
            ns.iter().map(outcome).collect::<Vec<_>>()
        };
        let rows = Row::of(
            2,
            &subjects,
            &[outcomes(&[10.0, 40.0, 20.0]), outcomes(&[5.0, 8.0, 10.0]), outcomes(&[1.0; 3])],
        );
        let [shared, ordo, transaction] = [0, 1, 2].map(|index| rows[index].json());
        assert_eq!((&shared["ratio"], &transaction["ratio"]), (&Value::Null, &Value::Null));
        assert_eq!((&ordo["ratio"], &ordo["ratio_low95"]), (&json!(0.5), &Value::Null));
        assert_eq!((&ordo["ns_per_op"], &ordo["ops_per_s"]), (&json!(8.0), &json!(0.25e9)));
        assert!(text(&rows, false).contains("0.500×"));
    }
}

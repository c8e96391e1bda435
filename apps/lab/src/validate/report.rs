//! The complete report, with the verdict first.

use antiphon_report::report;
use antiphon_report::words::several;
use serde_json::{Value, json};

use super::agree::{APART, LEVEL, RULE, Says};
use super::rows::{Mean, Row, by_cell, means, ranking};

/// The contents of all written files.
pub struct Report {
    /// Network name of this machine.
    pub host: String,
    /// Name of the simulated machine.
    pub model: String,
    /// Whether its latencies were measured in this run, on a machine that was not quiet.
    pub noisy: bool,
    /// Number of runs that were dropped because a line did not cost what the machine's description
    /// says.
    pub moved: usize,
    /// Number of complete repetitions.
    pub repetitions: usize,
    /// Whether the user has ended the run early.
    pub interrupted: bool,
    /// Parts that this machine does not support.
    pub skipped: Vec<String>,
    /// Rows in the order of cells.
    pub rows: Vec<Row>,
    /// Means by case, threads and metric.
    pub means: Vec<Mean>,
    /// The verdicts.
    pub verdicts: Vec<Verdict>,
}

/// A conclusion from the results.
pub struct Verdict {
    /// The rule that it applies.
    pub rule: &'static str,
    /// The verdict in words.
    pub says: String,
    /// The rows that show it.
    pub evidence: Vec<String>,
    /// What would make it more certain.
    pub could_help: &'static str,
}

impl Report {
    /// Computes means and verdicts from the rows.
    pub fn concluded(self) -> Self {
        let (means, verdicts) = (means(&self.rows), verdicts(&self.rows));
        Self { means, verdicts, ..self }
    }

    /// Returns the machine and times of the measurement and of the simulation, one line each.
    pub fn origin(&self) -> [String; 3] {
        let machine = report::machine();
        let text = |key: &str| machine[key].as_str().unwrap_or("unknown").to_owned();
        let count = |key: &str, one| several(machine[key].as_u64().unwrap_or_default(), one);
        let kind = if machine["hypervisor"] == true { ", a virtual machine" } else { "" };
        let (host, cpu, kernel, date) = (&self.host, text("cpu"), text("kernel"), text("date"));
        let (cpus, nodes) = (count("cpus", "CPU"), count("numa_nodes", "NUMA node"));
        [
            format!("Measured: {host}, {cpu}, {cpus}, {nodes}{kind}, Linux {kernel}, {date}."),
            format!("Simulated: the machine {}, by the latencies in its file.", self.model),
            format!("Command: {}", report::command()),
        ]
    }

    /// Returns the parts that could not be examined, and why.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.interrupted {
            notes.push("It was interrupted: the rest was not measured or simulated.".to_owned());
        }
        if self.noisy {
            let what = "This machine was not quiet while its latencies were measured.";
            notes.push(what.to_owned());
        }
        let unmeasured = self.rows.iter().filter(|row| row.measured.is_none()).count();
        if unmeasured > 0 {
            let rows = several(unmeasured as u64, "row");
            notes.push(format!("{rows} not measured: CPUs were lost all the time, or no time."));
        }
        let unpredicted = |row: &&Row| row.predicted.is_none() && row.subject != super::peer::GLIBC;
        let unpredicted = self.rows.iter().filter(unpredicted).count();
        if unpredicted > 0 {
            let rows = several(unpredicted as u64, "row");
            notes.push(format!("{rows} not simulated: there was no time; give more --minutes."));
        }
        if self.moved > 0 {
            let runs = several(self.moved as u64, "run");
            notes.push(format!(
                "{runs} dropped: a line cost otherwise than calibrated, as if the host had moved a \
                 CPU."
            ));
        }
        notes.extend(self.skipped.iter().map(|what| format!("Skipped: {what}.")));
        notes.extend(self.failures());
        notes
    }

    /// Returns how locks failed.
    pub fn failures(&self) -> Vec<String> {
        let mut failures: Vec<_> = self.rows.iter().filter_map(failure).collect();
        failures.dedup();
        failures
    }

    /// Returns the rows that differ.
    pub fn differences(&self) -> Vec<&Row> {
        let differs = |row: &&Row| row.compared.is_some_and(|compared| compared.says.differs());
        self.rows.iter().filter(differs).collect()
    }

    /// Returns the body of the JSON report.
    pub fn object(&self) -> Value {
        let rankings = by_cell(&self.rows).into_iter().filter_map(|of_cell| {
            let found = ranking(&of_cell)?;
            Some(json!({
                "case": of_cell[0].case.name, "threads": of_cell[0].threads,
                "pairs": found.pairs, "same_order": found.same,
                "first_measured": found.first[0], "first_predicted": found.first[1],
                "first_agrees": found.first_agrees,
            }))
        });
        let verdict = self.verdicts.iter().map(|one| {
            json!({
                "rule": one.rule, "says": one.says, "evidence": one.evidence,
                "could_help": one.could_help,
            })
        });
        json!({
            "host": self.host, "model": self.model, "noisy": self.noisy, "moved": self.moved,
            "repetitions": self.repetitions, "interrupted": self.interrupted,
            "skipped": self.skipped, "notes": self.notes(),
            "verdict": verdict.collect::<Vec<_>>(),
            "rule": { "apart": APART, "level": LEVEL, "words": RULE.replace('\n', " ") },
            "rows": self.rows.iter().map(Row::object).collect::<Vec<_>>(),
            "rankings": rankings.collect::<Vec<_>>(),
            "means": self.means.iter().map(Mean::object).collect::<Vec<_>>(),
        })
    }
}

/// Describes a row in a few words.
pub fn named(row: &Row) -> String {
    let threads = several(row.threads as u64, "thread");
    format!("{}, {threads}: {}", row.case.name, row.subject)
}

fn failure(row: &Row) -> Option<String> {
    row.trouble.as_ref().map(|trouble| format!("{}: {trouble}", named(row)))
}

fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    let compared: Vec<_> = rows.iter().filter_map(|row| Some((row, row.compared?))).collect();
    let of = |says: Says| compared.iter().filter(move |(_, compared)| compared.says == says);
    let evidence = |says| {
        of(says).map(|(row, compared)| format!("{}: {}", named(row), compared.words())).collect()
    };
    let count = |says| of(says).count();
    let [order, ratio, undecided] = [Says::Order, Says::Ratio, Says::Undecided].map(count);
    let decided = count(Says::Agree) + order + ratio;
    let (mut pairs, mut same, mut first, mut cells) = (0, 0, 0, 0);
    for found in by_cell(rows).iter().filter_map(|of_cell| ranking(of_cell)) {
        (pairs, same) = (pairs + found.pairs, same + found.same);
        (first, cells) = (first + usize::from(found.first_agrees), cells + 1);
    }
    if decided == 0 {
        let says = "Nothing could be compared.".to_owned();
        let could_help = "an idle machine, and more --minutes";
        return vec![Verdict { rule: "order", says, evidence: Vec::new(), could_help }];
    }
    let verdict = |rule, says, evidence, could_help| Verdict { rule, says, evidence, could_help };
    let mut verdicts = vec![
        verdict(
            "order",
            format!(
                "In order, measurement and simulation agree in {} of {decided} comparisons with \
                 the futex mutex.",
                decided - order
            ),
            evidence(Says::Order),
            "",
        ),
        verdict(
            "ratio",
            format!("In order and ratio, they agree in {} of {decided}.", decided - order - ratio),
            evidence(Says::Ratio),
            "",
        ),
        verdict(
            "ranking",
            format!(
                "Of {pairs} pairs of locks, {same} are in the same order; the lock that does most \
                 work is the same, or level, in {first} of {cells} cells."
            ),
            Vec::new(),
            "",
        ),
    ];
    if undecided > 0 {
        let could_help = "an idle machine, and more --minutes";
        let says = format!("{} not decided.", several(undecided as u64, "comparison"));
        verdicts.push(verdict("not-decided", says, evidence(Says::Undecided), could_help));
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::super::agree::Compared;
    use super::super::rows::THROUGHPUT;
    use super::super::workload::SHORT;
    use super::*;

    fn row(subject: &'static str, ratios: &[f64], predicted: Option<f64>) -> Row {
        let compared = Some(Compared::of(ratios.to_vec(), predicted));
        let measured = ratios.first().map(|&ratio| [ratio; 3]);
        let (case, threads, crowded, metric) = (SHORT, 2, false, THROUGHPUT);
        Row {
            case,
            threads,
            crowded,
            subject,
            metric,
            measured,
            predicted,
            compared,
            trouble: None,
        }
    }

    fn report(rows: Vec<Row>) -> Report {
        let (host, model) = ("here".to_owned(), "host".to_owned());
        Report {
            host,
            model,
            noisy: false,
            moved: 0,
            repetitions: 1,
            interrupted: false,
            skipped: Vec::new(),
            rows,
            means: Vec::new(),
            verdicts: Vec::new(),
        }
        .concluded()
    }

    #[test]
    fn a_verdict_counts_what_was_decided_and_names_what_differs() {
        let report = report(vec![
            row("mcs", &[2.0], Some(2.0)),
            row("tas", &[2.0], Some(0.5)),
            row("clh", &[2.0], Some(4.0)),
            row("ttas", &[1.0, 9.0], Some(4.0)),
            row("cna", &[], Some(4.0)),
        ]);
        let says: Vec<_> = report.verdicts.iter().map(|verdict| verdict.says.as_str()).collect();
        assert!(says[0].contains("agree in 2 of 3"), "{says:?}");
        assert!(says[1].contains("agree in 1 of 3"), "{says:?}");
        assert_eq!(says[3], "1 comparison not decided.");
        let evidence = &report.verdicts[0].evidence;
        let expected = "50ns-2lines, 2 threads: tas: differ in order: ahead here, behind simulated";
        assert_eq!(evidence, &[expected]);
        assert_eq!(report.differences().len(), 2);
        assert_eq!(report.notes().len(), 1, "{:?}", report.notes());
        assert_eq!(report.object()["rows"].as_array().map(Vec::len), Some(5));
    }

    #[test]
    fn where_nothing_was_measured_no_agreement_is_claimed() {
        let report = report(vec![row("mcs", &[], Some(2.0)), row("tas", &[1.0], None)]);
        assert_eq!(report.verdicts.len(), 1);
        assert_eq!(report.verdicts[0].says, "Nothing could be compared.");
    }
}

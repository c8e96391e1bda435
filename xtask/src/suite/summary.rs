//! The summary of a run: counts, failures, skipped checks, and the slowest tests.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::libtest;

/// The number of slowest tests and programs that are shown.
const SLOWEST: usize = 10;

/// The results of all programs together.
#[derive(Debug, Default)]
pub struct Summary {
    passed: usize,
    failed: usize,
    /// Lines that tell what could not be checked here.
    skipped: Vec<String>,
    /// Programs and tests that failed.
    failures: Vec<String>,
    /// How long each test took, by program and test.
    tests: BTreeMap<String, Duration>,
    /// The time and the CPU time of each program of the foreground.
    programs: BTreeMap<String, (Duration, Duration)>,
    /// The time of each test of a model, as `SUBJECT::test`, if it passed.
    models: BTreeMap<String, Duration>,
}

impl Summary {
    /// Adds the output of the program called `title`, and whether it succeeded.
    pub fn add_output(&mut self, title: &str, output: &str, is_success: bool) {
        for line in output.lines() {
            if let Some((passed, failed)) = libtest::counts(line) {
                self.passed += passed;
                self.failed += failed;
            }
            if line.starts_with("skipped: ") {
                self.skipped.push(line.to_owned());
            }
            if let Some((test, libtest::Verdict::Failed)) = libtest::verdict(line) {
                self.failures.push(format!("{title}: {test}"));
            }
        }
        if !is_success {
            self.failures.push(title.to_owned());
        }
    }

    /// Adds how long a test took.
    pub fn add_time(&mut self, title: &str, test: &str, took: Duration) {
        self.tests.insert(format!("{title}: {test}"), took);
    }

    /// Adds how long a program of the foreground took, and its CPU time.
    pub fn add_program(&mut self, title: &str, took: Duration, cpu: Duration) {
        self.programs.insert(title.to_owned(), (took, cpu));
    }

    /// Adds a test of a model that passed, and how long it took.
    pub fn add_model(&mut self, test: &str, took: Duration) {
        self.models.insert(test.to_owned(), took);
    }

    /// Returns whether anything failed.
    pub fn is_failure(&self) -> bool {
        self.failed > 0 || !self.failures.is_empty()
    }

    /// The slowest programs and tests, and the counts.
    pub fn report(&self) -> String {
        let (passed, failed, skipped) = (self.passed, self.failed, self.skipped.len());
        let (programs, tests) = (self.slowest_programs(), self.slowest_tests());
        let total: Duration = self.programs.values().map(|(took, _)| *took).sum();
        let total = total.as_secs();
        format!(
            "the slowest programs of the foreground, of {total} s in a row, with CPU time:\n\
             {programs}the slowest tests:\n{tests}\
             {passed} passed, {failed} failed, {skipped} skipped\n"
        )
    }

    /// The slowest programs of the foreground, a line for each.
    fn slowest_programs(&self) -> String {
        slowest(&self.programs, |(took, _)| *took, |(took, cpu)| seconds(*took) + &seconds(*cpu))
    }

    /// The slowest tests, a line for each.
    fn slowest_tests(&self) -> String {
        slowest(&self.tests, |took| *took, |took| seconds(*took))
    }

    /// How long each test of a model took, as JSON: seconds by name.
    pub fn times(&self) -> String {
        let seconds: BTreeMap<_, _> =
            self.models.iter().map(|(name, took)| (name, took.as_secs_f64())).collect();
        format!("{:#}\n", serde_json::json!(seconds))
    }
}

/// The names with the longest times, a line for each.
fn slowest<T>(
    all: &BTreeMap<String, T>,
    took: impl Fn(&T) -> Duration,
    shown: impl Fn(&T) -> String,
) -> String {
    let mut all: Vec<_> = all.iter().collect();
    all.sort_by_key(|(_, one)| std::cmp::Reverse(took(one)));
    all.into_iter().take(SLOWEST).map(|(name, one)| format!("{}  {name}\n", shown(one))).collect()
}

/// A time for a column.
fn seconds(time: Duration) -> String {
    format!("{:8.1} s", time.as_secs_f64())
}

impl fmt::Display for Summary {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.skipped {
            writeln!(to, "{line}")?;
        }
        for failure in &self.failures {
            writeln!(to, "failed: {failure}")?;
        }
        to.write_str(&self.report())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\nrunning 2 tests\ntest a ... ok\nskipped: b, no such program\n\
                          test b ... FAILED\n\n\
                          test result: FAILED. 1 passed; 1 failed; 0 ignored\n";

    #[test]
    fn outputs_are_counted_and_failures_named() {
        let mut summary = Summary::default();
        assert!(!summary.is_failure());
        summary.add_output("s: p", OUTPUT, false);
        assert!(summary.is_failure());
        let shown = summary.to_string();
        assert!(shown.contains("skipped: b, no such program\n"), "{shown}");
        assert!(shown.contains("failed: s: p: b\nfailed: s: p\n"), "{shown}");
        assert!(shown.ends_with("1 passed, 1 failed, 1 skipped\n"), "{shown}");
    }

    #[test]
    fn a_program_that_crashes_is_a_failure() {
        let mut summary = Summary::default();
        summary.add_output("s: p", "running 1 test\n", false);
        assert!(summary.is_failure());
    }

    #[test]
    fn the_slowest_come_first_and_are_ten() {
        let mut summary = Summary::default();
        for number in 0..20_u32 {
            summary.add_time("s: p", &format!("t{number}"), Duration::from_secs(number.into()));
        }
        let shown = summary.slowest_tests();
        assert_eq!(shown.lines().count(), SLOWEST);
        assert_eq!(shown.lines().next(), Some("    19.0 s  s: p: t19"));
    }

    #[test]
    fn programs_are_shown_with_their_cpu_time() {
        let mut summary = Summary::default();
        summary.add_program("s: p", Duration::from_secs(3), Duration::from_secs(5));
        summary.add_program("s: q", Duration::from_secs(4), Duration::from_secs(1));
        let shown = summary.report();
        let lines = "     4.0 s     1.0 s  s: q\n     3.0 s     5.0 s  s: p\n";
        assert!(shown.contains(lines) && shown.contains("of 7 s in a row"), "{shown}");
    }

    #[test]
    fn times_of_models_are_written_by_name() {
        let mut summary = Summary::default();
        summary.add_model("model_a::b", Duration::from_millis(1500));
        let read: BTreeMap<String, f64> = serde_json::from_str(&summary.times()).unwrap();
        assert_eq!(read, BTreeMap::from([("model_a::b".to_owned(), 1.5)]));
    }
}

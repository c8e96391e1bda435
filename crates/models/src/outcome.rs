//! The result of a model.

use std::fmt;

use antiphon_check::{Failure, Report};

use crate::entry::Entry;

/// The reports of a model, one for each mode.
#[derive(Clone, Debug)]
#[must_use = "an outcome may hold a failure"]
pub struct Outcome {
    reports: Vec<Report>,
    verdict: Verdict,
}

/// The summary of the reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// Every execution within the bounds was checked, and none failed.
    Complete,
    /// As many executions as the model asks for were drawn by lot, and none failed.
    Sampled,
    /// No execution failed before a limit was reached.
    Cut,
    /// No execution failed, but in some mode none passed this probe.
    Unreached(&'static str),
    /// An execution failed: see [`Outcome::failure`].
    Failed,
    /// An execution failed in the expected way, because the form is known to be bad.
    Refuted,
    /// No execution failed, although the form is known to be bad.
    NotRefuted,
}

impl Verdict {
    /// Returns whether something is wrong with the code or with the model.
    #[must_use]
    pub const fn is_bad(&self) -> bool {
        matches!(self, Self::Unreached(_) | Self::Failed | Self::NotRefuted)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("complete"),
            Self::Sampled => f.write_str("by lot"),
            Self::Cut => f.write_str("CUT"),
            Self::Unreached(probe) => write!(f, "never {probe}"),
            Self::Failed => f.write_str("FAILED"),
            Self::Refuted => f.write_str("refuted"),
            Self::NotRefuted => f.write_str("NOT REFUTED"),
        }
    }
}

impl Outcome {
    pub(crate) fn new(entry: &Entry, reports: Vec<Report>) -> Self {
        let verdict = judge(entry, &reports);
        Self { reports, verdict }
    }

    /// Returns one report for each mode, up to the first that failed.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// Returns the summary of the reports.
    pub const fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Returns the number of executions that completed, in all modes.
    #[must_use]
    pub fn executions(&self) -> u64 {
        self.reports.iter().map(|report| report.executions).sum()
    }

    /// Returns the duration of all modes together, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.reports.iter().map(|report| report.seconds).sum()
    }

    /// Returns the failed execution, if there is one.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.reports.iter().find_map(|report| report.failure.as_ref())
    }

    /// Returns the outcome if the model has shown everything that it must show.
    ///
    /// # Panics
    ///
    /// If an execution failed, or none failed although the form is known to be bad; if a probe was
    /// never passed, or the search was cut short.
    #[track_caller]
    pub fn assert_passed(&self) -> &Self {
        if self.verdict == Verdict::Failed {
            self.reports.iter().for_each(|report| _ = report.assert_ok());
        }
        let passed =
            matches!(self.verdict, Verdict::Complete | Verdict::Sampled | Verdict::Refuted);
        assert!(passed, "{self}");
        self
    }
}

/// Writes one line.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.reports.first().map_or("", |report| &report.name);
        let discarded: u64 = self.reports.iter().map(|report| report.discarded).sum();
        let longest = self.reports.iter().map(|report| report.longest).max().unwrap_or(0);
        write!(
            f,
            "{name}: {}, {} executions ({discarded} discarded), longest {longest}, {:.3} s",
            self.verdict,
            self.executions(),
            self.seconds()
        )
    }
}

fn judge(entry: &Entry, reports: &[Report]) -> Verdict {
    if let Some(failure) = reports.iter().find_map(|report| report.failure.as_ref()) {
        let known = entry.known_failure() == Some(failure.kind);
        return if known { Verdict::Refuted } else { Verdict::Failed };
    }
    let is_whole = |report: &Report| match entry.lots() {
        None => report.complete,
        Some(lots) => report.executions + report.discarded >= lots,
    };
    if !reports.iter().all(is_whole) {
        return Verdict::Cut;
    }
    if entry.known_failure().is_some() {
        return Verdict::NotRefuted;
    }
    let unreached = entry.probes().iter().find(|&&probe| {
        let passed = |report: &Report| report.probes.contains_key(probe);
        !reports.iter().all(passed)
    });
    match unreached {
        Some(probe) => Verdict::Unreached(probe),
        None if entry.is_exhaustive() => Verdict::Complete,
        None => Verdict::Sampled,
    }
}

#[cfg(test)]
mod tests {
    use antiphon_check::FailureKind;

    use crate::bounds::Bounds;
    use crate::entry::{Limits, model};
    use crate::program::Program;

    use super::Verdict;

    /// Returns the verdict for one thread that runs `body`, which is declared to end in a deadlock.
    fn verdict(body: fn()) -> Verdict {
        let program = Program::new(1, 1, move |scope| scope.spawn(body));
        let entry = model("bad/form-1", program, Bounds::PLAIN).fails(FailureKind::Deadlock);
        let outcome = entry.check(Limits::NONE);
        let passed = std::panic::catch_unwind(|| outcome.assert_passed().executions());
        assert_eq!(passed.is_ok(), *outcome.verdict() == Verdict::Refuted);
        assert_eq!(passed.is_err(), outcome.verdict().is_bad());
        outcome.verdict().clone()
    }

    #[test]
    fn what_is_known_to_be_bad_has_to_go_wrong_in_that_way() {
        use antiphon_platform::{Atomic, Atomics};
        use std::sync::atomic::Ordering::Relaxed;
        let waits = || {
            let word = <antiphon_check::Check as Atomics>::U32::ZERO;
            word.wait_while(Relaxed, |word| word == 0);
        };
        assert_eq!(verdict(waits), Verdict::Refuted);
        assert_eq!(verdict(|| panic!("another way")), Verdict::Failed);
        assert_eq!(verdict(|| ()), Verdict::NotRefuted);
    }
}

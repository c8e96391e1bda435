//! What came of a model.

use std::fmt;

use antiphon_check::{Failure, Report};

use crate::entry::Entry;

/// The reports of a model, one a mode.
#[derive(Clone, Debug)]
#[must_use = "an outcome may hold a failure"]
pub struct Outcome {
    reports: Vec<Report>,
    verdict: Verdict,
}

/// What the reports say together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// Every execution within the bounds was looked at, and none went wrong.
    Complete,
    /// As many executions as the model asks for were drawn by lot, and none went wrong.
    Sampled,
    /// Nothing went wrong until a limit was reached.
    Cut,
    /// Nothing went wrong, but no execution of a mode passed this probe.
    Unreached(&'static str),
    /// An execution went wrong: [`Outcome::failure`].
    Failed,
}

impl Verdict {
    /// Whether something is wrong, with the code or with the model.
    #[must_use]
    pub const fn is_bad(&self) -> bool {
        matches!(self, Self::Unreached(_) | Self::Failed)
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
        }
    }
}

impl Outcome {
    pub(crate) fn new(entry: &Entry, reports: Vec<Report>) -> Self {
        let verdict = judge(entry, &reports);
        Self { reports, verdict }
    }

    /// One report a mode, up to the first that failed.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// What they say together.
    pub const fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// How many executions came to an end.
    #[must_use]
    pub fn executions(&self) -> u64 {
        self.reports.iter().map(|report| report.executions).sum()
    }

    /// How long it took.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.reports.iter().map(|report| report.seconds).sum()
    }

    /// The execution that went wrong.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.reports.iter().find_map(|report| report.failure.as_ref())
    }

    /// Returns the outcome if the model has shown all that it is there to show.
    ///
    /// # Panics
    ///
    /// If an execution went wrong, a probe was never passed, or the search was cut short.
    #[track_caller]
    pub fn assert_passed(&self) -> &Self {
        for report in &self.reports {
            report.assert_ok();
        }
        let passed = matches!(self.verdict, Verdict::Complete | Verdict::Sampled);
        assert!(passed, "{self}");
        self
    }
}

/// One line.
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
    if reports.iter().any(|report| report.failure.is_some()) {
        return Verdict::Failed;
    }
    let is_whole = |report: &Report| match entry.lots() {
        None => report.complete,
        Some(lots) => report.executions + report.discarded >= lots,
    };
    if !reports.iter().all(is_whole) {
        return Verdict::Cut;
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

//! A model as a value: a program with a name, bounds, and the way its executions are searched.

use std::time::Duration;

use antiphon_check::{FailureKind, Mode, Report};

use crate::bounds::Bounds;
use crate::outcome::Outcome;
use crate::program::Program;

/// A model: a named program with bounds.
pub struct Entry {
    /// Without its subject, until [`Subject::models`] has put that before it.
    name: String,
    program: Program,
    bounds: Bounds,
    /// Number of executions drawn by lot in each mode; `None` for an exhaustive search.
    lots: Option<u64>,
    reaches: &'static [&'static str],
    fails: Option<FailureKind>,
    long: bool,
}

/// Number of executions of a long model that the tests draw by lot in each mode.
const SAMPLE: u64 = 3_000;

/// Limits after which a search stops before it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Stops after this many executions in a mode.
    pub executions: u64,
    /// Stops after this much time; a model with several modes shares it among them.
    pub time: Duration,
}

impl Limits {
    /// No limits: the search is complete.
    pub const NONE: Self = Self { executions: u64::MAX, time: Duration::MAX };
}

/// What a model is about: a lock with its variant, such as `shfl-mutex`.
pub(crate) struct Subject(pub &'static str);

impl Subject {
    /// The models of the subject, whose names begin with it from now on.
    pub fn models<const N: usize>(self, mut models: [Entry; N]) -> Vec<Entry> {
        for model in &mut models {
            model.name = format!("{}/{}", self.0, model.name);
        }
        models.into()
    }
}

/// Creates an exhaustive model, whose name is `property-case`.
pub(crate) fn model(name: &str, program: Program, bounds: Bounds) -> Entry {
    let name = name.to_owned();
    Entry { name, program, bounds, lots: None, reaches: &[], fails: None, long: false }
}

/// The models of several lists.
pub(crate) fn all_of<const N: usize>(lists: [Vec<Entry>; N]) -> Vec<Entry> {
    lists.into_iter().flatten().collect()
}

impl Entry {
    /// Makes the search random, for models too large to enumerate: `executions` random executions,
    /// and as many by PCT.
    pub(crate) const fn by_lot(mut self, executions: u64) -> Self {
        self.lots = Some(executions);
        self
    }

    /// In each mode some execution must pass each of these probes: otherwise the model does not
    /// test what it claims.
    pub(crate) const fn reaches(mut self, probes: &'static [&'static str]) -> Self {
        self.reaches = probes;
        self
    }

    /// Marks a form that is known to be bad: an execution must fail in this way.
    pub(crate) const fn fails(mut self, kind: FailureKind) -> Self {
        self.fails = Some(kind);
        self
    }

    /// Marks a model that takes more than about ten seconds to complete: the tests run it by lot
    /// ([`sampled`](Self::sampled)), and `antiphon lab check --whole` runs it completely.
    pub(crate) const fn long(mut self) -> Self {
        self.long = true;
        self
    }

    /// The name, `subject/property-case`, such as `shfl-mutex/excludes-3x1`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The subject of the check, such as `shfl-mutex`.
    #[must_use]
    pub fn subject(&self) -> &str {
        self.name.split_once('/').map_or(self.name(), |(subject, _)| subject)
    }

    /// Number of threads.
    #[must_use]
    pub const fn threads(&self) -> u32 {
        self.program.threads
    }

    /// Number of acquisitions, tries, waits, notifications or uses of a node by all threads
    /// together.
    #[must_use]
    pub const fn operations(&self) -> u32 {
        self.program.operations
    }

    /// The behaviour that the platform may show.
    #[must_use]
    pub const fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// The probes that some execution of each mode must pass.
    #[must_use]
    pub const fn probes(&self) -> &'static [&'static str] {
        self.reaches
    }

    /// How an execution must fail, if the form is known to be bad.
    #[must_use]
    pub const fn known_failure(&self) -> Option<FailureKind> {
        self.fails
    }

    /// Number of executions drawn in each mode; `None` for an exhaustive model.
    #[must_use]
    pub const fn lots(&self) -> Option<u64> {
        self.lots
    }

    /// Returns whether every execution within the bounds is checked.
    #[must_use]
    pub const fn is_exhaustive(&self) -> bool {
        self.lots.is_none()
    }

    /// Returns whether the model takes too long for every test run: tens of seconds, or hours.
    #[must_use]
    pub const fn is_long(&self) -> bool {
        self.long
    }

    /// The model as the tests run it: by lot if it is long, otherwise unchanged.
    #[must_use]
    pub const fn sampled(mut self) -> Self {
        if self.long {
            self.lots = Some(SAMPLE);
        }
        self
    }

    /// Returns the modes of the search: one exhaustive mode, or two random ones with fixed seeds.
    #[must_use]
    pub fn modes(&self) -> Vec<Mode> {
        match self.lots {
            None => vec![Mode::Exhaustive],
            Some(executions) => vec![
                Mode::Random { seed: 1, executions },
                Mode::Pct { seed: 1, depth: 3, executions },
            ],
        }
    }

    /// Runs the program under one mode: one of the model's own, another mode, or a replay.
    ///
    /// # Panics
    ///
    /// If a model is already running on this OS thread, or if the word of [`Mode::Replay`] cannot
    /// be parsed.
    pub fn run(&self, mode: Mode, limits: Limits) -> Report {
        let model = self.bounds.model(&self.name).mode(mode);
        let model = model.executions(limits.executions).time(limits.time);
        model.run(|scope| (self.program.body)(scope))
    }

    /// Runs the model in all its modes, up to the first failure.
    ///
    /// # Panics
    ///
    /// If a model is already running on this OS thread.
    pub fn check(&self, limits: Limits) -> Outcome {
        let modes = self.modes();
        let time = limits.time / u32::try_from(modes.len()).expect("few modes");
        let limits = Limits { time, ..limits };
        let mut reports = Vec::new();
        for mode in modes {
            let report = self.run(mode, limits);
            let failed = report.failure.is_some();
            reports.push(report);
            if failed {
                break;
            }
        }
        Outcome::new(self, reports)
    }
}

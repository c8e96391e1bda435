//! A model as a value: a program with a name, bounds, and how it is searched.

use std::time::Duration;

use antiphon_check::{FailureKind, Mode, Report};

use crate::bounds::Bounds;
use crate::outcome::Outcome;
use crate::program::Program;

/// A model.
pub struct Entry {
    name: &'static str,
    program: Program,
    bounds: Bounds,
    /// By lot, the number of executions in each mode; exhaustively without.
    lots: Option<u64>,
    reaches: &'static [&'static str],
    fails: Option<FailureKind>,
    long: bool,
}

/// How many executions of a long model the tests draw by lot in each mode.
const SAMPLE: u64 = 3_000;

/// When to stop looking, though there is more to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Stops after this many executions in a mode.
    pub executions: u64,
    /// Stops after this much time; a model that runs in several modes has it for all of them.
    pub time: Duration,
}

impl Limits {
    /// Look at everything.
    pub const NONE: Self = Self { executions: u64::MAX, time: Duration::MAX };
}

impl Entry {
    /// An exhaustive model.
    pub(crate) const fn new(name: &'static str, program: Program, bounds: Bounds) -> Self {
        Self { name, program, bounds, lots: None, reaches: &[], fails: None, long: false }
    }

    /// For what is too large to enumerate: `executions` executions at random, and as many by PCT.
    pub(crate) const fn by_lot(mut self, executions: u64) -> Self {
        self.lots = Some(executions);
        self
    }

    /// In each mode some execution has to pass each of these probes: otherwise the model does not
    /// test what it claims to.
    pub(crate) const fn reaches(mut self, probes: &'static [&'static str]) -> Self {
        self.reaches = probes;
        self
    }

    /// A form that is known to be bad: an execution has to go wrong in this way.
    pub(crate) const fn fails(mut self, kind: FailureKind) -> Self {
        self.fails = Some(kind);
        self
    }

    /// Takes more than some ten seconds to its end: the tests run it by lot
    /// ([`sampled`](Self::sampled)), and `antiphon lab check --whole` runs it to its end.
    pub(crate) const fn long(mut self) -> Self {
        self.long = true;
        self
    }

    /// `subject/property-case`, as `shfl-mutex/excludes-3x1`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The subject of the check: `shfl-mutex`.
    #[must_use]
    pub fn subject(&self) -> &'static str {
        self.name.split_once('/').map_or(self.name, |(subject, _)| subject)
    }

    /// How many threads there are.
    #[must_use]
    pub const fn threads(&self) -> u32 {
        self.program.threads
    }

    /// How many acquisitions, tries, waits, notifications or uses of a node all threads do.
    #[must_use]
    pub const fn operations(&self) -> u32 {
        self.program.operations
    }

    /// The behaviour that the platform may show.
    #[must_use]
    pub const fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// The probes that some execution of each mode has to pass.
    #[must_use]
    pub const fn probes(&self) -> &'static [&'static str] {
        self.reaches
    }

    /// How an execution has to go wrong, if the form is known to be bad.
    #[must_use]
    pub const fn known_failure(&self) -> Option<FailureKind> {
        self.fails
    }

    /// How many executions are drawn in each mode, if they are drawn by lot.
    #[must_use]
    pub const fn lots(&self) -> Option<u64> {
        self.lots
    }

    /// Whether every execution within the bounds is looked at.
    #[must_use]
    pub const fn is_exhaustive(&self) -> bool {
        self.lots.is_none()
    }

    /// Whether it takes too long for every run of the tests: tens of seconds, or hours.
    #[must_use]
    pub const fn is_long(&self) -> bool {
        self.long
    }

    /// The model as the tests run it: by lot if it is long, else as it is.
    #[must_use]
    pub const fn sampled(mut self) -> Self {
        if self.long {
            self.lots = Some(SAMPLE);
        }
        self
    }

    /// How executions are chosen: once, or by lot in two ways, from fixed seeds.
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

    /// Runs the program under one mode: the model's own, another one, or a replay.
    ///
    /// # Panics
    ///
    /// If a model is running on this OS thread already, or if the word of [`Mode::Replay`] can't
    /// be read.
    pub fn run(&self, mode: Mode, limits: Limits) -> Report {
        let model = self.bounds.model(self.name).mode(mode);
        let model = model.executions(limits.executions).time(limits.time);
        model.run(|scope| (self.program.body)(scope))
    }

    /// Runs the model in all its modes, up to the first failure.
    ///
    /// # Panics
    ///
    /// If a model is running on this OS thread already.
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

//! The subjects: ways to give a core away.

use antiphon_coop::Tier;

use antiphon_report::schedule::Used;

/// A way to give a core away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Alone,
    T3,
    T1,
    Coop,
    Periodic,
}

/// All subjects, in the order of the list.
pub const SUBJECTS: [Subject; 5] =
    [Subject::Alone, Subject::T3, Subject::T1, Subject::Coop, Subject::Periodic];

impl Subject {
    /// Returns its name, which `bench loop` shares if it has the subject.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::T3 => "t3",
            Self::T1 => "t1",
            Self::Coop => "coop",
            Self::Periodic => "periodic",
        }
    }

    /// Returns the options that have an effect on it. A turn of `Periodic` is `--round-us`.
    pub fn used(self) -> Used {
        match self {
            Self::Alone | Self::Periodic => Used::Nothing,
            Self::T3 => Used::by(Tier::Baton),
            Self::T1 => Used::by(Tier::Boost),
            Self::Coop => Used::by(Tier::Kernel),
        }
    }

    /// Returns a description of the subject.
    pub fn about(self) -> &'static str {
        match self {
            Self::Alone => "the loops, and a system that gives each thread a slice in turn",
            Self::T3 => "the loops hand their core to each other; the system knows nothing of it",
            Self::T1 => "a helper on each core has a loop run first while it is late",
            Self::Coop => "the system schedules by what loops tell it: what tier T0 is to be",
            Self::Periodic => "the same system without hints: each gets a turn in --round-us",
        }
    }
}

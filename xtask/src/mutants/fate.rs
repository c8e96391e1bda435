//! The fate of a mutant.

/// The result of trying a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Fate {
    /// This test failed.
    Killed(String),
    /// All tests passed.
    Survived,
    /// This test did not end in time.
    Undecided(String),
    /// The compiler rejected it, with this message.
    Unbuildable(String),
    /// The time was over before a result was known.
    Skipped,
}

impl Fate {
    /// The word that reports use.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Killed(_) => "killed",
            Self::Survived => "survived",
            Self::Undecided(_) => "undecided",
            Self::Unbuildable(_) => "unbuildable",
            Self::Skipped => "skipped",
        }
    }
}

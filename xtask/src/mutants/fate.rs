//! The fate of a mutant.

/// The verdict of the models on a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Fate {
    /// This test failed.
    Killed(String),
    /// All passed.
    Survived,
    /// This one did not end in time.
    Undecided(String),
    /// The compiler refused it, and said so.
    Unbuildable(String),
    /// The time was over before it was known.
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

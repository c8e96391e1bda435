//! The survey of all locks, for `antiphon locks --measure`: the command runs the laboratory with
//! [`VERB`] and an [`Extent`], and reads rows of JSON from its stdout.

/// The laboratory's hidden verb.
pub const VERB: &str = "__survey";

/// Length and number of the repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// Length of each repetition, in seconds.
    pub seconds: f64,
    /// The number of repetitions.
    pub repetitions: usize,
}

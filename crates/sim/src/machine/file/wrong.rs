//! The errors of a machine file.

use std::fmt;
use std::path::Path;

/// An error in a machine file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The line of the error, from 1.
    pub line: usize,
    /// The error, and how to correct it.
    pub what: String,
}

impl Wrong {
    /// The error as one line, for the file at `path`.
    #[must_use]
    pub fn of(&self, path: &Path) -> String {
        format!("{}:{}: {}", path.display(), self.line, self.what)
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for Wrong {}

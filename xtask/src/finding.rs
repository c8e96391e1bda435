//! A finding of a check, and how it is shown.

use std::fmt;

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the root of the tree.
    pub file: String,
    /// The line, counted from 1; 0 is the file as a whole.
    pub line: usize,
    /// The defect, and what would be right.
    pub what: String,
}

impl Finding {
    /// A finding at a line, counted from 1.
    pub fn at(file: &str, line: usize, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, what: what.into() }
    }

    /// A finding about a file as a whole.
    pub fn of(file: &str, what: impl Into<String>) -> Self {
        Self::at(file, 0, what)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.what),
            line => write!(f, "{}:{line}: {}", self.file, self.what),
        }
    }
}

/// How a verb ended that could do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// Nothing is wrong.
    Clean,
    /// Something is, and was printed.
    Found,
}

/// Prints the findings in order of place.
pub fn report(mut findings: Vec<Finding>) -> Outcome {
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() { Outcome::Clean } else { Outcome::Found }
}

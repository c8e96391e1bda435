//! Findings of a check, and their output.

use std::fmt;

/// A defect, and its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the root of the tree.
    pub file: String,
    /// The line, counted from 1; 0 stands for the whole file.
    pub line: usize,
    /// The defect, and the remedy.
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

/// The result of a verb that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// There were no findings.
    Clean,
    /// There were findings, which were printed.
    Found,
}

/// Prints the findings, ordered by place.
pub fn report(mut findings: Vec<Finding>) -> Outcome {
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() { Outcome::Clean } else { Outcome::Found }
}

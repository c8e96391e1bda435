//! The errors of reading and writing traces.

use std::fmt;
use std::io;

/// An error of reading or writing a file as a trace.
#[derive(Debug)]
pub enum Error {
    /// The file could not be read or written.
    Io(io::Error),
    /// The file is not a trace.
    Foreign,
    /// The file is a trace of a version that this program does not read.
    Version {
        /// The version that the file names.
        found: u32,
    },
    /// The file has invalid content.
    Damaged {
        /// The position of the invalid block, in bytes.
        offset: u64,
        /// The error, in words.
        what: String,
    },
}

impl Error {
    pub(crate) fn damaged(offset: u64, what: impl Into<String>) -> Self {
        Self::Damaged { offset, what: what.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(out),
            Self::Foreign => write!(out, "not a trace: `antiphon record -- CMD` writes one"),
            Self::Version { found } => write!(
                out,
                "a trace of version {found}, but this program reads version {}: record again",
                crate::file::VERSION,
            ),
            Self::Damaged { offset, what } => {
                write!(out, "damaged: {what}, in the block at byte {offset}: record again")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

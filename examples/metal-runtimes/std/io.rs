//! The error of a thread that could not be started: there is no other input or output.

use core::fmt;

/// A kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no memory.
    OutOfMemory,
    /// The system can't do that.
    Unsupported,
}

/// An error.
#[derive(Debug)]
pub struct Error(ErrorKind);

/// The result of something that may fail.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(kind)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            ErrorKind::OutOfMemory => "out of memory",
            ErrorKind::Unsupported => "unsupported",
        })
    }
}

impl core::error::Error for Error {}

//! How the command fails: one line, and an exit code that a script can trust.

use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

use crate::table::printable;

/// Why a verb did not do what it was asked.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The thing that was measured failed: 1.
    pub fn measured(message: impl Display) -> Self {
        Self::new(1, message)
    }

    /// Bad arguments: 2. The message says what is wrong, and what would be right.
    pub fn arguments(message: impl Display) -> Self {
        Self::new(2, message)
    }

    /// A kernel feature, a privilege or a program is missing: 69. The message says which, and how
    /// to get it.
    pub fn missing(message: impl Display) -> Self {
        Self::new(69, message)
    }

    /// A wrapper (`run`) failed by itself: 125.
    pub fn wrapper(message: impl Display) -> Self {
        Self::new(125, message)
    }

    /// The program under a wrapper is there but can't be run: 126.
    pub fn cannot_run(message: impl Display) -> Self {
        Self::new(126, message)
    }

    /// The program under a wrapper was not found: 127.
    pub fn not_found(message: impl Display) -> Self {
        Self::new(127, message)
    }

    /// A program that did a part of the work has failed, and has said why on stderr: its code.
    #[must_use]
    pub fn passed_on(code: u8) -> Self {
        Self::new(code, "")
    }

    /// The failure of a wrapper: exit code 125.
    #[must_use]
    pub fn of_wrapper(self) -> Self {
        Self { code: 125, ..self }
    }

    /// The message, for a caller that passes it on.
    pub fn into_message(self) -> String {
        self.message
    }

    fn new(code: u8, message: impl Display) -> Self {
        Self { code, message: message.to_string() }
    }

    /// Says why on stderr, unless another program has, and returns the exit code.
    pub fn report(&self) -> ExitCode {
        if self.message.is_empty() {
            return ExitCode::from(self.code);
        }
        let line = self.message.split_whitespace().collect::<Vec<_>>().join(" ");
        // It may quote a file that comes from anywhere.
        let line = printable(&line);
        // If stderr has no reader any more, the exit code still tells.
        let _ = writeln!(std::io::stderr(), "antiphon: {line}");
        ExitCode::from(self.code)
    }
}

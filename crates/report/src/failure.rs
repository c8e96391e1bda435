//! Failures of the command: one line, and an exit code for scripts.

use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

use crate::table::printable;

/// Why a verb failed: a message and an exit code.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The measured program or operation failed: exit code 1.
    pub fn measured(message: impl Display) -> Self {
        Self::new(1, message)
    }

    /// Bad arguments: exit code 2. The message should say what is wrong, and what would be right.
    pub fn arguments(message: impl Display) -> Self {
        Self::new(2, message)
    }

    /// A kernel feature, a privilege or a program is missing: exit code 69. The message should say
    /// which, and how to get it.
    pub fn missing(message: impl Display) -> Self {
        Self::new(69, message)
    }

    /// A wrapper (`run`) itself failed: exit code 125.
    pub fn wrapper(message: impl Display) -> Self {
        Self::new(125, message)
    }

    /// The program under a wrapper exists but can't be run: exit code 126.
    pub fn cannot_run(message: impl Display) -> Self {
        Self::new(126, message)
    }

    /// The program under a wrapper was not found: exit code 127.
    pub fn not_found(message: impl Display) -> Self {
        Self::new(127, message)
    }

    /// A helper program has failed, and has printed the reason on stderr: its exit code.
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

    /// Prints the reason on stderr, unless another program has, and returns the exit code.
    pub fn report(&self) -> ExitCode {
        if self.message.is_empty() {
            return ExitCode::from(self.code);
        }
        let line = self.message.split_whitespace().collect::<Vec<_>>().join(" ");
        // The message may quote an untrusted file.
        let line = printable(&line);
        // If stderr has no reader any more, the exit code remains.
        let _ = writeln!(std::io::stderr(), "antiphon: {line}");
        ExitCode::from(self.code)
    }
}

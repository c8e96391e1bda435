//! What a person reads and what a script reads.

pub mod file;
pub mod page;
pub mod progress;
pub mod report;
pub mod screen;
pub mod shell;
pub mod table;
pub mod words;

use std::io::Write as _;

use crate::failure::Failure;
use table::printable;

/// Says on stderr what is no failure, and may be one of whoever asked.
pub fn doubt(what: &str) {
    // Nobody reads stderr: then nobody wants to know.
    let _ = writeln!(std::io::stderr(), "antiphon: {}", printable(what));
}

/// Lets SIGPIPE end this process, as it ends other commands whose reader has gone (`| head`). Rust
/// ignores it: then what is written to nobody is an error.
pub fn end_with_the_reader() {
    // SAFETY: the default action.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Fails if stdout can't be written at all, before anybody waits for what would be lost.
///
/// # Errors
///
/// Why it can't.
pub fn check_stdout() -> Result<(), Failure> {
    file::takes(std::io::stdout()).map(drop).map_err(stdout_failed)
}

/// Writes `text` to stdout, whole.
///
/// # Errors
///
/// If stdout can't be written: the disk is full, perhaps.
pub fn say(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(stdout_failed)
}

fn stdout_failed(error: std::io::Error) -> Failure {
    Failure::measured(format!("stdout: {error}"))
}

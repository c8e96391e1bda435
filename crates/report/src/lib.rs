//! Code that the command and the laboratory share: output, statistics, arguments and errors.
//!
//! `antiphon` is what people run on their programs, `antiphon-lab` measures and simulates. A report
//! of one looks like a report of the other, and scripts read both. Both call themselves `antiphon`
//! in messages and in reports, because `antiphon VERB` runs either of them.
//!
//! | module | contents |
//! |---|---|
//! | [`report`] | the frame of every JSON report |
//! | [`table`], [`words`], [`shell`] | text for people |
//! | [`page`] | reports as pages, with drawings |
//! | [`screen`], [`progress`] | the terminal, while something runs |
//! | [`file`](mod@file) | output files |
//! | [`stats`] | medians, intervals, distributions, fairness |
//! | [`failure`] | errors as one line and an exit code |
//! | [`command`] | clap's errors in that form |
//! | [`process`] | signals and stack limit of the process |
//! | [`list`], [`input`], [`schedule`], [`machine`] | arguments: lists, files, options, machines |
//! | [`folders`] | folders for files kept between runs |
//! | [`survey`] | the interface by which the command has the laboratory measure all locks |
//! | [`cpu_time`], [`busy`] | CPU time of children, and of all programs |

pub mod busy;
pub mod command;
pub mod cpu_time;
pub mod failure;
pub mod file;
pub mod folders;
pub mod input;
pub mod list;
pub mod machine;
pub mod page;
pub mod process;
pub mod progress;
pub mod report;
pub mod schedule;
pub mod screen;
pub mod shell;
pub mod stats;
pub mod survey;
pub mod table;
pub mod words;

use std::io::Write as _;

use crate::failure::Failure;
use table::printable;

/// Prints a warning on stderr: not a failure, but perhaps a mistake of the user.
pub fn doubt(what: &str) {
    // If stderr has no reader, the message is lost.
    let _ = writeln!(std::io::stderr(), "antiphon: {}", printable(what));
}

/// Lets SIGPIPE end this process, as it ends other commands whose reader has gone (`| head`). Rust
/// ignores the signal; a write without a reader is then an error.
pub fn end_with_the_reader() {
    // SAFETY: sets the default action, which runs no code of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Fails if stdout can't be written at all, before the user waits for a result that would be lost.
///
/// # Errors
///
/// The reason why stdout can't be written.
pub fn check_stdout() -> Result<(), Failure> {
    file::takes(std::io::stdout()).map(drop).map_err(stdout_failed)
}

/// Writes all of `text` to stdout.
///
/// # Errors
///
/// If stdout can't be written, for example because the disk is full.
pub fn say(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(stdout_failed)
}

fn stdout_failed(error: std::io::Error) -> Failure {
    Failure::measured(format!("stdout: {error}"))
}

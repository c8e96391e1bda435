//! `record`: runs CMD and writes to a trace what its threads do to their locks.
//!
//! | module | does |
//! |---|---|
//! | [`collector`] | takes the events from CMD's threads while they run |
//! | [`story`] | turns the notes of one thread into events of a trace |
//! | [`names`] | the tables of locks and call sites |
//! | [`written`] | reports what was written |

mod collector;
mod names;
mod story;
mod written;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use antiphon_record::Scope;
use antiphon_report::failure::Failure;
use antiphon_trace::{About, Writer};
use clap::Args;

use crate::preload;
use crate::run::{ReportFile, Session, tell};
use collector::Collector;
pub use written::Written;

/// Run CMD, and write a trace of the operations of its threads on their locks
#[derive(Args)]
#[command(after_help = "\
The trace has an event each time that a thread waits for a lock, acquires or releases it, sleeps on
a condition variable or notifies one, and creates or joins a thread; `antiphon replay` runs the
trace on a simulated machine. An event takes about 5 bytes. Events are dropped, and counted, if they
come faster than they can be written, from more than 1020 threads at once, or from more than 4032
processes in all.

Exit code: that of CMD, or 128 + N if signal N killed it. If antiphon fails: 125; if CMD can't be
run: 126; if there is no such CMD: 127. `antiphon run --help` lists what CMD can rely on. The report
goes to stderr, after CMD has ended.

Example:
  antiphon record --out xz.trace -- xz -T4 -k -c FILE > FILE.xz")]
pub struct Arguments {
    /// File of the trace [default: antiphon-CMD-PID.trace in this folder]
    #[arg(long, value_name = "F")]
    out: Option<PathBuf>,
    /// Lock that CMD uses while it is recorded: one of ours, or glibc's
    #[arg(long, value_name = "L", default_value = "shfl-mutex", value_parser = preload::choices())]
    lock: String,
    /// Record only CMD and processes that it forks, not the programs that these execute
    #[arg(long)]
    no_children: bool,
    /// Show all call sites, with their full names, paths and inlined functions
    #[arg(long)]
    wide: bool,
    /// Also write the report to the file F, which ends in .json, .txt or .html
    #[arg(long, value_name = "F")]
    report: Option<PathBuf>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs CMD, writes its trace, and reports.
///
/// # Errors
///
/// If CMD can't be started, or the trace or the report can't be written; that CMD itself fails is
/// not an error.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let files = ReportFile::all(arguments.report.as_deref(), None)?;
    let path = arguments.out.clone().unwrap_or_else(|| default_path(&arguments.command[0]));
    let fail = |error: &dyn std::fmt::Display| unwritten(&path, error);
    let session = Session {
        command: &arguments.command,
        lock: &arguments.lock,
        scope: Scope::Events,
        children: !arguments.no_children,
        sites: None,
        coop: None,
    };
    let done = session.run(|recording| {
        let file = File::create(&path).map_err(|error| fail(&error))?;
        let about = about(arguments);
        let writer = Writer::new(BufWriter::new(file), &about).map_err(|error| fail(&error))?;
        let recording = recording.ok_or_else(|| fail(&"there is no recording"))?;
        Collector::start(recording, writer).map_err(|error| fail(&error))
    })?;
    let written = done.watcher.finish(&path).map_err(|error| fail(&error));
    // The report on CMD is printed even if its trace could not be written.
    let told = done.seen.report().and_then(|mut report| {
        report.trace = written.as_ref().ok().cloned();
        report.notes.extend(report.trace.as_ref().and_then(Written::unseen));
        tell(&report, arguments.wide, files)
    });
    Ok(done.ended.exit_code_after(written.map(drop).and(told)))
}

fn unwritten(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::wrapper(format!("the trace can't be written to {}: {error}", path.display()))
}

fn default_path(command: &OsStr) -> PathBuf {
    let name = Path::new(command).file_name().unwrap_or(command).to_string_lossy();
    format!("antiphon-{name}-{}.trace", std::process::id()).into()
}

fn about(arguments: &Arguments) -> About {
    let machine = antiphon_report::report::machine();
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    About {
        command: arguments.command.iter().map(|word| word.to_string_lossy().into()).collect(),
        antiphon: env!("CARGO_PKG_VERSION").to_owned(),
        machine: machine["cpu"].as_str().unwrap_or("unknown").to_owned(),
        cpus: machine["cpus"].as_u64().and_then(|cpus| u32::try_from(cpus).ok()).unwrap_or(1),
        lock: arguments.lock.clone(),
        began_s: began.as_secs(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_named_after_its_command() {
        let path = default_path(OsStr::new("/usr/bin/xz"));
        let name = path.to_string_lossy();
        assert!(name.starts_with("antiphon-xz-") && name.ends_with(".trace"), "{name}");
    }
}

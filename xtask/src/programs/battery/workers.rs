//! Runs several cases at a time, each in its own process, which adopts what its case leaves behind,
//! and has its own place.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread;

use super::case::Case;
use super::{Options, Tally};
use crate::Failure;

/// Runs all cases, `jobs` at a time, and prints the lines of each case when it has ended.
pub fn check_all(
    cases: &[Case],
    options: &Options,
    jobs: usize,
    antiphon: &Path,
) -> Result<Tally, Failure> {
    let left = Mutex::new(cases.iter());
    let work = || -> Result<Tally, String> {
        let mut tally = Tally::default();
        loop {
            let next = left.lock().map_err(|_| "a worker has panicked")?.next();
            let Some(case) = next else { return Ok(tally) };
            let output = check(case, options, antiphon)?;
            let lines = String::from_utf8_lossy(&output.stdout).into_owned();
            tally.add_lines(&lines);
            if !matches!(output.status.code(), Some(0 | 1)) {
                return Err(format!("{}: {}", case.name, output.status));
            }
        }
    };
    let done: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.min(cases.len())).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    let mut all = Tally::default();
    for one in done {
        all.add(&one.map_err(|_| "a worker has panicked")??);
    }
    Ok(all)
}

/// Runs one case in a separate process.
fn check(case: &Case, options: &Options, antiphon: &Path) -> Result<Output, String> {
    let itself = std::env::current_exe().map_err(|error| error.to_string())?;
    let modes: Vec<_> = options.modes.iter().map(|mode| mode.name).collect();
    let mut command = Command::new(itself);
    command.args(["programs", "--jobs", "1", "--only", &case.name, "--mode", &modes.join(",")]);
    command.arg("--antiphon").arg(antiphon);
    if let Some(list) = &options.list {
        command.arg("--list").arg(list);
    }
    command.stderr(Stdio::inherit()).output().map_err(|error| error.to_string())
}

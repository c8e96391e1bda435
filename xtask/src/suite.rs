//! `tests`: builds the whole test suite, and then runs it in two lanes.
//!
//! | lane | programs | how |
//! |---|---|---|
//! | foreground | those that measure time, fork, or count threads | one at a time, as cargo does |
//! | background | models, simulations, and what compiles | in the idle time |
//!
//! [`built::Program::is_timeless`] and [`built::Program::builds_a_tree`] name the programs of the
//! background. A test of the foreground often sleeps or waits, and half of the CPUs are then idle.
//! Models and simulations do not depend on real time: delays don't change their result. Each of
//! their tests runs in its own process with the scheduling class `SCHED_IDLE`, which the kernel
//! takes off the CPU at once when another thread wants it; the longest tests begin first.
//!
//! | module | does |
//! |---|---|
//! | [`list`] | the suites to build, with their features |
//! | [`built`] | builds them, and names the programs |
//! | [`lane`] | runs programs, in either lane |
//! | [`libtest`] | parses the output of a test program, and derives how long each test took |
//! | [`summary`] | counts, and names the slowest |

mod built;
mod lane;
mod libtest;
mod list;
mod summary;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use crate::finding::Outcome;
use crate::{Failure, tree};
use built::Program;
pub use built::executables;
use lane::Background;
pub use libtest::listed;
use summary::Summary;

/// `cargo xtask tests [--times FILE] [--report FILE]`.
///
/// Prints the output of each program when it has ended, then the skipped checks, the slowest tests
/// and the counts. `--times` writes how long each passed test of a model took, which `cargo xtask
/// mutants` reads; `--report` writes the slowest tests and the counts to a file, too.
pub fn run(mut arguments: lexopt::Parser) -> Result<Outcome, Failure> {
    use lexopt::prelude::*;
    let (mut times, mut report) = (None, None);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("times") => times = Some(PathBuf::from(arguments.value()?)),
            Long("report") => report = Some(PathBuf::from(arguments.value()?)),
            other => return Err(other.unexpected().into()),
        }
    }
    let root = tree::root()?;
    // A failed run must not leave files of an earlier run.
    for file in times.iter().chain(&report) {
        put(file, "")?;
    }
    let mut programs = Vec::new();
    for suite in &list::ALL {
        programs.extend(built::build(&root, suite)?);
    }
    let summary = Mutex::new(Summary::default());
    run_all(&root, &programs, &summary)?;
    let summary = summary.into_inner().map_err(|_| "a lane has panicked")?;
    if let Some(file) = times {
        put(&file, &summary.times())?;
    }
    if let Some(file) = report {
        put(&file, &summary.report())?;
    }
    print!("{summary}");
    Ok(if summary.is_failure() { Outcome::Found } else { Outcome::Clean })
}

/// Runs the programs of both lanes, and the tests of the documentation in the foreground.
fn run_all(root: &Path, programs: &[Program], summary: &Mutex<Summary>) -> Result<(), Failure> {
    let (timeless, others): (Vec<_>, Vec<_>) = programs.iter().partition(|one| one.is_timeless());
    let (builders, others): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|one| one.builds_a_tree());
    let background = Background::of(&timeless, &builders)?;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..lane::cpus())
            .map(|_| scope.spawn(|| background.work(summary).map_err(|error| error.to_string())))
            .collect();
        let foreground = run_foreground(root, &others, summary);
        // The background gets the CPUs now, or ends if the foreground has failed.
        background.hurry(foreground.is_err());
        for worker in workers {
            worker.join().map_err(|_| "a worker has panicked")??;
        }
        foreground
    })
}

fn run_foreground(
    root: &Path,
    programs: &[&Program],
    summary: &Mutex<Summary>,
) -> Result<(), Failure> {
    for program in programs {
        lane::run(&program.title(), program.command(), summary)?;
    }
    for suite in list::ALL.iter().filter(|suite| suite.documentation) {
        let title = format!("{}: documentation", suite.name);
        lane::run(&title, built::documentation(root, suite), summary)?;
    }
    Ok(())
}

fn put(file: &Path, text: &str) -> Result<(), Failure> {
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()).into())
}

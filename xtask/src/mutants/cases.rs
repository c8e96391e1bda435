//! The tests of the models, each run separately.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::budget::Budget;
use super::schemata::{PLACES, VARIABLE};
use super::scratch::Scratch;
use crate::{Failure, suite};

/// One test of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// `SUBJECT::test`.
    pub name: String,
    program: PathBuf,
    /// The mutant that the program should choose, if it has several.
    mutant: u32,
    /// Where the program should note the places of mutants that it comes to.
    places: Option<PathBuf>,
}

impl Case {
    /// The tests, with their program copied to `path`.
    ///
    /// # Errors
    ///
    /// If the program can't be copied.
    pub fn copied(cases: Vec<Self>, path: &Path) -> Result<Vec<Self>, Failure> {
        if let Some(case) = cases.first() {
            std::fs::copy(&case.program, path)?;
        }
        Ok(cases.into_iter().map(|case| Self { program: path.to_owned(), ..case }).collect())
    }

    /// The test, run with one of the program's mutants.
    pub fn with(&self, mutant: u32) -> Self {
        Self { mutant, ..self.clone() }
    }

    /// The test, run with no mutant, with the places that it comes to in the file `places`.
    pub fn noting(&self, places: PathBuf) -> Self {
        Self { mutant: 0, places: Some(places), ..self.clone() }
    }

    /// Returns whether `name` is the test's name, or that of its subject.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.name.split_once("::").is_some_and(|(subject, _)| subject == name)
    }
}

/// The result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Failed,
    TimedOut,
    /// The case was not run to its end: another case has ended the trial, or the time is over.
    NotRun,
}

/// The tests of a program.
///
/// # Errors
///
/// If the program does not list its tests.
pub fn of(program: &Path) -> Result<Vec<Case>, Failure> {
    let listed = Command::new(program).args(["--list", "--format=terse"]).output()?;
    if !listed.status.success() {
        return Err(format!("{} does not list its tests", program.display()).into());
    }
    Ok(suite::listed(&String::from_utf8_lossy(&listed.stdout))
        .map(|test| Case {
            name: test.to_owned(),
            program: program.to_owned(),
            mutant: 0,
            places: None,
        })
        .collect())
}

/// Runs `cases` in their order, `workers` at a time, each for at most `limit`, until the result of
/// one satisfies `enough`, or `budget` is used up. Returns each result, and the time it took.
///
/// # Errors
///
/// If a case can't be started.
pub fn run(
    cases: &[Case],
    workers: usize,
    scratch: &Scratch,
    limit: Duration,
    budget: Budget,
    enough: impl Fn(&Verdict) -> bool + Sync,
) -> Result<Vec<(Verdict, Duration)>, Failure> {
    let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results = Mutex::new(vec![(Verdict::NotRun, Duration::ZERO); cases.len()]);
    let work = || {
        while !over.load(Relaxed) {
            let number = next.fetch_add(1, Relaxed);
            let Some(case) = cases.get(number) else { break };
            let begun = Instant::now();
            let is_over = || over.load(Relaxed) || budget.is_spent(Instant::now());
            let verdict = run_one(case, scratch.tree(), limit, is_over)?;
            if enough(&verdict) {
                over.store(true, Relaxed);
            }
            let mut results = results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            results[number] = (verdict, begun.elapsed());
        }
        Ok(())
    };
    let ended: Result<(), std::io::Error> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("workers don't panic"))
    });
    ended?;
    Ok(results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Runs one test; kills it when `is_over` is set.
fn run_one(
    case: &Case,
    directory: &Path,
    limit: Duration,
    is_over: impl Fn() -> bool,
) -> Result<Verdict, std::io::Error> {
    let mut command = Command::new(&case.program);
    if let Some(places) = &case.places {
        command.env(PLACES, places);
    }
    let mut child = command
        .args([&case.name, "--exact"])
        .env(VARIABLE, case.mutant.to_string())
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { Verdict::Passed } else { Verdict::Failed });
        }
        let late = Instant::now() >= end;
        if late || is_over() {
            child.kill()?;
            child.wait()?;
            return Ok(if late { Verdict::TimedOut } else { Verdict::NotRun });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

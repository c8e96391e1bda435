//! `hunt`: searches for a hang of the locks under real conditions, for a given time.
//!
//! A C program (`xtask/hunt`) with the preload library uses mutexes, condition variables and
//! spinlocks in every way that a seed can choose, for some seconds; then again with the next seed.
//! Meanwhile this process stops, continues and kills it. It can fail in four ways:
//!
//! | failure | noticed by |
//! |---|---|
//! | a thread waits forever | [`watch`]: no progress on the [`board`] |
//! | a section is not exclusive, an item is lost, an answer is wrong | the program, which aborts |
//! | the library crashes | its exit status |
//! | something outlives a killed program | [`group`]: its process group; names of shared memory |
//!
//! A hang is dumped ([`dump`]): the words of every lock, the kernel's view of every thread, and the
//! stacks if a debugger is installed. A seed determines a scenario, not a schedule: to reproduce a
//! hang, `--seed N` runs its scenario repeatedly, stops and kills included.
//!
//! Each hunt begins with a run without the library: a failure there is the program's own fault.

mod board;
mod chance;
mod dump;
mod group;
mod program;
mod tally;
mod trial;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Failure;
use crate::finding::{Finding, Outcome, report};
use crate::metadata::Metadata;
use crate::tree;
use chance::Chance;
use program::Program;
use tally::Tally;
use trial::{Ending, Trial};

/// The folder that the findings of a hunt name.
const SOURCES: &str = "xtask/hunt";
/// The interval between two lines of progress.
const REPORT: Duration = Duration::from_secs(10);

/// The caller's options.
struct Options {
    length: Duration,
    /// The seed of the scenario to repeat.
    seed: Option<u64>,
    library: Option<PathBuf>,
    /// How long all workers may make no progress; a single worker may for twice as long.
    patience: Duration,
    /// Whether to run without the library, to test the program itself.
    control: bool,
    /// Whether to run a program that deadlocks, to test the watchdog.
    deadlock: bool,
}

impl Options {
    fn parse(mut arguments: lexopt::Parser) -> Result<Self, Failure> {
        use lexopt::prelude::*;
        let mut options = Self {
            length: Duration::from_secs(120),
            seed: None,
            library: None,
            patience: Duration::from_secs(10),
            control: false,
            deadlock: false,
        };
        while let Some(argument) = arguments.next()? {
            match argument {
                Long("seconds") => {
                    options.length = Duration::from_secs(arguments.value()?.parse()?);
                }
                Long("seed") => options.seed = Some(arguments.value()?.parse()?),
                Long("library") => options.library = Some(arguments.value()?.into()),
                Long("patience") => {
                    options.patience = Duration::from_secs(arguments.value()?.parse()?);
                }
                Long("control") => options.control = true,
                Long("deadlock") => options.deadlock = true,
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(options)
    }
}

/// `cargo xtask hunt [--seconds S] [--seed N] [--library PATH] [--patience S] [--control]
/// [--deadlock]`.
///
/// Without `--library`, builds the preload library as it is shipped. `--control` hunts without a
/// library, `--deadlock` runs a program that deadlocks, once: both are for this program's own test.
pub fn run(arguments: lexopt::Parser) -> Result<Outcome, Failure> {
    let options = Options::parse(arguments)?;
    let root = tree::root()?;
    let directory = Metadata::read(&root)?.target_directory.join("hunt");
    let library = match options.library.clone() {
        _ if options.control || options.deadlock => None,
        Some(library) => Some(library.canonicalize()?),
        None => Some(program::build_library(&root)?),
    };
    group::adopt_orphans()?;
    let program = Program::compile(&root, &directory)?;
    let findings = if options.deadlock {
        let seed = options.seed.unwrap_or_default();
        vec![Trial::of_deadlock(seed, options.patience).run(&program, &mut Tally::default())?]
    } else {
        hunt(&options, &program, library.as_deref())?
    };
    let findings = findings.into_iter().filter_map(|(seed, ending)| finding(seed, ending));
    Ok(report(findings.collect()))
}

/// Runs one trial after the other until the time is over or a trial fails. Time for which the
/// hunter itself was stopped does not count, neither here nor for the watchdog.
fn hunt(
    options: &Options,
    program: &Program,
    library: Option<&Path>,
) -> Result<Vec<(u64, Ending)>, Failure> {
    let mut chance = Chance::new(chance::any());
    let (mut tally, mut reported) = (Tally::default(), REPORT);
    let mut controlled = library.is_none();
    loop {
        let left = options.length.saturating_sub(tally.ran);
        if left.is_zero() {
            break;
        }
        let seed = options.seed.unwrap_or_else(|| chance.next());
        let used = library.filter(|_| controlled);
        let trial = Trial::new(seed, used, left, options.patience);
        let (seed, ending) = trial.run(program, &mut tally)?;
        if ending.is_failure() {
            eprintln!("hunt: {tally}");
            let what = if used.is_some() || library.is_none() { "" } else { "without a library: " };
            return Ok(vec![(seed, ending.with(what))]);
        }
        controlled = true;
        if tally.ran >= reported {
            eprintln!("hunt: {tally}; seed {seed}");
            reported = tally.ran + REPORT;
        }
    }
    println!("Hunt: {tally}.");
    Ok(Vec::new())
}

fn finding(seed: u64, ending: Ending) -> Option<Finding> {
    match ending {
        Ending::Finished | Ending::Killed => None,
        Ending::Failed(what) => Some(Finding::of(SOURCES, format!("seed {seed}: {what}"))),
    }
}

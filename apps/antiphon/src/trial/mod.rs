//! `try`: tests whether a program is faster with our locks, by interleaved runs.
//!
//! Runs come in pairs, one with glibc's locks and one with ours, in random order within the pair:
//! what drifts over minutes (clocks, caches, neighbours) affects both alike. The first pair warms
//! the page cache and is rejected. The others yield the ratios of wall time, ours over glibc's.
//!
//! The interval around their median is by order statistics, as in the sign test: with n pairs, the
//! number of ratios below the true median has the binomial distribution B(n, ½), so the true median
//! lies between the k-th ratio from below and the k-th from above in 1 − 2·P(B < k) of all cases.
//! The largest k for which that is 95 % or more is taken. This assumes nothing about the
//! distribution of times, and needs six pairs. Unless the interval excludes 1 no difference was
//! shown, which does not mean that there is none: the verdict names how large it may be, and what
//! would narrow the interval.

mod metric;
mod pair;

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Instant;

use antiphon_report::cpu_time;
use antiphon_report::failure::Failure;
use antiphon_report::progress::Progress;
use antiphon_report::stats::Random;
use antiphon_report::table::colour_stdout;
use antiphon_report::{report, say};
use clap::Args;

use crate::memory;
use crate::preload::{self, Under};
use crate::program::{self, Refusal};
use crate::run::{execute, inherited};
use crate::sites::{self, Sites};
use metric::Metric;
use pair::{Outcome, Pair, Run};

/// Find out whether CMD is faster with our locks than with glibc's, by interleaved runs
#[derive(Args)]
#[command(after_help = format!("\
CMD runs 2 × (N + 1) times, so it must be a command that can be repeated. Its stdin is empty, and
its output is discarded unless --keep-output is given. --metric reads a number from CMD's stdout or
stderr; of several matches, the last one counts.

Exit code: 0 if there is a verdict, also if CMD is not faster; 1 if CMD fails or prints no number to
compare; 2 if the arguments are wrong; 69 if CMD can't be run, or our locks can't get into it.

Example:
  antiphon try --pairs 20 -- xz -T4 -k -c FILE
  antiphon try --metric 'events=number of events: +([0-9]+)' -- sysbench threads --time=2 run

{}", sites::HELP))]
pub struct Arguments {
    /// Lock to compare with glibc's
    #[arg(long, value_name = "L", default_value = "shfl-mutex", value_parser = preload::LOCKS)]
    lock: String,
    /// Number of pairs of runs that count, at least 6
    #[arg(long, value_name = "N", default_value_t = 15)]
    pairs: usize,
    /// Seed of the random order of the two runs of a pair
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Replace locks only in CMD and in processes that it forks; programs that these execute keep
    /// their own locks
    #[arg(long)]
    no_children: bool,
    /// Choose lock policies by call site, with the file F; see below
    #[arg(long, value_name = "F")]
    sites: Option<PathBuf>,
    /// Also compare a number that CMD prints; the regular expression has one group (repeatable)
    #[arg(long, value_name = "NAME=REGEX", value_parser = Metric::parse)]
    metric: Vec<Metric>,
    /// Show CMD's output; with --metric, it goes to stderr
    #[arg(long)]
    keep_output: bool,
    /// Print one JSON object instead of sentences
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The least number of pairs for a 95 % interval: 2 · ½⁶ < 5 %.
const LEAST: usize = 6;
/// More pairs than a user waits for.
const MOST: usize = 10_000;

/// Runs the pairs and reports the results.
///
/// # Errors
///
/// Bad arguments; a program that can't be run or reached (69), or that fails (1).
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if !(LEAST..=MOST).contains(&arguments.pairs) {
        let message = "--pairs takes a number from 6 to 10000: fewer have no 95 % interval";
        return Err(Failure::arguments(message));
    }
    let program =
        program::find(&arguments.command[0]).map_err(|refusal| Failure::missing(refusal.why()))?;
    if let Some(obstacle) = program::obstacle(&program) {
        return Err(Failure::missing(format!("there is nothing to compare: {}", obstacle.why)));
    }
    let library = preload::unpack().map_err(Failure::missing)?;
    let sites = arguments.sites.as_deref().map(|path| Sites::read(path, &program));
    let sites = sites.transpose().map_err(Failure::arguments)?;
    let under = Under {
        library: &library,
        lock: &arguments.lock,
        recording: None,
        sites: sites.as_ref(),
        children: !arguments.no_children,
        beside: None,
    };
    let pairs = run_pairs(arguments, &program, &under)?;
    let unmatched = sites.as_ref().map(Sites::unmatched).transpose();
    let unmatched = unmatched.map_err(Failure::missing)?.unwrap_or_default();
    if let Some(sentence) = sites::sentence(&unmatched) {
        // A failed write means that the user has closed stderr.
        let _ = writeln!(std::io::stderr(), "antiphon: {sentence}");
    }
    let metrics: Vec<_> = arguments.metric.iter().map(Metric::name).collect();
    let Some(outcome) = Outcome::of(&arguments.lock, &pairs, &metrics) else {
        return Err(Failure::arguments("--pairs takes a number from 6"));
    };
    if arguments.json {
        report::print(outcome.json())?;
    } else {
        say(&outcome.text(colour_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn run_pairs(
    arguments: &Arguments,
    program: &Path,
    under: &Under<'_>,
) -> Result<Vec<Pair>, Failure> {
    let mut progress = Progress::new(arguments.pairs + 1);
    let mut random = Random(arguments.seed);
    let mut pairs = Vec::new();
    for number in 0..=arguments.pairs {
        let ours_first = random.draw().is_multiple_of(2);
        let first = time(arguments, program, ours_first.then_some(under))?;
        let second = time(arguments, program, (!ours_first).then_some(under))?;
        let (ours, glibc) = if ours_first { (first, second) } else { (second, first) };
        if number > 0 {
            pairs.push(Pair { glibc, ours, ours_first });
        }
        progress.step("a pair");
    }
    Ok(pairs)
}

/// One run, with glibc's locks or ours.
fn time(arguments: &Arguments, program: &Path, ours: Option<&Under<'_>>) -> Result<Run, Failure> {
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]).stdin(Stdio::null());
    let mut output = Output::of(arguments, &mut command)?;
    if let Some(ours) = ours {
        ours.put(&mut command);
    }
    let refused = |error: &std::io::Error| {
        Failure::missing(Refusal::of(&arguments.command[0], program, error).why())
    };
    execute::directly(&mut command, program, inherited::restore)
        .map_err(|error| refused(&error))?;
    let before = cpu_time::of_children();
    let begin = Instant::now();
    let status = command.status();
    let seconds = begin.elapsed().as_secs_f64();
    let cpu_s = (cpu_time::of_children() - before).all_s();
    let status = status.map_err(|error| refused(&error))?;
    let printed = output.read()?;
    if arguments.keep_output {
        eprint!("{printed}");
    }
    if !status.success() {
        return Err(failed(arguments, ours.is_some(), status));
    }
    let metrics = arguments.metric.iter().map(|metric| metric.find(&printed));
    let metrics = metrics.collect::<Result<_, _>>().map_err(Failure::measured)?;
    Ok(Run { seconds, cpu_s, metrics })
}

fn failed(arguments: &Arguments, ours: bool, status: ExitStatus) -> Failure {
    let name = arguments.command[0].to_string_lossy();
    let locks = if ours { arguments.lock.as_str() } else { "glibc" };
    let hint = if arguments.keep_output { "" } else { "; --keep-output shows why" };
    Failure::measured(format!("{name} failed with {locks}: {status}{hint}"))
}

/// The destination of a run's output: nowhere, our own output, or memory if metrics are read from
/// it. A pipe would be read until the last process that has it ends, even a daemon.
enum Output {
    Elsewhere,
    Memory(File),
}

impl Output {
    fn of(arguments: &Arguments, command: &mut Command) -> Result<Self, Failure> {
        if arguments.metric.is_empty() {
            if !arguments.keep_output {
                command.stdout(Stdio::null()).stderr(Stdio::null());
            }
            return Ok(Self::Elsewhere);
        }
        let failure = |error| Failure::measured(format!("no memory for the output: {error}"));
        let file = memory::file(c"antiphon-try", 0).map_err(failure)?;
        command.stdout(file.try_clone().map_err(failure)?);
        command.stderr(file.try_clone().map_err(failure)?);
        Ok(Self::Memory(file))
    }

    fn read(&mut self) -> Result<String, Failure> {
        let mut bytes = Vec::new();
        if let Self::Memory(file) = self {
            file.rewind()
                .and_then(|()| file.read_to_end(&mut bytes))
                .map_err(|error| Failure::measured(format!("the output can't be read: {error}")))?;
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

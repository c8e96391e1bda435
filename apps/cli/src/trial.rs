//! `try`: is a program faster with our locks? Interleaved runs, and an honest answer.
//!
//! Runs come in pairs, one with glibc's locks and one with ours, in random order within the pair:
//! what drifts over minutes (clocks, caches, neighbours) meets both alike. The first pair warms the
//! page cache and is rejected. From the others come the ratios of wall time, ours over glibc's.
//!
//! The interval around their median is by order statistics, as of the sign test: with n pairs, the
//! number of ratios below the true median has the binomial distribution B(n, ½), so between the
//! k-th ratio from below and the k-th from above lies the true median in 1 − 2·P(B < k) of all
//! cases. The largest k for which that is 95 % or more is taken. It asks nothing of the
//! distribution of times, and needs six pairs. The verdict is "no difference" unless the interval
//! excludes 1.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use clap::Args;
use serde_json::json;

use crate::failure::Failure;
use crate::output::progress::Progress;
use crate::output::table::duration;
use crate::output::{report, say};
use crate::preload;
use crate::program::{self, Refusal};
use crate::stats::{Interval, Random, median};

/// Is CMD faster with our locks? Interleaved runs with glibc's and ours
#[derive(Args)]
#[command(after_help = "\
CMD runs 2 × (N + 1) times, so it must be a command that can be repeated. It reads nothing from
stdin, and its output is thrown away unless --keep-output is given.

Example:
  antiphon try --pairs 20 -- xz -T4 -k -c FILE")]
pub struct Arguments {
    /// Our lock
    #[arg(long, value_name = "L", default_value = "shfl-mutex", value_parser = preload::LOCKS)]
    lock: String,
    /// Pairs of runs that count; the interval needs six
    #[arg(long, value_name = "N", default_value_t = 15)]
    pairs: usize,
    /// Of the order within pairs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Let CMD's output pass
    #[arg(long)]
    keep_output: bool,
    /// Print one JSON object instead of sentences
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// A pair needs this many to have a 95 % interval: 2 · ½⁶ < 5 %.
const LEAST: usize = 6;

struct Pair {
    glibc_s: f64,
    ours_s: f64,
    ours_first: bool,
}

impl Pair {
    fn ratio(&self) -> f64 {
        self.ours_s / self.glibc_s
    }
}

/// Runs the pairs and says what came of them.
///
/// # Errors
///
/// Bad arguments; a program that can't be run or reached (69), or that fails (1).
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if !(LEAST..=10_000).contains(&arguments.pairs) {
        let message = "--pairs takes a number from 6 to 10000: fewer have no 95 % interval";
        return Err(Failure::arguments(message));
    }
    let program =
        program::find(&arguments.command[0]).map_err(|refusal| Failure::missing(refusal.why()))?;
    if let Some(obstacle) = program::obstacle(&program) {
        return Err(Failure::missing(format!("there is nothing to compare: {obstacle}")));
    }
    let library = preload::unpack().map_err(Failure::missing)?;
    let pairs = run_pairs(arguments, &program, &library)?;
    let ratios = pairs.iter().map(Pair::ratio).collect();
    let Some(interval) = Interval::of(ratios) else {
        return Err(Failure::arguments("--pairs takes a number from 6"));
    };
    if arguments.json {
        report::print(body(&pairs, interval, &arguments.lock))?;
    } else {
        say(&text(&pairs, interval, &arguments.lock))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn run_pairs(arguments: &Arguments, program: &Path, library: &Path) -> Result<Vec<Pair>, Failure> {
    let mut progress = Progress::new(arguments.pairs + 1);
    let mut random = Random(arguments.seed);
    let mut pairs = Vec::new();
    for number in 0..=arguments.pairs {
        let ours_first = random.next().is_multiple_of(2);
        let first = time(arguments, program, ours_first.then_some(library))?;
        let second = time(arguments, program, (!ours_first).then_some(library))?;
        let (ours_s, glibc_s) = if ours_first { (first, second) } else { (second, first) };
        if number > 0 {
            pairs.push(Pair { glibc_s, ours_s, ours_first });
        }
        progress.step("a pair");
    }
    Ok(pairs)
}

/// Seconds of one run, with our locks if there is a library.
fn time(arguments: &Arguments, program: &Path, library: Option<&Path>) -> Result<f64, Failure> {
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]).stdin(Stdio::null());
    if !arguments.keep_output {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    if let Some(library) = library {
        preload::under(&mut command, library, &arguments.lock);
    }
    let begin = Instant::now();
    let status = command.status();
    let seconds = begin.elapsed().as_secs_f64();
    let name = arguments.command[0].to_string_lossy();
    match status {
        Ok(status) if status.success() => Ok(seconds),
        Ok(status) => {
            let locks = if library.is_some() { arguments.lock.as_str() } else { "glibc" };
            let hint = if arguments.keep_output { "" } else { "; --keep-output shows why" };
            Err(Failure::measured(format!("{name} failed with {locks}: {status}{hint}")))
        }
        Err(error) => {
            let refusal = Refusal::of(&arguments.command[0], program, &error);
            Err(Failure::missing(refusal.why()))
        }
    }
}

fn body(pairs: &[Pair], interval: Interval, lock: &str) -> serde_json::Value {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|pair| {
            json!({
                "glibc_s": pair.glibc_s, "ours_s": pair.ours_s, "ratio": pair.ratio(),
                "first": if pair.ours_first { lock } else { "glibc" },
            })
        })
        .collect();
    let Interval { low95, median, high95 } = interval;
    json!({
        "lock": lock, "pairs": pairs, "verdict": interval.verdict(),
        "ratio": { "median": median, "low95": low95, "high95": high95 },
    })
}

fn text(pairs: &[Pair], interval: Interval, lock: &str) -> String {
    let middle = |of: fn(&Pair) -> f64| {
        duration(median(pairs.iter().map(of).collect()).unwrap_or(f64::NAN) * 1e9)
    };
    let Interval { low95, median, high95 } = interval;
    format!(
        "glibc       {}\n{lock:<10}  {}\n\
         {lock} takes {median:.3}× the time of glibc (95 %: {low95:.3} to {high95:.3}, {} pairs)\n\
         verdict: {}\n",
        middle(|pair| pair.glibc_s),
        middle(|pair| pair.ours_s),
        pairs.len(),
        interval.verdict()
    )
}

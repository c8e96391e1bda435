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
use crate::output::report;
use crate::output::table::duration;
use crate::preload;
use crate::program::{self, Refusal};
use crate::stats::{Random, median};

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

/// Where the true median of the ratios is.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    low95: f64,
    median: f64,
    high95: f64,
}

impl Interval {
    /// `None` if there are fewer than six ratios.
    fn of(mut ratios: Vec<f64>) -> Option<Self> {
        ratios.sort_by(f64::total_cmp);
        let from_below = rank(ratios.len())?;
        Some(Self {
            low95: ratios[from_below - 1],
            high95: ratios[ratios.len() - from_below],
            median: median(ratios)?,
        })
    }

    fn verdict(self) -> &'static str {
        match self {
            Self { high95, .. } if high95 < 1.0 => "faster",
            Self { low95, .. } if low95 > 1.0 => "slower",
            _ => "no difference",
        }
    }
}

/// The largest k with 2·P(B(n, ½) < k) ≤ 5 %. `None` if that is 0.
fn rank(n: usize) -> Option<usize> {
    let mut probability = 0.5_f64.powi(i32::try_from(n).ok()?);
    let mut below = 0.0;
    let mut k = 0;
    while 2.0 * (below + probability) <= 0.05 {
        below += probability;
        probability *= (n - k) as f64 / (k + 1) as f64;
        k += 1;
    }
    (k > 0).then_some(k)
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
    let program = program::find(&arguments.command[0]).map_err(|refusal| match refusal {
        Refusal::NotFound(why) | Refusal::CannotRun(why) => Failure::missing(why),
    })?;
    if let Some(obstacle) = program::obstacle(&program) {
        return Err(Failure::missing(format!("there is nothing to compare: {obstacle}")));
    }
    let library = preload::unpack().map_err(Failure::missing)?;
    let pairs = run_pairs(arguments, &library)?;
    let ratios = pairs.iter().map(Pair::ratio).collect();
    let Some(interval) = Interval::of(ratios) else {
        return Err(Failure::arguments("--pairs takes a number from 6"));
    };
    if arguments.json {
        report::print(body(&pairs, interval, &arguments.lock))
            .map_err(|error| Failure::measured(format!("stdout: {error}")))?;
    } else {
        print(&pairs, interval, &arguments.lock);
    }
    Ok(ExitCode::SUCCESS)
}

fn run_pairs(arguments: &Arguments, library: &Path) -> Result<Vec<Pair>, Failure> {
    let mut progress = Progress::new(arguments.pairs + 1);
    let mut random = Random(arguments.seed);
    let mut pairs = Vec::new();
    for number in 0..=arguments.pairs {
        let ours_first = random.next().is_multiple_of(2);
        let first = time(arguments, ours_first.then_some(library))?;
        let second = time(arguments, (!ours_first).then_some(library))?;
        let (ours_s, glibc_s) = if ours_first { (first, second) } else { (second, first) };
        if number > 0 {
            pairs.push(Pair { glibc_s, ours_s, ours_first });
        }
        progress.step("a pair");
    }
    Ok(pairs)
}

/// Seconds of one run, with our locks if there is a library.
fn time(arguments: &Arguments, library: Option<&Path>) -> Result<f64, Failure> {
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]).stdin(Stdio::null());
    if !arguments.keep_output {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    if let Some(library) = library {
        preload::under(&mut command, library);
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
        Err(error) => Err(Failure::missing(format!("{name}: {error}"))),
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

fn print(pairs: &[Pair], interval: Interval, lock: &str) {
    let middle = |of: fn(&Pair) -> f64| {
        duration(median(pairs.iter().map(of).collect()).unwrap_or(f64::NAN) * 1e9)
    };
    let Interval { low95, median, high95 } = interval;
    println!("glibc       {}", middle(|pair| pair.glibc_s));
    println!("{lock:<10}  {}", middle(|pair| pair.ours_s));
    println!(
        "{lock} takes {median:.3}× the time of glibc (95 %: {low95:.3} to {high95:.3}, {} pairs)",
        pairs.len()
    );
    println!("verdict: {}", interval.verdict());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_sign_test() {
        // From tables of the binomial distribution.
        let known = [
            (5, None),
            (6, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (12, Some(3)),
            (15, Some(4)),
            (20, Some(6)),
            (100, Some(40)),
        ];
        for (n, k) in known {
            assert_eq!(rank(n), k, "{n} pairs");
        }
    }

    #[test]
    fn the_verdict_needs_an_interval_on_one_side_of_one() {
        let of = |ratios: &[f64]| Interval::of(ratios.to_vec()).map(Interval::verdict);
        assert_eq!(of(&[0.9, 0.8, 0.95, 0.9, 0.91, 0.99]), Some("faster"));
        assert_eq!(of(&[1.1; 6]), Some("slower"));
        assert_eq!(of(&[0.9, 0.8, 0.95, 0.9, 0.91, 1.01]), Some("no difference"));
        assert_eq!(of(&[0.9; 5]), None);
    }
}

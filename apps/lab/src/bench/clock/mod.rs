//! `bench clock`: the cost of a timestamp, and whether stamps keep their order across CPUs.
//!
//! | module | does |
//! |---|---|
//! | [`measure`] | one repetition of one subject, with each thread on a CPU |
//! | [`rows`] | quartiles, and ratios of paired repetitions |
//! | [`check`] | threads that pass stamps on, and detect a stamp from the future |

mod check;
mod measure;
mod rows;

use std::process::ExitCode;

use antiphon_clock::Clock;
use antiphon_report::failure::Failure;
use antiphon_report::list::Counts;
use antiphon_report::stats::Random;
use antiphon_report::table::{colour_stdout, count};
use antiphon_report::{progress::Progress, report, say};
use clap::Args;
use serde_json::json;

use crate::clocks;
use measure::Outcome;
use rows::Row;

/// Timestamps: measure a shared counter, the CPU's counter, the kernel's clock and Ordo, and
/// transactions that are ordered by them
#[derive(Args)]
#[command(after_help = "\
Subjects take turns in random order, repetition by repetition, with each thread pinned to a CPU; the
first repetition is discarded. A ratio is the median of the ratios of paired repetitions: to shared,
and for transactions to tl2-shared. docs/clock.md says what the subjects do.

With --check, threads on all CPUs pass stamps to each other, and no stamp may be certainly later
than a stamp that another thread takes after it has read the first.

Example:
  antiphon bench clock --threads 1,2
  antiphon bench clock --check 3600")]
pub struct Arguments {
    /// Numbers of threads that take stamps
    #[arg(long, value_name = "LIST", default_value = "1,2")]
    threads: Counts,
    /// Subjects: shared, counter, clock, ordo, ordo-new, tl2-shared, tl2-ordo, or all
    #[arg(long, value_name = "LIST", default_value = "all")]
    subject: String,
    /// Length of each repetition, in seconds
    #[arg(long, value_name = "S", default_value_t = 0.05, allow_negative_numbers = true)]
    seconds: f64,
    /// Number of repetitions that count, after a discarded one
    #[arg(long, value_name = "N", default_value_t = 11)]
    repetitions: usize,
    /// Seed of the random order of the subjects
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Measure nothing, but check the order of stamps for this many seconds
    #[arg(
        long,
        value_name = "S",
        allow_negative_numbers = true,
        conflicts_with_all = ["threads", "subject", "seconds", "repetitions", "seed"]
    )]
    check: Option<f64>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Measures or checks, and prints.
///
/// # Errors
///
/// Bad arguments; a clock that can't be measured here; stamps in the wrong order, or transactions
/// that have lost updates.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let seconds = arguments.check.unwrap_or(arguments.seconds);
    if !(0.001..=100_000.0).contains(&seconds) {
        let wanted = "--seconds and --check take a time from 0.001 to 100000, such as 0.05";
        return Err(Failure::arguments(wanted));
    }
    let clock = Clock::measure().map_err(Failure::missing)?;
    match arguments.check {
        Some(seconds) => check::run(&clock, seconds, arguments.json),
        None => compare(&clock, arguments),
    }
}

fn compare(clock: &Clock, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let subjects = clocks::named(&arguments.subject).map_err(Failure::arguments)?;
    if arguments.repetitions == 0 {
        return Err(Failure::arguments("--repetitions takes a number from 1, such as 11"));
    }
    let Counts(threads) = &arguments.threads;
    let mut random = Random(arguments.seed);
    let mut progress = Progress::new(threads.len() * subjects.len() * (arguments.repetitions + 1));
    let mut rows = Vec::new();
    for &threads in threads {
        let mut outcomes: Vec<Vec<Outcome>> = vec![Vec::new(); subjects.len()];
        for repetition in 0..=arguments.repetitions {
            let mut order: Vec<_> = (0..subjects.len()).collect();
            random.shuffle(&mut order);
            for index in order {
                let outcome =
                    measure::repetition(clock, subjects[index], threads, arguments.seconds)?;
                if repetition > 0 {
                    outcomes[index].push(outcome);
                }
                progress.step(&format!("{threads} threads: {}", subjects[index].name));
            }
        }
        rows.extend(Row::of(threads, &subjects, &outcomes));
    }
    drop(progress);
    if arguments.json {
        let rows: Vec<_> = rows.iter().map(Row::json).collect();
        report::print(json!({ "clock": described(clock), "rows": rows }))?;
    } else {
        say(&format!("{}\n\n{}", heading(clock), rows::text(&rows, colour_stdout())))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The clock that was measured, for scripts.
fn described(clock: &Clock) -> serde_json::Value {
    json!({
        "source": clock.source().to_string(), "cpus": clock.cpus(),
        "uncertainty_ns": clock.uncertainty_ns(),
    })
}

/// The clock in words, for people.
fn heading(clock: &Clock) -> String {
    format!(
        "Ordo: uncertain within {} ns, on {} CPUs, by {}",
        count(clock.uncertainty_ns()),
        clock.cpus(),
        clock.source()
    )
}

//! Runs peers in Go that execute tasks, and reads their output.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::figures::{Figures, Latencies};
use super::tally::Step;
use crate::bench::rounds::Outcome;

/// Code that the Go programs share: how tasks are counted, and what is printed.
pub const COMMON: &str = include_str!("common.go");

/// The output of a program that runs tasks.
#[derive(Deserialize)]
struct Printed {
    /// The work that was not done correctly; empty if all was.
    wrong: String,
    seconds: f64,
    tasks: u64,
    cpu_ns: f64,
    waited_ns: f64,
    sum_ns: f64,
    /// Latencies in nanoseconds, with the number of occurrences of each.
    latencies_ns: Vec<(u64, u64)>,
}

/// Runs the program, if it exists, for a repetition with `workers` workers.
///
/// # Errors
///
/// If it can't be started, or fails.
pub fn measure(
    program: &Result<PathBuf, String>,
    workers: usize,
    arguments: &[String],
) -> Result<Outcome<Figures>, String> {
    let program = match program {
        Ok(program) => program,
        Err(why) => return Ok(Outcome::Missing(why.clone())),
    };
    let output = Command::new(program)
        .args(arguments)
        .env("GOMAXPROCS", workers.to_string())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("can't start the program in Go: {error}"))?;
    if !output.status.success() {
        return Err(format!("the program in Go ended with {}", output.status));
    }
    let printed: Printed =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    if !printed.wrong.is_empty() {
        return Ok(Outcome::Violation(printed.wrong));
    }
    Ok(Outcome::Figures(figures(&printed)))
}

fn figures(printed: &Printed) -> Figures {
    let mut step = Step { sum: printed.sum_ns as u64, ..Step::default() };
    for &(ns, times) in &printed.latencies_ns {
        step.latencies.record(ns, times);
        step.items += times;
    }
    let tasks = printed.tasks as f64;
    Figures {
        tasks_per_s: tasks / printed.seconds,
        cpu_us_per_task: (printed.cpu_ns - printed.waited_ns).max(0.0) / 1e3 / tasks,
        steps: vec![Latencies::of(&step, |ns| ns)],
        counted: None,
    }
}

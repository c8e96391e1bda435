//! The output of peers in Go that run tasks.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use antiphon_report::stats::Histogram;
use serde::Deserialize;

use super::figures::{Figures, Latencies};
use crate::bench::rounds::Outcome;

/// The code that programs in Go share: how tasks are counted, and what is printed.
pub const COMMON: &str = include_str!("common.go");

/// The output of a program that runs tasks.
#[derive(Deserialize)]
struct Printed {
    /// The work that was not done as it should have been.
    wrong: String,
    seconds: f64,
    tasks: u64,
    cpu_ns: f64,
    waited_ns: f64,
    sum_ns: f64,
    /// Latencies, and how often each was seen.
    latencies_ns: Vec<(u64, u64)>,
}

/// Runs the program, if there is one, for a repetition with `workers` workers.
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
    let mut seen = Histogram::new();
    printed.latencies_ns.iter().for_each(|&(ns, times)| seen.record(ns, times));
    let (tasks, packets) = (printed.tasks as f64, printed.latencies_ns.iter().map(|one| one.1));
    let at = |share| seen.quantile(share);
    let latencies = Latencies {
        mean: printed.sum_ns / packets.sum::<u64>() as f64,
        p20: at(0.2),
        p50: at(0.5),
        p99: at(0.99),
        p999: at(0.999),
        p9999: at(0.9999),
        max: seen.max() as f64,
        ..Latencies::default()
    };
    Figures {
        tasks_per_s: tasks / printed.seconds,
        cpu_us_per_task: (printed.cpu_ns - printed.waited_ns).max(0.0) / 1e3 / tasks,
        steps: vec![latencies],
        counted: None,
    }
}

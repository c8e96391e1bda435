//! The peer in Go: a program of its own.

use std::process::{Command, Stdio};

use serde::Deserialize;

use super::cases::Case;
use super::measure::{Figures, Latencies, Order};
use crate::bench::rounds::Outcome;
use crate::stats::Histogram;

/// Its name.
pub const NAME: &str = "go";
/// The program.
pub const SOURCE: &str = include_str!("packets.go");

/// What the program prints.
#[derive(Deserialize)]
struct Printed {
    /// What was not handled as it should have been.
    wrong: String,
    seconds: f64,
    tasks: u64,
    cpu_ns: f64,
    waited_ns: f64,
    sum_ns: f64,
    /// Latencies, and how often each was seen.
    latencies_ns: Vec<(u64, u64)>,
}

/// Has it carry out a repetition.
pub fn measure(order: &Order) -> Result<Outcome<Figures>, String> {
    let program = match &order.go {
        Ok(program) => program,
        Err(why) => return Ok(Outcome::Missing(why.clone())),
    };
    let case = order.cell.case;
    if matches!(case, Case::Ramp | Case::Trace) {
        return Ok(Outcome::Missing(format!("the program in Go has no case {case}")));
    }
    let rate = if case == Case::Open { order.rate } else { 0.0 };
    let heavier_ns = if case == Case::Heavier { 500 } else { 0 };
    let heavy = order.cell.heavy.map_or("", |heavy| heavy.name());
    let output = Command::new(program)
        .arg(format!("-packets={}", order.packets))
        .arg(format!("-spawners={}", case.spawners()))
        .arg(format!("-chain={}", case.chain()))
        .arg(format!("-heavier_ns={heavier_ns}"))
        .arg(format!("-heavy={heavy}"))
        .arg(format!("-rate={rate}"))
        .arg(format!("-form={}", order.cell.form.name()))
        .arg(format!("-copies={}", order.cell.copies.name()))
        .arg(format!("-seed={}", order.seed))
        .env("GOMAXPROCS", order.cell.workers.to_string())
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

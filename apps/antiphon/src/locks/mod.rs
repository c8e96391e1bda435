//! `locks`: lists every lock, with its memory and its behaviour.
//!
//! | module | has |
//! |---|---|
//! | [`catalogue`] | names, sizes, how waiters wait |
//! | [`evidence`] | the rows behind the marks: built in or measured now, and simulated |
//! | [`marks`] | the rules that compute marks from rows |
//! | [`simulated`] | the simulated rows |
//! | [`tables`] | the tables for terminals |

mod catalogue;
mod evidence;
mod marks;
mod simulated;
mod tables;

use std::process::ExitCode;

use antiphon_report::failure::Failure;
use antiphon_report::survey::Extent;
use antiphon_report::{report, say};
use clap::Args;
use serde_json::{Value, json};

use crate::gdb;
use catalogue::{LOCKS, Lock};
use evidence::Evidence;

/// List all locks: their sizes, how they do under contention, and what they are
#[derive(Args)]
#[command(after_help = "\
The marks come from measurements on the machine that is named below the table. --measure makes the
marks of this machine; it takes some minutes, and the machine should be idle.

Example:
  antiphon locks --json
  antiphon locks --gdb > antiphon.py; gdb -x antiphon.py -p PID")]
pub struct Arguments {
    /// Measure and simulate all locks on this machine, instead of showing the stored figures
    #[arg(long)]
    measure: bool,
    /// Length of each repetition, in seconds
    #[arg(
        long,
        value_name = "S",
        default_value_t = 0.1,
        requires = "measure",
        allow_negative_numbers = true
    )]
    seconds: f64,
    /// Number of repetitions that count
    #[arg(long, value_name = "N", default_value_t = 5, requires = "measure")]
    repetitions: usize,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Print a script with which gdb shows the locks of a process, their owners and their waiters
    #[arg(long, conflicts_with_all = ["json", "measure"])]
    gdb: bool,
}

/// Prints the locks.
///
/// # Errors
///
/// Bad arguments; a measurement that fails; an stdout that can't be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.gdb {
        say(&gdb::script())?;
        return Ok(ExitCode::SUCCESS);
    }
    let Arguments { seconds, repetitions, .. } = *arguments;
    let evidence = if arguments.measure {
        if !(seconds > 0.0 && seconds <= 3600.0) {
            let wanted = "--seconds takes a time from 0.001 to 3600, such as 0.1";
            return Err(Failure::arguments(wanted));
        }
        if repetitions == 0 {
            return Err(Failure::arguments("--repetitions takes a number from 1, such as 5"));
        }
        Evidence::measure(Extent { seconds, repetitions })?
    } else {
        Evidence::kept()
    };
    if arguments.json {
        let locks: Vec<_> = LOCKS.iter().map(|lock| object(lock, &evidence)).collect();
        let rules = [marks::RULE, marks::RULE_SIMULATED];
        report::print(json!({
            "locks": locks, "rules": rules, "measured_on": evidence.machine,
            "measured_by": evidence.command, "measured": evidence.measured,
            "simulated": evidence.simulated,
        }))?;
    } else {
        say(&tables::text(&evidence))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn object(lock: &Lock, evidence: &Evidence) -> Value {
    let family = lock.family.name();
    let mut object = json!({
        "name": lock.name, "kind": family, "ours": lock.ours, "bytes": lock.bytes,
        "context_bytes": lock.context.map(|context| context.waiter),
        "thread_context_bytes": lock.context.map(|context| context.thread),
        "api_change": false, "waits": lock.waits, "order": lock.order, "timed": lock.timed,
    });
    for role in marks::ROLES {
        let mark = marks::of(&evidence.measured, family, lock.name, role);
        object[role] = json!(mark.map(|mark| json!({ "mark": mark.word(), "share": mark.0 })));
    }
    if lock.ours {
        let aware = marks::is_numa_aware(&evidence.simulated, lock.name);
        object["numa"] = json!({ "model": true, "aware": aware });
    }
    object
}

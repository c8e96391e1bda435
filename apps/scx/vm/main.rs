//! The init program of `cargo xtask vm`: runs the cases of the machine that it was started on, and
//! tells their results on the console.
//!
//! | suite (`antiphon=` of the kernel's command line) | machine | cases |
//! |---|---|---|
//! | `one` | one CPU, whose time counts instructions | `policy`, `loops`, `figures`, `locks`, … |
//! | `fast` | the same, with eight times as many instructions in a second | `cost` |
//! | `many` | several CPUs | `life`: deaths, hostile processes, CPUs that go, … |
//! | `caches` | several CPUs of two last-level caches | `caches` |
//!
//! A line `case NAME pass: …` or `case NAME fail: …` for each, `figure …` lines for the docs, and
//! `result pass` or `result fail` at the end.

mod caches;
mod client;
mod cost;
mod cpus;
mod figures;
mod groups;
mod life;
mod locks;
mod loops;
mod policy;
mod pure;
mod replay;
mod scheduler;
mod seats;
mod silent;
mod start;
mod thread;
mod weights;

use std::process::ExitCode;

use antiphon_scx::loader::{SPUN_NS, Scope, Setup};
use antiphon_scx::server;
use start::Case;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some(scheduler::VERB) => return schedule(arguments),
        Some(client::VERB) => return client::run(arguments.next()),
        Some(locks::VERB) => return locks::run(arguments),
        _ => {}
    }
    start::run(&[], suite)
}

/// The scheduler's program, with the options of a case.
fn schedule(arguments: impl Iterator<Item = String>) -> ExitCode {
    let mut setup = Setup { watchdog_ms: 30_000, ..Setup::default() };
    let mut group = None;
    for argument in arguments {
        match argument.as_str() {
            "full" => setup.scope = Scope::Full,
            "no-police" => setup.parameters.police = 0,
            "no-kick" => setup.parameters.kick = 0,
            "no-grace" => setup.parameters.grace_ns = 0,
            "spinners" => setup.parameters.spun_ns = SPUN_NS,
            "patient" => setup.parameters.slack_ns = 500_000_000,
            // Fewer than an emulated CPU wakes a thread up.
            "few-kicks" => setup.parameters.kick_ns = 20_000_000,
            "one-queue" => setup.parameters.llcs = 1,
            // No thread of another cache is neglected: emulated CPUs are late.
            "steady" => setup.parameters.lag_ns = 60_000_000_000,
            "hesitant" => setup.parameters.hesitation = 20_000,
            "trace" => setup.parameters.trace = 1,
            "group" => group = Some(client::USER),
            "stall" => (setup.parameters.stall, setup.watchdog_ms) = (1, 1_000),
            other => {
                eprintln!("no option {other}");
                return ExitCode::FAILURE;
            }
        }
    }
    match server::run(&setup, group) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("the scheduler: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the cases of a suite.
fn suite(name: &str) -> Option<&'static [Case]> {
    match name {
        "one" => Some(policy::CASES),
        "fast" => Some(cost::CASES),
        "many" => Some(life::CASES),
        "caches" => Some(caches::CASES),
        _ => None,
    }
}

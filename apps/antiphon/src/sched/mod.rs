//! `sched`: the scheduler of sched_ext: whether this machine can have it, starting and ending it,
//! and what it decides.
//!
//! | module | has |
//! |---|---|
//! | [`kernel`] | what this machine lacks, and the remedy |
//! | [`status`] | what a running scheduler tells |
//! | [`threads`] | its threads, one row each |
//!
//! The scheduler itself is a program of its own, `antiphon-scx`: it is built with a compiler for
//! the kernel's programs, which users of the rest do not need.

mod kernel;
pub mod status;
pub mod threads;

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use antiphon_report::failure::Failure;
use antiphon_report::{report, say};
use clap::Args;
use serde_json::json;

use crate::installed;
use kernel::Facts;

/// Schedule threads by their release times, in the kernel (sched_ext)
#[derive(Args)]
#[command(after_help = "\
Starts antiphon-scx, which runs until it is ended: Linux 7.0 or later with sched_ext, and root. By
default only threads that ask for it are scheduled. If it ends, in whatever way, the kernel's own
scheduler goes on. Exits with 69 if this machine lacks something, and says what, and the remedy.

JSON: enabled, ops, kernel{release, btf_ok, missing[]{what, remedy}}, scope, processes, decisions{},
tasks[]{thread, process, name, standing, share, cpu_ns, timely_turns, tardiness_ns{mean, max},
demoted_overrun, demoted_slept, demoted_share}. A share is in CPUs, from the registration on.

Example:
  antiphon sched &
  antiphon sched --status")]
pub struct Arguments {
    /// Schedule all threads of the machine, not only those that ask for it
    #[arg(long, conflicts_with_all = ["status", "stop"])]
    full: bool,
    /// Let only this user group use the scheduler, by its name or number, and not all users
    #[arg(long, value_name = "GROUP", conflicts_with_all = ["status", "stop"])]
    group: Option<String>,
    /// Let threads that spin for one of their process without a CPU give it theirs, in programs
    /// that tell nothing: several threads that are seen at one address of the program
    #[arg(long, conflicts_with_all = ["status", "stop"])]
    spinners: bool,
    /// Print what the scheduler decides, and end
    #[arg(long, conflicts_with = "stop")]
    status: bool,
    /// End the scheduler
    #[arg(long)]
    stop: bool,
    /// Print the status as one JSON object
    #[arg(long, requires = "status")]
    json: bool,
}

/// The program with the scheduler.
const PROGRAM: &str = "antiphon-scx";

/// Starts the scheduler, ends it, or prints its status.
///
/// # Errors
///
/// This machine lacks something (exit code 69): a kernel, its type information, privilege, the
/// program; or no scheduler runs that could be asked.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let facts = Facts::read();
    let missing = facts.missing();
    if arguments.status || arguments.stop {
        // A user may look without being able to start it.
        let lacks: Vec<_> = missing.iter().filter(|one| !one.is_privilege).collect();
        if !lacks.is_empty() {
            return Err(kernel::failure(&lacks));
        }
        let status = status::ask()?;
        if arguments.stop {
            status::stop(&status)?;
            return Ok(ExitCode::SUCCESS);
        }
        if arguments.json {
            report::print(status::object(&status, &facts))?;
        } else {
            say(&status::text(&status, &facts))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !missing.is_empty() {
        return Err(kernel::failure(&missing.iter().collect::<Vec<_>>()));
    }
    let program = installed::find(PROGRAM).ok_or_else(|| {
        Failure::missing(format!(
            "this machine can have the scheduler, but there is no {PROGRAM} beside this program \
             or in PATH; in a clone, cargo install --path apps/scx --features program installs \
             it (with clang-19, libelf-dev, zlib1g-dev and pkg-config)"
        ))
    })?;
    let group = arguments.group.iter().flat_map(|group| ["--group", group]);
    let full = arguments.full.then_some("--full");
    let spinners = arguments.spinners.then_some("--spinners");
    let flags = full.into_iter().chain(spinners);
    let error = Command::new(&program).args(flags.chain(group)).exec();
    Err(Failure::missing(format!("{} can't be started: {error}", program.display())))
}

/// The part of the status about the kernel.
fn about(facts: &Facts) -> serde_json::Value {
    let missing = facts.missing();
    let one = |one: &kernel::Missing| json!({ "what": one.what, "remedy": one.remedy });
    json!({
        "release": facts.release,
        "btf_ok": facts.btf_ok(),
        "missing": missing.iter().map(one).collect::<Vec<_>>(),
    })
}

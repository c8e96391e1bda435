//! The `antiphon` command: find what a program waits for, and put better locks under it.
//!
//! One verb is one module. Each prints a table for people and, with `--json`, one object for
//! scripts; what they share is in [`output`] and [`stats`], and how they fail is in [`failure`].
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | the thing that was measured failed |
//! | 2 | bad arguments |
//! | 69 | a kernel feature, a privilege or a program is missing |
//!
//! `run` and `record` exit as the program under them does; their own failures are 125, 126 and
//! 127, as `env`'s.

mod bench;
mod cpu_time;
mod failure;
mod gdb;
mod lab;
mod list;
mod locks;
mod output;
mod preload;
mod program;
mod record;
mod run;
mod sites;
mod stats;
mod top;
mod trial;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use failure::Failure;

/// Find what a program waits for, and put better locks under it.
#[derive(Parser)]
#[command(name = "antiphon", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Run(run::Arguments),
    Record(record::Arguments),
    Top(top::Arguments),
    Try(trial::Arguments),
    #[command(subcommand)]
    Bench(Bench),
    Locks(locks::Arguments),
    #[command(subcommand)]
    Lab(Lab),
    /// One repetition of a measurement, for `bench`.
    #[command(name = bench::REPETITION, hide = true)]
    Repetition {
        order: String,
    },
    /// A busy neighbour, for `bench`.
    #[command(name = bench::NEIGHBOUR, hide = true)]
    Neighbour {
        parent: u32,
    },
}

/// Measure ours beside the peers, in one interleaved run
#[derive(Subcommand)]
enum Bench {
    Locks(bench::locks::Arguments),
    Rwlocks(bench::rwlocks::Arguments),
}

/// The laboratory behind the locks
#[derive(Subcommand)]
enum Lab {
    Check(lab::check::Arguments),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    if !matches!(cli.verb, Verb::Run(_) | Verb::Record(_)) {
        end_with_the_reader();
    }
    let done = match cli.verb {
        Verb::Run(arguments) => run::run(&arguments),
        Verb::Record(arguments) => record::run(&arguments),
        Verb::Top(arguments) => top::run(&arguments),
        Verb::Try(arguments) => trial::run(&arguments),
        Verb::Bench(Bench::Locks(arguments)) => bench::locks::run(&arguments),
        Verb::Bench(Bench::Rwlocks(arguments)) => bench::rwlocks::run(&arguments),
        Verb::Locks(arguments) => locks::run(&arguments),
        Verb::Lab(Lab::Check(arguments)) => lab::check::run(&arguments),
        Verb::Repetition { order } => bench::repetition(&order),
        Verb::Neighbour { parent } => bench::neighbour(parent),
    };
    done.unwrap_or_else(|failure| failure.report())
}

/// Lets SIGPIPE end this process, as it ends other commands whose reader has gone (`| head`). Rust
/// ignores it, and printing would panic. `run` stays: it has an exit code to pass on.
fn end_with_the_reader() {
    // SAFETY: the default action, set before there are threads.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Help goes to stdout whole; an error becomes one line.
fn refuse(error: &clap::Error) -> ExitCode {
    let help = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    if help.contains(&error.kind()) {
        let code = u8::from(error.exit_code() != 0) * 2;
        // Whoever closed the stream does not want the help.
        let _ = error.print();
        return ExitCode::from(code);
    }
    let line = one_line(&error.to_string());
    // What a wrapper exits with is CMD's; its own failures are apart.
    let wrapper = std::env::args_os().nth(1).is_some_and(|verb| verb == "run" || verb == "record");
    if wrapper { Failure::wrapper(line) } else { Failure::arguments(line) }.report()
}

/// Of clap's message: what is wrong and the tips, without the usage and the pointer to the help.
fn one_line(message: &str) -> String {
    let wanted = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more");
    let lines = message.lines().map(str::trim).filter(wanted);
    let joined = lines.collect::<Vec<_>>().join(" ");
    joined.strip_prefix("error: ").unwrap_or(&joined).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_error_is_one_line_without_usage() {
        let message = "error: unexpected argument '--x' found\n\n  tip: try '--y'\n\nUsage: a b\n\n\
                       For more information, try '--help'.\n";
        let line = one_line(message);
        assert!(line.starts_with("unexpected argument '--x' found") && line.contains("'--y'"));
        assert!(!line.contains("Usage") && !line.contains("For more") && !line.contains('\n'));
    }
}

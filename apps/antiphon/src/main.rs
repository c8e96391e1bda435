//! The `antiphon` command: finds what a program waits for, and replaces its locks by better ones.
//!
//! Verbs that measure and simulate belong to another program, which [`laboratory`] finds and runs.
//!
//! One verb is one module. Each prints a table for people and, with `--json`, one object for
//! scripts; what they share is in [`antiphon_report`].
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | the measured program failed, or the results can't be written |
//! | 2 | bad arguments, including files that can't be written from the start |
//! | 69 | a kernel feature, a privilege or a program is missing |
//!
//! `run` and `record` exit as the program under them does; their own failures are 125, 126 and 127,
//! as those of `env`.

mod gdb;
mod installed;
mod laboratory;
mod locks;
mod memory;
mod preload;
mod program;
mod record;
mod replay;
mod run;
mod sched;
mod sites;
mod symbols;
mod top;
mod trial;
mod verdict;

use std::process::ExitCode;

use antiphon_report::{command, process};
use clap::{Parser, Subcommand};

/// Verbs that exit as the program under them does.
const WRAPPERS: [&str; 2] = ["run", "record"];

/// Find out what a program waits for, and run it with better locks.
#[derive(Parser)]
#[command(
    name = "antiphon",
    version,
    arg_required_else_help = true,
    after_help = laboratory::VERBS_IN_HELP
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Run(run::Arguments),
    Record(record::Arguments),
    Replay(replay::Arguments),
    Top(top::Arguments),
    Try(trial::Arguments),
    Locks(locks::Arguments),
    Sched(sched::Arguments),
}

impl Verb {
    /// Returns whether the process may end when the reader of its stdout goes away. A wrapper may
    /// not: it has an exit code to pass on.
    fn only_prints(&self) -> bool {
        !matches!(self, Verb::Run(_) | Verb::Record(_))
    }
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if laboratory::has(&arguments) {
        return laboratory::carry_out(&arguments).report();
    }
    process::prepare();
    process::with_room(work)
}

fn work() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return command::refuse::<Cli>(&error, &WRAPPERS),
    };
    if cli.verb.only_prints() {
        antiphon_report::end_with_the_reader();
        if let Err(failure) = antiphon_report::check_stdout() {
            return failure.report();
        }
    }
    let done = match cli.verb {
        Verb::Run(arguments) => run::run(&arguments),
        Verb::Record(arguments) => record::run(&arguments),
        Verb::Replay(arguments) => replay::run(&arguments),
        Verb::Top(arguments) => top::run(&arguments),
        Verb::Try(arguments) => trial::run(&arguments),
        Verb::Locks(arguments) => locks::run(&arguments),
        Verb::Sched(arguments) => sched::run(&arguments),
    };
    done.unwrap_or_else(|failure| failure.report())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use antiphon_report::command::one_line;
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_error_is_one_line_that_says_where_there_is_more() {
        let said = |arguments: &[&str]| {
            let error = Cli::try_parse_from([&["antiphon"], arguments].concat()).err();
            let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
            one_line::<Cli>(&error.expect("bad arguments").to_string(), &arguments)
        };
        assert_eq!(
            said(&["run", "--lock", "fast", "--", "ls"]),
            "invalid value 'fast' for '--lock <L>'; possible values: shfl-mutex, shfl-mutex+light, \
             glibc; see antiphon run --help"
        );
        assert_eq!(
            said(&["try"]),
            "the following required arguments were not provided: <CMD>...; see antiphon try --help"
        );
    }
}

//! The laboratory of Antiphon: measures its parts beside their peers, simulates them on machines of
//! many sockets, and checks them.
//!
//! Its verbs belong to `antiphon`, which runs this program for them: `antiphon bench locks` is
//! `antiphon-lab bench locks`, and help, messages and reports name the former. It is a separate
//! program because what it compares with (other runtimes, decoders, windows) is of no use to a
//! program that runs under `antiphon`.
//!
//! One verb is one module. Each prints a table for people and, with `--json`, one object for
//! scripts; code shared with the command is in [`antiphon_report`].
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | what was measured failed, or the results can't be written |
//! | 2 | bad arguments, including files that can't be written from the start |
//! | 69 | a kernel feature, a privilege or a program is missing |

mod all_cpus;
mod bench;
mod bounded;
mod clocks;
mod compete;
mod every;
mod figures;
mod lab;
mod metal;
mod named;
mod pinned;
mod sim;
mod ticks;
mod validate;

use std::process::ExitCode;

use antiphon_report::survey::{self, Extent};
use antiphon_report::{command, process};
use clap::{Parser, Subcommand};

use bench::Family;

/// The laboratory of Antiphon: measures, simulates and checks its parts
///
/// Run it as `antiphon VERB`.
#[derive(Parser)]
#[command(name = "antiphon-lab", bin_name = "antiphon", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    #[command(subcommand)]
    Bench(Bench),
    #[command(subcommand)]
    Sim(Sim),
    Validate(validate::Arguments),
    Metal(metal::Arguments),
    #[command(subcommand)]
    Lab(Lab),
    /// The rows under the marks of `antiphon locks`, measured
    #[command(name = survey::VERB, hide = true)]
    Survey {
        seconds: f64,
        repetitions: usize,
    },
    /// One repetition of a measurement, for `bench`
    #[command(name = bench::REPETITION, hide = true)]
    Repetition {
        order: String,
    },
    /// A program of `lab play`
    #[command(name = lab::play::PROGRAM, hide = true)]
    Play {
        order: String,
    },
    /// A busy neighbour, for `bench`
    #[command(name = bench::NEIGHBOUR, hide = true)]
    Neighbour {
        parent: u32,
        threads: u16,
    },
}

impl Verb {
    /// Returns whether the process may end when the reader of its stdout goes away. This is false
    /// for the programs of a run, which talk to servers that may go away, and for `lab play`, which
    /// talks to such programs until it prints.
    fn only_prints(&self) -> bool {
        use Verb::{Lab, Neighbour, Play, Repetition};
        let talks = matches!(self, Play { .. } | Repetition { .. } | Neighbour { .. });
        !talks && !matches!(self, Lab(self::Lab::Play(_)))
    }
}

/// Measure our locks, tasks, loops and so on beside their peers, in interleaved runs
#[derive(Subcommand)]
enum Bench {
    Locks(bench::locks::exclusive::Arguments),
    Rwlocks(bench::locks::shared::Arguments),
    Events(bench::events::Arguments),
    Loop(bench::event_loop::Arguments),
    Tasks(bench::tasks::Arguments),
    Clock(bench::clock::Arguments),
    Packets(bench::packets::Arguments),
    Serve(bench::serve::Arguments),
    Options(bench::options::Arguments),
    Mix(bench::mix::Arguments),
    Thesis(bench::thesis::Arguments),
}

/// Run the same code on simulated machines
#[derive(Subcommand)]
enum Sim {
    /// Simulate mutual-exclusion locks in the cases of the documents
    Locks(sim::locks::Arguments),
    /// Simulate readers-writer locks in the cases of the documents
    Rwlocks(sim::locks::Arguments),
    Events(sim::events::Arguments),
    Tasks(sim::tasks::Arguments),
    Loop(sim::event_loop::Arguments),
    Mix(sim::mix::Arguments),
    Clock(sim::clock::Arguments),
    Memory(sim::memory::Arguments),
    Guests(sim::guests::Arguments),
    Machines(sim::machines::Arguments),
    Calibrate(sim::calibrate::Arguments),
}

/// Run the model checker, adaptive players that are on time, or draw the documents' figures
#[derive(Subcommand)]
enum Lab {
    Check(lab::check::Arguments),
    Play(lab::play::Arguments),
    Figures(figures::Arguments),
}

fn main() -> ExitCode {
    process::prepare();
    process::widen_stack();
    process::with_room(work)
}

fn work() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return command::refuse::<Cli>(&error, &[]),
    };
    if cli.verb.only_prints() {
        antiphon_report::end_with_the_reader();
    }
    if let Err(failure) = antiphon_report::check_stdout() {
        return failure.report();
    }
    let done = match cli.verb {
        Verb::Bench(Bench::Locks(arguments)) => bench::locks::exclusive::run(&arguments),
        Verb::Bench(Bench::Rwlocks(arguments)) => bench::locks::shared::run(&arguments),
        Verb::Bench(Bench::Events(arguments)) => bench::events::run(&arguments),
        Verb::Bench(Bench::Loop(arguments)) => bench::event_loop::run(&arguments),
        Verb::Bench(Bench::Tasks(arguments)) => bench::tasks::run(&arguments),
        Verb::Bench(Bench::Clock(arguments)) => bench::clock::run(&arguments),
        Verb::Bench(Bench::Packets(arguments)) => bench::packets::run(&arguments),
        Verb::Bench(Bench::Serve(arguments)) => bench::serve::run(&arguments),
        Verb::Bench(Bench::Options(arguments)) => bench::options::run(&arguments),
        Verb::Bench(Bench::Mix(arguments)) => bench::mix::run(&arguments),
        Verb::Bench(Bench::Thesis(arguments)) => bench::thesis::run(&arguments),
        Verb::Sim(Sim::Locks(arguments)) => sim::locks::run(Family::Exclusive, &arguments),
        Verb::Sim(Sim::Rwlocks(arguments)) => sim::locks::run(Family::Shared, &arguments),
        Verb::Sim(Sim::Events(arguments)) => sim::events::run(&arguments),
        Verb::Sim(Sim::Tasks(arguments)) => sim::tasks::run(&arguments),
        Verb::Sim(Sim::Loop(arguments)) => sim::event_loop::run(&arguments),
        Verb::Sim(Sim::Mix(arguments)) => sim::mix::run(&arguments),
        Verb::Sim(Sim::Clock(arguments)) => sim::clock::run(&arguments),
        Verb::Sim(Sim::Memory(arguments)) => sim::memory::run(&arguments),
        Verb::Sim(Sim::Guests(arguments)) => sim::guests::run(&arguments),
        Verb::Sim(Sim::Machines(arguments)) => sim::machines::run(&arguments),
        Verb::Sim(Sim::Calibrate(arguments)) => sim::calibrate::run(&arguments),
        Verb::Validate(arguments) => validate::run(&arguments),
        Verb::Metal(arguments) => metal::run(&arguments),
        Verb::Lab(Lab::Check(arguments)) => lab::check::run(&arguments),
        Verb::Lab(Lab::Play(arguments)) => lab::play::run(&arguments),
        Verb::Lab(Lab::Figures(arguments)) => figures::run(&arguments),
        Verb::Survey { seconds, repetitions } => {
            bench::locks::survey::run(Extent { seconds, repetitions })
        }
        Verb::Play { order } => lab::play::program(&order),
        Verb::Repetition { order } => bench::repetition(&order),
        Verb::Neighbour { parent, threads } => bench::neighbour(parent, threads),
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
        let arguments = ["bench", "locks", "--thread", "1"];
        let error = Cli::try_parse_from([&["antiphon-lab"], &arguments[..]].concat()).err();
        let error = error.expect("bad arguments").to_string();
        let line = one_line::<Cli>(&error, &arguments.map(OsString::from));
        assert!(line.starts_with("unexpected argument '--thread' found; tip: "), "{line}");
        assert!(line.ends_with("'--threads'; see antiphon bench locks --help"), "{line}");
    }
}

//! `sim loop`: programs with timers and best-effort work on the cores of simulated machines.
//!
//! The loop, the scheduler, the CPU token and the balancing of domains are the code that runs on
//! Linux.
//!
//! ```text
//!   each core:  players ─ a thread each: an EventLoop, its timers and its chunks of work
//!               hogs ──── a thread each: compute
//!   the subject: how a thread gives the core to another
//! ```
//!
//! | module | has |
//! |---|---|
//! | [`cases`] | the competitors, and the places of players |
//! | [`subjects`] | ways to give a core away |
//! | [`plan`] | the placement of threads, by the seed |
//! | [`play`], [`bed`] | a player on a loop, and how the loop sleeps |
//! | [`domain`] | domains that hand a core over, and members that move |
//! | [`boost`] | helpers that raise loops while they are late |
//! | [`colours`] | one program on several loops |
//! | [`kernel`] | a kernel that schedules by our scheduler |
//! | [`experiment`] | one subject in one case |
//! | [`rows`], [`tables`], [`page`] | the results, for scripts and for people |

mod bed;
mod boost;
pub mod cases;
mod colours;
mod domain;
pub mod experiment;
mod kernel;
mod page;
pub mod plan;
mod play;
mod rows;
#[cfg(test)]
mod shapes;
pub mod subjects;
mod tables;

use std::path::PathBuf;
use std::process::ExitCode;

use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::list::Counts;
use antiphon_report::machine;
use antiphon_report::progress::Progress;
use antiphon_report::schedule::{Schedule, Used, legend};
use antiphon_report::table::colour_stdout;
use antiphon_report::words::several;
use antiphon_sim::Machine;
use clap::Args;
use serde_json::json;

use self::cases::{CASES, Case, Placement};
use self::plan::Setting;
use self::rows::Row;
use self::subjects::{SUBJECTS, Subject};
use super::report::{self, body, chosen, print};
use super::shard::Shard;
use crate::compete::terms::Hogs;
use crate::every::every;

/// Loops: simulate players and hogs on many cores; shows how late timers are, how fairly the CPU is
/// shared, and what balancing gains
#[derive(Args)]
#[command(after_help = "\
Every figure is simulated: a prediction of the model for that machine, not a measurement. The event
loop, the scheduler and the hand-over of the CPU are the code that runs on Linux. docs/loop-sim.md
describes the cases and subjects.

Examples:
  antiphon sim loop --threads 2,192
  antiphon sim loop --threads 24 --case one,misbehave --hogs 4 --subject alone,t1,coop
  antiphon sim loop --threads 1,8,64 --case colours --ms 50
  antiphon sim loop --threads 48 --subject t3 --hogs 0 --placement even,lot,join,move
  antiphon sim loop --threads 2,24,96,192 --html loop.html")]
pub struct Arguments {
    /// Simulated machine: a name from `antiphon sim machines`, host (this machine), or the path of
    /// a file
    #[arg(long, value_name = "M", default_value = "8s-192c")]
    machine: String,
    /// Numbers of cores
    #[arg(long, value_name = "LIST", default_value = "2,24,192")]
    threads: Counts,
    /// Cases: each, one, misbehave, alone-on-core, light; and colours, one program with a loop on
    /// each core
    #[arg(long, value_name = "LIST", default_value = "each")]
    case: String,
    /// Schemes: alone, t3, t1, coop, periodic, or all
    #[arg(long, value_name = "LIST", default_value = "all")]
    subject: String,
    /// Number of players per core, on average
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u8).range(1..=32))]
    players: u8,
    /// Numbers of hogs per core
    #[arg(long, value_name = "LIST", default_value = "0,4")]
    hogs: Hogs,
    /// Placement of players
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "even")]
    placement: Vec<Placement>,
    /// Times of the schedule of t3 and coop in milliseconds; t1 uses only slack and threshold
    /// [default: period=20,min-slice=0.1,slack=1,threshold=20]
    #[arg(long, value_name = "LIST")]
    options: Option<Schedule>,
    /// Time in which each thread has a turn with periodic, in microseconds
    #[arg(long, value_name = "T", default_value_t = 1_000,
          value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    round_us: u32,
    /// Numbers of colours, in the case colours
    #[arg(long, value_name = "LIST", default_value = "1,8,64")]
    colours: Counts,
    /// Simulated time that counts, in milliseconds
    #[arg(long, value_name = "T", default_value_t = 1_000,
          value_parser = clap::value_parser!(u32).range(1..=600_000))]
    ms: u32,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Simulate only the I-th of N parts of the rows, to spread them over several computers
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Also write curves to FILE as a page for a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Simulates, and prints the results.
///
/// # Errors
///
/// Bad arguments; threads that deadlock, which is a defect; if a file or stdout can't be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let described = machine::named(&arguments.machine)?.described;
    let machine = &described.machine;
    let (cases, is_coloured) = cases(&arguments.case)?;
    let subjects = chosen("subject", &arguments.subject, &SUBJECTS, (Subject::name, true))?;
    check(arguments, machine, &subjects)?;
    let html = OutputFile::of("--html", arguments.html.as_deref())?;
    let (mut numbers, shard) = (0.., arguments.shard.unwrap_or(Shard::WHOLE));
    let mut is_here = || numbers.next().is_some_and(|place| shard.has(place));
    let rows = simulated(arguments, machine, (&cases, &subjects), &mut is_here)?;
    let coloured =
        if is_coloured { coloured(arguments, machine, &mut is_here)? } else { Vec::new() };
    let heading = heading(arguments, machine);
    let schedule = arguments.options.unwrap_or_default();
    let json = || {
        let others = coloured.iter().map(|row| row.object(machine));
        let objects = rows.iter().map(|row| row.object(machine)).chain(others).collect();
        let used = rows.iter().map(|row| row.subject.used()).max().unwrap_or(Used::Nothing);
        let Arguments { ms, seed, players, round_us, .. } = *arguments;
        let conditions = json!({
            "seed": seed, "ms": ms, "players": players, "round_us": round_us,
            "options": schedule.json(used),
        });
        let mut object = body(&described, conditions, objects);
        if let Some(shard) = arguments.shard {
            object["shard"] = json!(shard);
        }
        object
    };
    let text = || {
        let mut text = format!("{heading}\n\n");
        if !rows.is_empty() {
            text += &tables::text(&rows, colour_stdout());
            text +=
                &legend(rows.iter().map(|row| (row.subject.name(), row.subject.used())), schedule);
        }
        if !coloured.is_empty() {
            text += &colours::text(&coloured, colour_stdout());
        }
        text
    };
    let page = || page::page(&heading, &rows, &coloured);
    print(arguments.json, (html, page), json, text)
}

fn heading(arguments: &Arguments, machine: &Machine) -> String {
    let Arguments { ms, seed, players, .. } = *arguments;
    let part =
        arguments.shard.map_or_else(String::new, |shard| format!(", part {shard} of the rows"));
    let players = several(players.into(), "player");
    report::heading(machine, &format!("{players} a core, {ms} ms, seed {seed}{part}"))
}

fn simulated(
    arguments: &Arguments,
    machine: &Machine,
    (cases, subjects): (&[&'static Case], &[Subject]),
    is_here: &mut impl FnMut() -> bool,
) -> Result<Vec<Row>, Failure> {
    let (threads, hogs) = (&arguments.threads.0, &arguments.hogs.0);
    let placements = &arguments.placement;
    let counted_ns = u64::from(arguments.ms) * 1_000_000;
    let (seed, players) = (arguments.seed, arguments.players.into());
    // A quarter of the counted time, but at most a tenth of a second.
    let warm_ns = (counted_ns / 4).min(100_000_000);
    let options = arguments.options.unwrap_or_default().0;
    let round_ns = u64::from(arguments.round_us) * 1_000;
    let mut all = every!(
        case in cases, hogs in hogs, subject in subjects, placement in placements,
        cores in threads
        => {
            let setting = Setting {
                machine,
                seed,
                counted_ns,
                warm_ns,
                cores,
                players,
                hogs,
                placement,
                options,
                round_ns,
            };
            (setting, subject, case)
        }
    );
    all.retain(|_| is_here());
    let mut progress = Progress::new(all.len());
    let row = |(setting, subject, case): (Setting<'_>, Subject, &'static Case)| {
        let row = Row::of(&setting, subject, case)?;
        progress.step(&format!("{}: {}, {}", case.name, subject.name(), setting.cores));
        Ok(row)
    };
    all.into_iter().map(row).collect()
}

fn coloured(
    arguments: &Arguments,
    machine: &Machine,
    is_here: &mut impl FnMut() -> bool,
) -> Result<Vec<colours::Row>, Failure> {
    let counted_ns = u64::from(arguments.ms) * 1_000_000;
    let mut rows = Vec::new();
    for &colours in &arguments.colours.0 {
        for &cores in arguments.threads.0.iter().filter(|_| is_here()) {
            let seed = arguments.seed;
            let setting = colours::Setting { machine, seed, cores, colours, counted_ns };
            rows.push(colours::Row::of(&setting)?);
        }
    }
    Ok(rows)
}

/// Returns the requested cases of players, and whether the case of colours is requested.
fn cases(text: &str) -> Result<(Vec<&'static Case>, bool), Failure> {
    let known: Vec<_> = CASES.iter().map(|case| case.name).chain([colours::NAME]).collect();
    let names = chosen("case", text, &known, (|name| name, false))?;
    let cases = CASES.iter().filter(|case| names.contains(&case.name)).collect();
    Ok((cases, names.contains(&colours::NAME)))
}

fn check(arguments: &Arguments, machine: &Machine, subjects: &[Subject]) -> Result<(), Failure> {
    let cpus = machine.cores() as usize;
    if let Some(count) = arguments.threads.0.iter().find(|count| **count > cpus) {
        return Err(Failure::arguments(format!(
            "--threads {count}: {} has {cpus} cores: from 1 to {cpus}",
            machine.name
        )));
    }
    let moves = arguments.placement.contains(&Placement::Move);
    if let Some(other) = subjects.iter().find(|subject| moves && **subject != Subject::T3) {
        return Err(Failure::arguments(format!(
            "--placement move: only members of domains move; --subject t3, and not {}",
            other.name()
        )));
    }
    Ok(())
}

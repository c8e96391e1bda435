//! `sim mix`: conferences of telephone calls on simulated machines.
//!
//! | module | has |
//! |---|---|
//! | [`codecs`] | the costs of the parts of a conference |
//! | [`subjects`] | policies, in one pool or in several |
//! | [`bridge`] | the parts, and the threads that run them |
//! | [`rows`] | the results, for scripts and for people |

mod bridge;
mod codecs;
mod rows;
#[cfg(test)]
mod shapes;
mod subjects;

use std::process::ExitCode;

use antiphon_report::failure::Failure;
use antiphon_report::list::Counts;
use antiphon_report::machine;
use antiphon_report::progress::Progress;
use antiphon_report::report::print_or_say;
use antiphon_report::table::colour_stdout;
use antiphon_sim::Machine;
use clap::Args;
use serde_json::json;

use self::bridge::Setting;
use self::codecs::{CODECS, Codec};
use self::rows::Row;
use self::subjects::Subject;
use super::report::{body, chosen, heading};
use crate::bench::mix::cases::Phase;
use crate::every::every;
use crate::named::Named as _;

/// Mix: simulate telephone conferences with our policies and pools; shows the late frames, and how
/// many conferences are possible
#[derive(Args)]
#[command(after_help = "\
Every figure is simulated: a prediction of the model for that machine, not a measurement. The code
that runs on Linux decides which worker takes which task, and which worker wakes which; the work of
a task is only a time. docs/mix.md describes conferences, and has the figures beside published ones.

Examples:
  antiphon sim mix --threads 100 --conferences 1400 --subject lifo,lifo+silos,fifo
  antiphon sim mix --machine 8s-192c --threads 48,192 --most --codec opus --phase spread")]
pub struct Arguments {
    /// Simulated machine: a name from `antiphon sim machines`, host (this machine), or the path of
    /// a file
    #[arg(long, value_name = "M", default_value = "epyc-2x64c")]
    machine: String,
    /// Numbers of workers, each on its own CPU
    #[arg(long, value_name = "LIST", default_value = "100")]
    threads: Counts,
    /// Policies to simulate, or all; with +silos, in ten pools; with +stages, in one pool each for
    /// receiving, mixing and sending
    #[arg(
        long,
        value_name = "LIST",
        default_value = "fifo,lifo,fifo+silos,lifo+silos,fifo+stages"
    )]
    subject: String,
    /// Numbers of conferences; with --most, the number that is tried first
    #[arg(long, value_name = "LIST", default_value = "1400")]
    conferences: Counts,
    /// Find the largest number of conferences with less than 1 % of late frames
    #[arg(long)]
    most: bool,
    /// Codec whose costs frames have: published, md5, g711 or opus
    #[arg(long, value_name = "LIST", default_value = "published")]
    codec: String,
    /// Times at which conferences begin; the published program begins them together
    #[arg(long, value_name = "WHEN", default_value = "together")]
    phase: Phase,
    /// Number of legs of each conference
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u8).range(1..=100))]
    legs: u8,
    /// Number of frames of each leg, 20 ms apart
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    frames: u32,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Simulates, and prints the results.
///
/// # Errors
///
/// Bad arguments; workers that deadlock, which is a defect; if stdout can't be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { seed, legs, frames, phase, most, .. } = *arguments;
    let described = machine::named(&arguments.machine)?.described;
    let machine = &described.machine;
    let codecs = chosen("codec", &arguments.codec, &CODECS.each_ref(), (|it| it.name, false))?;
    let subjects = chosen("subject", &arguments.subject, &Subject::all(), (|it| it.name, true))?;
    check(arguments, machine)?;
    let rows = simulated(arguments, machine, &codecs, &subjects)?;
    let objects = || rows.iter().map(|row| row.object(machine)).collect();
    let text = || {
        let conditions = format!(
            "conferences of {legs} legs, {frames} frames of each, {}, seed {seed}\n",
            phase.name()
        );
        let mut text = heading(machine, &conditions);
        let each = rows.len() / codecs.len();
        for (codec, rows) in codecs.iter().zip(rows.chunks(each)) {
            let Codec { name, about, .. } = codec;
            text += &format!("\n{name}: {about}\n{}", rows::table(rows, colour_stdout()));
        }
        text + RULE
    };
    let conditions = json!({
        "seed": seed, "legs": legs, "frames": frames, "phase": phase,
        "case": rows::case_name(most),
    });
    print_or_say(arguments.json, || body(&described, conditions, objects()), text)?;
    Ok(ExitCode::SUCCESS)
}

const RULE: &str = "
A breach is a frame that was sent 10 ms after it was due, or later. p50 and the others are from when
a frame was due at the mixer to when it was sent; busy is the share of the workers' time that parts
compute; far are lines that came from another node, a frame.
";

fn simulated(
    arguments: &Arguments,
    machine: &Machine,
    codecs: &[&'static Codec],
    subjects: &[Subject],
) -> Result<Vec<Row>, Failure> {
    let &Arguments { seed, legs, frames, phase, most, .. } = arguments;
    let (threads, counts) = (&arguments.threads.0, &arguments.conferences.0);
    // A search for the most conferences needs only one number to begin with.
    let counts = if most { &counts[..1] } else { counts };
    let (together, legs, frames) = (phase == Phase::Together, legs.into(), frames.into());
    let all = every!(
        codec in codecs, conferences in counts, subject in subjects, workers in threads
        => (
            Setting { machine, codec, seed, workers, conferences, legs, frames, together },
            subject
        )
    );
    let mut progress = Progress::new(all.len());
    let row = |(setting, subject): (Setting<'_>, Subject)| {
        let row = if most { Row::most } else { Row::of };
        let row = row(&setting, subject)?;
        let Setting { codec, workers, .. } = setting;
        progress.step(&format!("{}: {}, {workers} workers", codec.name, subject.name));
        Ok(row)
    };
    all.into_iter().map(row).collect()
}

/// Maximal number of legs and mixers; a larger number is a typing error.
const PARTS: usize = 1 << 20;

fn check(arguments: &Arguments, machine: &Machine) -> Result<(), Failure> {
    let cpus = machine.cores() as usize;
    if let Some(count) = arguments.threads.0.iter().find(|count| !(3..=cpus).contains(count)) {
        return Err(Failure::arguments(format!(
            "--threads {count}: {} has {cpus} CPUs, one worker each: from 3, a stage each, to \
             {cpus}",
            machine.name
        )));
    }
    let most = arguments.conferences.0.iter().max().copied().unwrap_or_default();
    let most = if arguments.most { rows::MOST } else { most };
    let legs = usize::from(arguments.legs);
    if most * (legs + 1) > PARTS {
        return Err(Failure::arguments(format!(
            "{most} conferences of {legs} legs are more than {PARTS} legs and mixers"
        )));
    }
    Ok(())
}

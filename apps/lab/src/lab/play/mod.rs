//! `lab play`: adaptive players on the cooperative loop, beside each other and beside programs that
//! only want the CPU.
//!
//! ```text
//!   lab play ──► clips (made, coded anew, or as they are)
//!      ├── player 0 … P−1 ┐ a process each, on the CPU: decodes, drops, shows
//!      ├── steady         │ one that drops nothing, at a nice value (`--nice`)
//!      └── hog 0 … H−1    ┘ a process each, on the CPU: computes
//! ```
//!
//! The code that they share with other competing programs is in [`compete`](crate::compete).
//!
//! | module | does |
//! |---|---|
//! | [`clips`], [`unfinished`] | the clips that are played, and how they are kept |
//! | [`tier`] | the tier that schedules the players |
//! | [`plan`] | the arguments, as orders for the programs |
//! | [`program`], [`kinds`], [`decoder`] | the programs |
//! | [`troubles`] | what keeps them from being on time |
//! | [`watch`], [`live`] | observes the programs, and shows their progress |
//! | [`figures`] | the figures of a run |
//! | [`tables`], [`page`] | tables for people, pictures |

mod clips;
mod decoder;
mod figures;
mod kinds;
mod live;
mod page;
mod plan;
mod program;
mod tables;
mod tier;
mod troubles;
mod unfinished;
mod watch;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

pub use program::program;

use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::schedule::Schedule;
use antiphon_report::table::colour_stdout;
use antiphon_report::{end_with_the_reader, report, say};

use crate::compete::terms::{Competitor, Grouping};
use figures::Figures;
use plan::Plan;
use tier::Choice;

/// The hidden verb of a program of a run.
pub const PROGRAM: &str = "__play";

/// The kinds of clips that can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Made {
    /// Scenes that differ by far in what their frames cost
    Bursty,
    /// All frames stand alone and cost the same
    Uniform,
}

/// Adaptive players of video on one CPU, beside programs that only want the CPU: on time, and fair
#[derive(Args)]
#[command(after_help = "\
Players drop what they have no time for, the least important frames first. Each is a process; they
take FILEs by turns, and all begin together. A FILE that is not .h264 is coded anew, in temporal
layers, by ffmpeg (apt install ffmpeg); frames are decoded by OpenH264 (apt install libopenh264-7).
Without it, or with --demand, the time that they take is spent, and the report says so.

JSON: players[]{kind, plays, model, tardiness_us{p50, p90, p99, p999, max, within_1ms, timers}, fps,
drops, layers{I, P, B, b}, quality, cpu, tier_stats}, steady, hogs[], jain_cpu, jain_fps,
players_share, switches_per_s, cpu_was_short, tier, options, level, clips[]. Of each player also
troubles{behind, long}: what kept it from being on time; and gone: what has become of it, if it was
killed or stopped. Then the report is of the others.

Exits with 1 if a player shows a wrong frame, or frames out of order, or can't decode one, or does
not play to the end; with 69 if a tier, or a program, is not to be had.

Examples:
  antiphon lab play video.mp4 --players 8 --hogs 4
  antiphon lab play --generate bursty --demand 14.3 --html play.html
  antiphon lab play --generate bursty --demand 14.3 --hogs 0 --group one
  antiphon lab play --generate bursty --players 3 --mixed")]
pub struct Arguments {
    /// Videos, which players take by turns
    #[arg(value_name = "FILE", required_unless_present = "generate")]
    files: Vec<PathBuf>,
    /// Play clips that are made by ffmpeg and kept, with the number drawn in each frame
    #[arg(long, value_name = "KIND", conflicts_with = "files")]
    generate: Option<Made>,
    /// Width and height of these clips
    #[arg(long, value_name = "WxH", default_value = "640x360", conflicts_with = "files",
        value_parser = clips::size)]
    size: (u32, u32),
    /// Frames a second of these clips
    #[arg(long, value_name = "N", default_value_t = 60, conflicts_with = "files",
        value_parser = within(1, 1000))]
    hz: u32,
    /// Number of programs that play
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = within(1, 60))]
    players: u32,
    /// Number of programs that only want the CPU
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = within(0, 256))]
    hogs: u32,
    /// The work of the hogs
    #[arg(long, default_value = "spin")]
    competitor: Competitor,
    /// Whether each player has its own share of the CPU
    #[arg(long, default_value = "each")]
    group: Grouping,
    /// The tier by which players are on time. With one group that is t1 or t3
    #[arg(long, value_name = "TIER", default_value = "auto")]
    tier: Choice,
    /// Make the last player a game, and let the one before play sound: one group, one scale
    #[arg(long)]
    mixed: bool,
    /// One player more, that drops nothing and does not cooperate, at this nice value
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = clap::value_parser!(i32).range(-20..20))]
    nice: Option<i32>,
    /// How much of a CPU a player wants on average, in per cent: the first 0.6, the last 1.4 times
    /// as much. The time that decoding does not take is spent; sound stays as it is
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    demand: Option<f64>,
    /// How often the first player goes on for up to 10 ms when it decodes; from 0 to 1
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    misbehave: f64,
    /// How long it is measured
    #[arg(long, value_name = "S", default_value_t = 10.0, allow_negative_numbers = true)]
    seconds: f64,
    /// How many CPUs all programs have together: the last of those that may be used
    #[arg(long, value_name = "N", default_value_t = 1)]
    cpus: usize,
    /// Options of t1 and t3, in milliseconds: period=20,min-slice=0.1,slack=1,threshold=20
    #[arg(long, value_name = "LIST")]
    options: Option<Schedule>,
    /// Show each video in a window of X11
    #[arg(long)]
    display: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Write pictures to a page, too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn within(least: i64, most: i64) -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(least..=most)
}

/// Plays, and prints the results.
///
/// # Errors
///
/// Bad arguments; a missing program or privilege; a player that failed.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let html = OutputFile::of("--html", arguments.html.as_deref())?;
    let plan = Plan::of(arguments)?;
    let is_terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    let observed = watch::watch(&plan, is_terminal && !arguments.json)?;
    let figures = Figures::of(&plan, &observed);
    end_with_the_reader();
    let drawn = html.map_or(Ok(()), |file| file.write(&page::page(&plan, &figures)));
    if arguments.json {
        report::print(figures.json(&plan))?;
    } else {
        say(&tables::text(&plan, &figures, colour_stdout()))?;
    }
    drawn?;
    figures.fault().map_or(Ok(ExitCode::SUCCESS), |fault| Err(Failure::measured(fault)))
}

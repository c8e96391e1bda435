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

/// Run adaptive video players on one CPU, beside programs that always want the CPU
#[derive(Args)]
#[command(after_help = "\
Players drop the frames for which they have no time, the least important first. Each player is a
process; the FILEs are assigned to them in turn, and all begin together. ffmpeg (apt install ffmpeg)
recodes a FILE that is not .h264 in temporal layers; OpenH264 (apt install libopenh264-7) decodes
frames. Without it, or with --demand, players only spend the time of decoding, and the report says
so.

JSON: players[]{kind, plays, model, tardiness_us{p50, p90, p99, p999, max, within_1ms, timers}, fps,
drops, layers{I, P, B, b}, quality, cpu, tier_stats}, steady, hogs[], jain_cpu, jain_fps,
players_share, switches_per_s, cpu_was_short, tier, options, level, clips[]. Each player also has
troubles{behind, long}: the reasons why it was late; and gone: whether it was killed or stopped. The
report then covers the others.

Exit code: 1 if a player shows a wrong frame, or frames out of order, can't decode a frame, or does
not play to the end; 69 if a tier or a program is not available.

Examples:
  antiphon lab play video.mp4 --players 8 --hogs 4
  antiphon lab play --generate bursty --demand 14.3 --html play.html
  antiphon lab play --generate bursty --demand 14.3 --hogs 0 --group one
  antiphon lab play --generate bursty --players 3 --mixed")]
pub struct Arguments {
    /// Videos, which are assigned to the players in turn
    #[arg(value_name = "FILE", required_unless_present = "generate")]
    files: Vec<PathBuf>,
    /// Play clips that ffmpeg makes, with the number drawn in each frame; they are kept for later
    /// runs
    #[arg(long, value_name = "KIND", conflicts_with = "files")]
    generate: Option<Made>,
    /// Width and height of generated clips, in pixels
    #[arg(long, value_name = "WxH", default_value = "640x360", conflicts_with = "files",
        value_parser = clips::size)]
    size: (u32, u32),
    /// Frames per second of generated clips
    #[arg(long, value_name = "N", default_value_t = 60, conflicts_with = "files",
        value_parser = within(1, 1000))]
    hz: u32,
    /// Number of players
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = within(1, 60))]
    players: u32,
    /// Number of hogs: programs that always want the CPU
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = within(0, 256))]
    hogs: u32,
    /// Work of the hogs
    #[arg(long, default_value = "spin")]
    competitor: Competitor,
    /// Whether each player has its own share of the CPU
    #[arg(long, default_value = "each")]
    group: Grouping,
    /// Tier by which players are on time; with --group one, only t1 and t3
    #[arg(long, value_name = "TIER", default_value = "auto")]
    tier: Choice,
    /// Make the last player a game and the one before a sound player, which share the scale of
    /// importance
    #[arg(long)]
    mixed: bool,
    /// Run one more player at this nice value, which drops nothing and does not cooperate
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = clap::value_parser!(i32).range(-20..20))]
    nice: Option<i32>,
    /// CPU time that a player wants on average, in percent of a CPU; the first wants 0.6 times, the
    /// last 1.4 times as much. Players spend the time that decoding does not take; sound is not
    /// changed
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    demand: Option<f64>,
    /// Probability that the first player keeps the CPU up to 10 ms longer when it decodes, from 0
    /// to 1
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    misbehave: f64,
    /// Length of the measurement, in seconds
    #[arg(long, value_name = "S", default_value_t = 10.0, allow_negative_numbers = true)]
    seconds: f64,
    /// Number of CPUs for all programs: the last of those that may be used
    #[arg(long, value_name = "N", default_value_t = 1)]
    cpus: usize,
    /// Times of the schedule of t1 and t3, in milliseconds [default:
    /// period=20,min-slice=0.1,slack=1,threshold=20]
    #[arg(long, value_name = "LIST")]
    options: Option<Schedule>,
    /// Show each video in an X11 window
    #[arg(long)]
    display: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Also write charts to FILE as a page for a browser
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

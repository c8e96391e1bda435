//! `bench loop`: programs with timers that want all of the CPU, beside other programs that do.
//!
//! ```text
//!   bench ──► a repetition (a session of its own, beside the CPU if there is another)
//!                ├── sentinel: a thread of priority 99 on the CPU, which sees how late that is
//!                ├── player 0 … P−1 ┐ a process each, on the CPU: timers, and frames to decode
//!                └── hog 0 … H−1    ┘ a process each, on the CPU: computes
//! ```
//!
//! The code that they share with other competing programs is in [`compete`](crate::compete).
//!
//! | module | does |
//! |---|---|
//! | [`cases`] | the conditions of measurements |
//! | [`clip`], [`player`] | the work of a player, and its timers |
//! | [`schemes`] | ways to schedule it: baselines, and ours |
//! | [`program`] | players and hogs as processes |
//! | [`sentinel`] | the noise of the machine itself |
//! | [`measure`], [`figures`] | one repetition, and its figures |
//! | [`rows`], [`tables`], [`page`] | rows for scripts, tables for people, pictures |

pub mod cases;
pub mod clip;
pub mod figures;
mod measure;
mod page;
pub mod player;
mod program;
mod rows;
pub mod schemes;
mod sentinel;
mod tables;

use std::path::PathBuf;
use std::process::ExitCode;

use antiphon_runtime::coop::PLACES;
use clap::Args;

pub use measure::{Order, measure};
pub use program::{Order as ProgramOrder, be};

use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::list::Counts;
use antiphon_report::schedule::Schedule;

use super::benchmark;
use super::repeat::repeat;
use super::rounds::{Measurement, Repeated, Rounds};
use super::settings::{Settings, check_seconds};
use crate::compete::cgroup::Groups;
use crate::compete::level::Level;
use crate::compete::terms::{Competitor, Grouping, Hogs, Levels, MOST as MOST_PROGRAMS};
use crate::compete::{hogs, work};
use crate::every::every;
use cases::Cell;
use figures::Figures;
use measure::How;
use schemes::{OURS, PEERS, Scheme, Shares};

/// Loops: measure whether timers are on time while all programs want the CPU, and whether it is
/// shared fairly
#[derive(Args)]
#[command(mut_arg("repetitions", |argument| argument.default_value("3")))]
#[command(after_help = "\
Players and hogs are pinned processes of one session; all begin together, and the first seconds do
not count. The first repetition of each scheme is short and discarded. Schemes that are not
permitted are skipped, unless they are named. docs/loop-bench.md describes the players.

Examples:
  antiphon bench loop --against epoll,fifo-timer
  antiphon bench loop --seconds 300 --repetitions 1 --html loop.html
  antiphon bench loop --players 1-14 --hogs 0 --alike")]
pub struct Arguments {
    /// Our schemes: alone (the loop, without cooperation), t1 (a real-time helper raises the loop
    /// while it is late), t1b (timers in a real-time thread), t2 (timers in a thread with a short
    /// slice), t3 (programs hand the CPU to each other)
    #[arg(long, value_name = "LIST")]
    subject: Option<String>,
    /// Peers to compare with; ratios are to the first: epoll (with a timerfd), epoll-slice (slices
    /// of 100 µs), tokio, fifo and rr (the whole loop in a real-time class), fifo-timer (a
    /// real-time thread for timers, and a mutex with priority inheritance)
    #[arg(long, value_name = "LIST")]
    against: Option<String>,
    /// Numbers of players: programs with timers, and with frames to decode
    #[arg(long, alias = "sweep", value_name = "LIST", default_value = "8")]
    players: Counts,
    /// Numbers of hogs: programs that always want the CPU
    #[arg(long, value_name = "LIST", default_value = "4")]
    hogs: Hogs,
    /// Work of the hogs
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "spin")]
    competitor: Vec<Competitor>,
    /// Frames per second of each player
    #[arg(long, value_name = "LIST", default_value = "60")]
    hz: Counts,
    /// Whether each player has its own share of the CPU; only t1 and t3 support one share for all
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "each")]
    group: Vec<Grouping>,
    /// Level of the kernel's run queue for the programs
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "one")]
    levels: Vec<Levels>,
    /// Number of CPUs for all programs: the last of those that may be used
    #[arg(long, value_name = "N", default_value_t = 1)]
    cpus: usize,
    /// CPU time that a player wants on average, in percent of a CPU; the first wants 0.6 times, the
    /// last 1.4 times as much
    #[arg(long, value_name = "PERCENT", default_value_t = 14.3, allow_negative_numbers = true)]
    demand: f64,
    /// Give all players the same demand, and frames of equal cost
    #[arg(long)]
    alike: bool,
    /// Probability that the first player gives the CPU away up to 10 ms too late, from 0 to 1
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    misbehave: f64,
    /// Period of the sentinel, a thread that measures the machine's delays, in microseconds; 0 for
    /// none. With a short period it sees more of them, but also makes the kernel schedule more
    /// often
    #[arg(long, value_name = "US", default_value_t = 10_000)]
    sentinel_us: u32,
    /// Give the run a greater weight than all other sessions, if that is permitted; the others then
    /// wait
    #[arg(long)]
    first: bool,
    /// Times of t3's schedule in milliseconds; t1 uses only slack and threshold [default:
    /// period=20,min-slice=0.1,slack=1,threshold=20]
    #[arg(long, value_name = "LIST")]
    options: Option<Schedule>,
    /// Length of each repetition, in seconds
    #[arg(long, value_name = "S", default_value_t = 5.0, allow_negative_numbers = true)]
    seconds: f64,
    /// Also write the distributions to FILE as a page for a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

/// The measurements to take.
struct Plan {
    cells: Vec<Cell>,
    rounds: Rounds,
    cpus: Vec<u32>,
    how: How,
    seconds: f64,
}

/// Warm-up, which is not measured: at most this many seconds, and this share of the measured time.
const WARM_S: f64 = 1.0;
const WARM: f64 = 0.25;
/// Maximal length of a rejected repetition, in seconds.
const REJECTED_S: f64 = 0.5;

/// Runs the benchmark and prints its report.
///
/// # Errors
///
/// Bad arguments; a scheme or program that was asked for by name and is missing; a program that
/// ended.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let plan = plan(arguments)?;
    let html = OutputFile::of("--html", arguments.html.as_deref())?;
    let rows = benchmark::rows(&plan, &plan.measure()?);
    let drawn = html.map_or(Ok(()), |file| file.write(&page::page(&plan, &rows)));
    let code = benchmark::print(&plan, &rows, &arguments.settings)?;
    drawn.map(|()| code)
}

fn plan(arguments: &Arguments) -> Result<Plan, Failure> {
    let Arguments { seconds, demand, misbehave, cpus, .. } = arguments;
    check_seconds(*seconds)?;
    if !(*demand > 0.0 && *demand <= 1000.0) {
        let wanted = "--demand takes per cent of a CPU from above 0 to 1000, such as 14.3";
        return Err(Failure::arguments(wanted));
    }
    if !(0.0..=1.0).contains(misbehave) {
        return Err(Failure::arguments("--misbehave takes a share from 0 to 1, such as 0.01"));
    }
    if (1..100).contains(&arguments.sentinel_us) {
        let wanted = "--sentinel-us takes 0, or 100 and more, such as 10000";
        return Err(Failure::arguments(wanted));
    }
    let rounds = rounds(arguments)?;
    let cells = cells(arguments)?;
    let allowed = antiphon_linux::allowed();
    if !(1..=allowed.len()).contains(cpus) {
        let wanted = format!("--cpus takes a number from 1 to {}", allowed.len());
        return Err(Failure::arguments(wanted));
    }
    check_room(&rounds, &cells)?;
    if cells.iter().any(|cell| cell.levels == Levels::Each) {
        Level::can_be_taken().map_err(Failure::missing)?;
    }
    if cells.iter().any(|cell| cell.levels == Levels::Cgroup) {
        if arguments.first {
            let wanted = "--first is for sessions only: leave it out, or --levels cgroup";
            return Err(Failure::arguments(wanted));
        }
        Groups::make(1).map_err(|why| Failure::missing(format!("--levels cgroup: {why}")))?;
    }
    let compiles = cells.iter().any(|cell| cell.hogs > 0 && cell.competitor == Competitor::Cc);
    let compiler = compiles.then(hogs::compiler).transpose().map_err(Failure::missing)?;
    let how = How {
        pace: work::Pace::calibrate(),
        demand: demand / 100.0,
        even: arguments.alike,
        misbehave: *misbehave,
        sentinel_ns: u64::from(arguments.sentinel_us) * 1000,
        first: arguments.first,
        schedule: arguments.options.unwrap_or_default(),
        compiler,
        seed: rounds.seed,
    };
    let cpus = allowed[allowed.len() - cpus..].to_vec();
    Ok(Plan { cells, rounds, cpus, how, seconds: *seconds })
}

/// Checks that a shared page has a place for each loop.
fn check_room(rounds: &Rounds, cells: &[Cell]) -> Result<(), Failure> {
    let shares = |cell: &Cell| {
        let weighs = cell.group == Grouping::One;
        let full = |scheme: &Scheme| match scheme.shares {
            Shares::Nothing => false,
            Shares::Weights => weighs,
            Shares::Baton => true,
        };
        rounds.subjects.iter().find(|&&name| schemes::of_name(name).is_some_and(full))
    };
    let full = |cell: &&Cell| cell.players.div_ceil(cell.cpus) > PLACES;
    match cells.iter().filter(full).find_map(|cell| Some((cell, shares(cell)?))) {
        None => Ok(()),
        Some((cell, name)) => Err(Failure::arguments(format!(
            "--players {} are too many for {name}: a CPU has room for {PLACES} of them",
            cell.players
        ))),
    }
}

/// Returns the schemes that take turns. A scheme that is asked for by name must be permitted.
fn rounds(arguments: &Arguments) -> Result<Rounds, Failure> {
    let names = |schemes: &[Scheme]| schemes.iter().map(|scheme| scheme.name).collect::<Vec<_>>();
    let (ours, peers) = (names(OURS), names(PEERS));
    let (all_ours, all_peers) = (ours.join(","), peers.join(","));
    let subject = arguments.subject.as_ref().unwrap_or(&all_ours);
    let against = arguments.against.as_ref().unwrap_or(&all_peers);
    let rounds = arguments.settings.rounds("scheme", (subject, &ours), (against, &peers))?;
    let named = |asked: &Option<String>, of: &[&'static str]| match asked {
        Some(_) => of.to_vec(),
        None => Vec::new(),
    };
    let asked = named(&arguments.subject, &rounds.subjects)
        .into_iter()
        .chain(named(&arguments.against, &rounds.peers));
    for scheme in asked.filter_map(schemes::of_name) {
        let one_group = arguments.group.contains(&Grouping::One);
        if let Some(missing) = scheme.missing(one_group) {
            return Err(Failure::missing(format!("{}: {missing}", scheme.name)));
        }
    }
    Ok(rounds)
}

fn cells(arguments: &Arguments) -> Result<Vec<Cell>, Failure> {
    let Arguments { players, hogs, competitor, hz, group, levels, cpus, settings, .. } = arguments;
    if let Some(players) = players.0.iter().find(|&&players| players > MOST_PROGRAMS) {
        let wanted = format!("--players {players} are more than {}", MOST_PROGRAMS);
        return Err(Failure::arguments(wanted));
    }
    if let Some(hz) = hz.0.iter().find(|&&hz| hz > 1000) {
        return Err(Failure::arguments(format!("--hz {hz} is more than 1000")));
    }
    let cpus = *cpus;
    Ok(every!(
        load in &settings.load, competitor in competitor, levels in levels, group in group,
        hogs in &hogs.0, hz in &hz.0, players in &players.0
        => Cell { load, players, hogs, competitor, hz, group, levels, cpus }
    ))
}

impl Measurement for Plan {
    type Cell = Cell;
    type Figures = Figures;

    fn turns(&self) -> (&Rounds, &[Cell]) {
        (&self.rounds, &self.cells)
    }

    fn repeat(&self, cell: Cell, subject: &'static str, counts: bool) -> Repeated<Figures> {
        // The first repetition is rejected; it only shows whether the scheme is available.
        let seconds = if counts { self.seconds } else { self.seconds.min(REJECTED_S) };
        let warm_s = (seconds * WARM).min(WARM_S);
        let order = Order {
            subject: subject.to_owned(),
            cell,
            cpus: self.cpus.clone(),
            how: self.how.clone(),
            seconds,
            warm_s,
        };
        repeat(&super::Order::Loop(order), seconds + warm_s)
    }
}

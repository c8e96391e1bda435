//! `bench mix`: conferences of telephone calls, mixed by a server whose parts are fibers.
//!
//! | module | has |
//! |---|---|
//! | [`codec`], [`g711`], [`opus`] | encoding and decoding of frames |
//! | [`conference`] | the parts of a conference, for any host |
//! | [`waits`] | how they wait |
//! | [`hosts`] | what runs them: one or several pools of fibers with a policy, or threads |
//! | [`cases`] | cases and conditions |
//! | [`measure`] | one repetition |
//! | [`ear`] | quality of a call, by its latency |
//! | [`report`] | the values of a row, and its columns |

pub mod cases;
pub mod codec;
pub mod conference;
pub mod ear;
mod g711;
pub mod hosts;
mod measure;
mod opus;
mod report;
pub mod waits;

use std::process::ExitCode;

use clap::Args;

pub use measure::{Figures, Order, measure};

use antiphon_report::failure::Failure;
use antiphon_report::list::Counts;

use super::benchmark;
use super::neighbours::Load;
use super::repeat::repeat;
use super::rounds::{Measurement, Repeated, Rounds};
use super::settings::Settings;
use crate::every::every;
use cases::{Cell, Phase, Wait};
use codec::Codec;

const SUBJECTS: &str = "fifo/steal-half,lifo/steal-half,staged,edf,fifo/steal-half+silos,\
                        lifo/steal-half+silos,fifo/steal-half+stages";
/// Maximal number of parts, each of which has a stack.
const PARTS: u64 = 100_000;

/// Mix: measure how many frames of telephone conferences are mixed in time
#[derive(Args)]
#[command(after_help = "\
Each repetition runs in a separate process; the first is discarded. docs/mix.md describes
conferences, and has figures.

Examples:
  antiphon bench mix --conferences 400,800
  antiphon bench mix --most --frames 100 --codec md5,g711 --subject lifo/steal-half,edf")]
pub struct Arguments {
    /// Our policies, with the names of `antiphon bench packets`: in one pool; with +silos, in
    /// several pools; with +stages, in one pool each for receiving, mixing and sending
    #[arg(long, alias = "policy", value_name = "LIST", default_value = SUBJECTS)]
    subject: String,
    /// Peers to compare with: threads; ratios are to the first
    #[arg(long, value_name = "LIST", default_value = hosts::THREADS)]
    against: String,
    /// Numbers of conferences; with --most, the number that is tried first
    #[arg(long, value_name = "LIST", default_value = "400")]
    conferences: Counts,
    /// Find the largest number of conferences with less than 1 % of late frames
    #[arg(long)]
    most: bool,
    /// Codecs of frames: md5, g711 or opus; several, such as g711+opus, are assigned to the legs in
    /// turn
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "md5")]
    codec: Vec<Codec>,
    /// How legs and mixers wait
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "sleep")]
    wait: Vec<Wait>,
    /// Times at which conferences begin
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "spread")]
    phase: Vec<Phase>,
    /// Number of legs of each conference
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u8).range(1..=100))]
    legs: u8,
    /// Size of a frame in bytes; G.711 at 8 kHz has 160, and with opus it is always 160
    #[arg(long, value_name = "BYTES", default_value_t = 1600,
          value_parser = clap::value_parser!(u32).range(4..=65_536))]
    frame: u32,
    /// Number of frames of each leg, 20 ms apart
    #[arg(long, value_name = "N", default_value_t = 200,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    frames: u32,
    /// Numbers of threads; each pool has at least one
    #[arg(long, value_name = "LIST", default_value = "2")]
    workers: Counts,
    /// Number of pools of +silos, which share the threads
    #[arg(long, value_name = "N", default_value_t = hosts::SILO_COUNT,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    silos: u16,
    /// Network delay to the server and on to the listener, in milliseconds; it is part of the delay
    /// by which a call's quality is rated, at p99.9
    #[arg(long, value_name = "MS", default_value_t = ear::ELSEWHERE_MS,
          value_parser = clap::value_parser!(u16).range(0..=10_000))]
    elsewhere_ms: u16,
    #[command(flatten)]
    settings: Settings,
}

/// The measurements to take.
struct Plan {
    cells: Vec<Cell>,
    rounds: Rounds,
    /// Delay of the rest of the path, in milliseconds.
    elsewhere_ms: u16,
}

/// Runs the benchmark and prints its report.
///
/// # Errors
///
/// Bad arguments; a missing library; a subject that lost a frame, or never ended.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let rounds = rounds(arguments)?;
    arguments.codec.iter().try_for_each(|codec| codec.prepare()).map_err(Failure::missing)?;
    let (cells, elsewhere_ms) = (cells(arguments), arguments.elsewhere_ms);
    benchmark::run(&Plan { cells, rounds, elsewhere_ms }, &arguments.settings)
}

fn rounds(arguments: &Arguments) -> Result<Rounds, Failure> {
    let Arguments { subject, against, conferences, legs, frame, .. } = arguments;
    let parts = |&count: &usize| count as u64 * (u64::from(*legs) + 1);
    if conferences.0.iter().map(parts).max() > Some(PARTS) {
        return Err(Failure::arguments(format!(
            "--conferences {conferences:?} of {legs} legs are more than {PARTS} legs and mixers",
            conferences = conferences.0
        )));
    }
    if frame % 4 != 0 {
        return Err(Failure::arguments(format!(
            "--frame {frame}: samples have four bytes; write a multiple, such as 1600"
        )));
    }
    arguments.settings.rounds("policy", (subject, hosts::names()), (against, &[hosts::THREADS]))
}

/// The default conditions, with `conferences` conferences, `frames` frames and `workers` workers.
pub fn usual(conferences: u32, frames: u32, workers: usize) -> Cell {
    Cell {
        load: Load::Idle,
        codec: Codec::MD5,
        wait: Wait::Sleep,
        phase: Phase::Spread,
        conferences,
        search: false,
        legs: 2,
        frame: 1600,
        frames,
        workers,
        silos: hosts::SILO_COUNT.into(),
    }
}

/// Returns a repetition and its time limit in seconds.
pub fn order(subject: &str, cell: Cell, seed: u64) -> (Order, f64) {
    let order = Order { subject: subject.to_owned(), cell, seed };
    let seconds = measure::seconds(&order);
    (order, seconds)
}

fn cells(arguments: &Arguments) -> Vec<Cell> {
    let Arguments { codec, wait, phase, conferences, workers, settings, .. } = arguments;
    every!(
        load in &settings.load, codec in codec, wait in wait, phase in phase,
        conferences in &conferences.0, workers in &workers.0
        => Cell {
            load,
            codec,
            wait,
            phase,
            conferences: conferences as u32,
            search: arguments.most,
            legs: arguments.legs.into(),
            frame: arguments.frame as usize,
            frames: arguments.frames,
            workers,
            silos: arguments.silos.into(),
        }
    )
}

impl Measurement for Plan {
    type Cell = Cell;
    type Figures = Figures;

    fn turns(&self) -> (&Rounds, &[Cell]) {
        (&self.rounds, &self.cells)
    }

    fn repeat(&self, cell: Cell, subject: &'static str, _counts: bool) -> Repeated<Figures> {
        let (order, seconds) = order(subject, cell, self.rounds.seed);
        repeat(&super::Order::Mix(order), seconds)
    }
}

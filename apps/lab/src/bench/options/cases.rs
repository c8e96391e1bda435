//! The conditions under which chains are measured.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::bench::neighbours::Load;
use crate::bench::rounds;
use crate::named::Named as _;

/// The problem that a chain of tasks solves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// The price of an option, with a task for each layer of its lattice
    Binomial,
    /// The alignment of two sequences, with a task for each row of the table
    SmithWaterman,
}

/// When chains begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// All chains begin at once; latency counts from the beginning of the run
    Closed,
    /// Chains begin at a rate; latency counts from the time at which each is due
    Open,
}

/// Lengths of chains.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Depths {
    /// Number of steps of most chains.
    #[serde(rename = "depth")]
    pub short: usize,
    /// Number of steps of long chains.
    #[serde(rename = "long_depth")]
    pub long: usize,
    /// Probability of a long chain.
    pub long_share: f64,
}

/// A case with its conditions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The other load on the machine.
    pub load: Load,
    /// The kernel that the chains compute.
    pub kernel: Kernel,
    /// When chains begin.
    pub case: Case,
    /// The numbers of steps.
    #[serde(flatten)]
    pub depths: Depths,
    /// Number of tasks that begin chains.
    pub spawners: u32,
    /// Number of workers, including those that run the spawners.
    pub workers: usize,
}

impl rounds::Cell for Cell {
    fn load(&self) -> Load {
        self.load
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { load, kernel, case, depths, spawners, workers } = self;
        let Depths { short, long, long_share } = depths;
        let (kernel, case) = (kernel.name(), case.name());
        write!(f, "{kernel}, {case}: {short} steps, or {long} of {}, ", percent(*long_share))?;
        if *spawners > 1 {
            write!(f, "{spawners} spawners, ")?;
        }
        write!(f, "{workers} workers, load {}", load.name())
    }
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 1e6).round() / 1e4)
}

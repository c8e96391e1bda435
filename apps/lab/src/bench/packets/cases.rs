//! The conditions under which packets are measured.
//!
//! | case | packets | spawners | slots | what else |
//! |---|---|---|---|---|
//! | `general` | 50 000 | 1 | 128 | |
//! | `heavier` | 50 000 | 1 | 128 | 500 ns more for each packet |
//! | `spawners-N` | 50 000 | N | 128 | |
//! | `cache` | 500 000 | 10 | 1024 | then a chain of 10 tasks, each reads 20 bytes at random |
//! | `bimodal` | 100 000 | 10 | 1024 | a chain of 3; one in 1000 makes two tasks of 20 ms, too |
//! | `open` | one second | 1 | 128 | `--rate` a second, and latency from when each is due |
//! | `ramp` | | 1 | 128 | open, at 0.5 to 3 times what was measured before, with spikes |
//! | `trace` | | 1 | 128 | open, when the lines of `--arrivals` say |
//!
//! The form `published` is the dissertation's program: by mistake, it used one buffer for all
//! packets, and its handler copies that. In `corrected` the spawner draws a buffer for each packet,
//! and copies it, as the text says.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::copies::Copies;
use crate::bench::neighbours::Load;
use crate::bench::pools::arrivals::STEPS;
use crate::bench::rounds;
use crate::named::Named as _;

/// The kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Case {
    /// One spawner at full speed.
    General,
    /// One spawner; each packet takes 500 ns more.
    Heavier,
    /// Several spawners.
    Spawners(u32),
    /// Chains of tasks that use the same data.
    Cache,
    /// A few long tasks among many short ones.
    Bimodal,
    /// Packets at a given rate.
    Open,
    /// Packets at rates around the capacity.
    Ramp,
    /// Packets at the times of a trace.
    Trace,
}

/// One of the two forms of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// By the text: each packet has a random buffer, which the spawner of the task copies
    Corrected,
    /// By the program: all packets have one buffer, which the worker that runs the task copies
    Published,
}

/// The work of a task of 20 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heavy {
    /// The task sleeps and keeps its worker, as in the dissertation's program
    Sleep,
    /// The task uses the CPU
    Spin,
}

/// A case with its conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The other load on the machine.
    pub load: Load,
    /// The case.
    pub case: Case,
    /// The form of the program.
    pub form: Form,
    /// What a heavy task does, in cases that have some.
    pub heavy: Option<Heavy>,
    /// Where the memory of packets' copies comes from.
    pub copies: Copies,
    /// Number of workers, including those that run the spawners.
    pub workers: usize,
}

impl Case {
    /// Returns the default number of packets.
    pub fn packets(self, rate: f64) -> u64 {
        match self {
            Self::Cache => 500_000,
            Self::Bimodal => 100_000,
            Self::Open => rate as u64,
            _ => 50_000,
        }
    }

    /// Returns the number of tasks that make the packets.
    pub fn spawners(self) -> u32 {
        match self {
            Self::Spawners(spawners) => spawners,
            Self::Cache | Self::Bimodal => 10,
            _ => 1,
        }
    }

    /// Returns the default capacity of each worker's queue, in tasks.
    pub fn capacity(self) -> usize {
        if matches!(self, Self::Cache | Self::Bimodal) { 1024 } else { 128 }
    }

    /// Returns how many tasks follow each packet's task, one after the other.
    pub fn chain(self) -> u32 {
        match self {
            Self::Cache => 10,
            Self::Bimodal => 3,
            _ => 0,
        }
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let spawners = text.strip_prefix("spawners-").and_then(|number| number.parse().ok());
        match text {
            "general" => Ok(Self::General),
            "heavier" => Ok(Self::Heavier),
            "cache" => Ok(Self::Cache),
            "bimodal" => Ok(Self::Bimodal),
            "open" => Ok(Self::Open),
            "ramp" => Ok(Self::Ramp),
            _ => spawners.filter(|number| (1..=1000).contains(number)).map(Self::Spawners).ok_or(
                format!(
                    "no case '{text}'; there are: general, heavier, spawners-N, cache, bimodal, \
                     open, ramp"
                ),
            ),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spawners(spawners) => return write!(f, "spawners-{spawners}"),
            Self::General => "general",
            Self::Heavier => "heavier",
            Self::Cache => "cache",
            Self::Bimodal => "bimodal",
            Self::Open => "open",
            Self::Ramp => "ramp",
            Self::Trace => "trace",
        })
    }
}

impl From<Case> for String {
    fn from(case: Case) -> Self {
        case.to_string()
    }
}

impl TryFrom<String> for Case {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "trace" { Ok(Self::Trace) } else { text.parse() }
    }
}

impl Cell {
    /// Returns the steps of a ramp, as multiples of the capacity; empty without a ramp.
    pub fn steps(&self) -> &'static [f64] {
        if self.case == Case::Ramp { &STEPS } else { &[] }
    }
}

impl rounds::Cell for Cell {
    fn load(&self) -> Load {
        self.load
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { load, case, form, heavy, copies, workers } = self;
        write!(f, "{case}, {}, {workers} workers, load {}", form.name(), load.name())?;
        heavy.map_or(Ok(()), |heavy| write!(f, ", {}", heavy.name()))?;
        if *copies == Copies::Reused { f.write_str(", copies reused") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_has_the_name_that_it_is_asked_for_by() {
        for name in ["general", "heavier", "spawners-4", "cache", "bimodal", "open", "ramp"] {
            assert_eq!(name.parse::<Case>().map(|case| case.to_string()), Ok(name.to_owned()));
        }
        for wrong in ["", "trace", "spawners", "spawners-0", "spawners-x", "General"] {
            assert!(wrong.parse::<Case>().is_err_and(|why| why.contains("there are")), "{wrong}");
        }
    }
}

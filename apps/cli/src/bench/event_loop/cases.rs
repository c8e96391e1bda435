//! What is measured, under what conditions.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::bench::neighbours::Load;
use crate::bench::rounds;
use crate::output::words::several;

/// What has no timers and wants all of the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Competitor {
    /// A loop that does nothing
    Spin,
    /// gcc's compiler proper, a file after the other
    Cc,
}

/// Who shares what with whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grouping {
    /// Each player its own share of the CPU
    Each,
    /// All players one share, which goes to who has shown the fewest frames
    One,
}

/// The conditions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Who else uses the machine.
    pub load: Load,
    /// Programs with timers.
    pub players: usize,
    /// Programs without.
    pub hogs: usize,
    /// What these do.
    pub competitor: Competitor,
    /// Frames a second of each player.
    pub hz: usize,
    /// Who shares with whom.
    pub group: Grouping,
    /// How many CPUs they have.
    pub cpus: usize,
}

impl rounds::Cell for Cell {
    fn load(&self) -> Load {
        self.load
    }
}

impl Competitor {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Cc => "cc",
        }
    }
}

impl Grouping {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Each => "each",
            Self::One => "one",
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { players, hogs, hz, cpus, .. } = *self;
        write!(f, "{} at {hz} Hz", several(players as u64, "player"))?;
        if hogs > 0 {
            write!(f, ", {} ({})", several(hogs as u64, "hog"), self.competitor.name())?;
        }
        let cpu = if cpus == 1 { "one CPU".to_owned() } else { several(cpus as u64, "CPU") };
        let group = match self.group {
            Grouping::Each => "",
            Grouping::One => ", one group",
        };
        write!(f, ", {cpu}{group}, load {}", self.load.name())
    }
}

/// Numbers of programs, which may be none: `0,4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hogs(pub Vec<usize>);

/// More on a machine are a typing error.
pub const MOST: usize = 256;

impl FromStr for Hogs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let number = text.trim().parse().ok().filter(|number| *number <= MOST);
            number.ok_or_else(|| format!("'{text}' is not a number from 0 to {MOST}; write 0,4"))
        };
        text.split(',').map(number).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_may_be_no_hogs() {
        assert_eq!("0, 4".parse(), Ok(Hogs(vec![0, 4])));
        for wrong in ["", "-1", "x", "257", "1-4"] {
            assert!(wrong.parse::<Hogs>().is_err_and(|why| why.contains("write")), "{wrong}");
        }
    }

    #[test]
    fn conditions_are_said() {
        let cell = Cell {
            load: Load::Idle,
            players: 8,
            hogs: 4,
            competitor: Competitor::Cc,
            hz: 60,
            group: Grouping::One,
            cpus: 1,
        };
        let said = "8 players at 60 Hz, 4 hogs (cc), one CPU, one group, load idle";
        assert_eq!(cell.to_string(), said);
        let alone = Cell { players: 1, hogs: 0, cpus: 2, group: Grouping::Each, ..cell };
        assert_eq!(alone.to_string(), "1 player at 60 Hz, 2 CPUs, load idle");
    }
}

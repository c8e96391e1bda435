//! The conditions under which loops are measured.

use std::fmt;

use antiphon_report::words::several;
use serde::{Deserialize, Serialize};

use crate::bench::neighbours::Load;
use crate::bench::rounds;
use crate::compete::terms::{Competitor, Grouping, Levels, cpus};
use crate::named::Named as _;

/// The conditions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The other load on the machine.
    pub load: Load,
    /// Number of programs with timers.
    pub players: usize,
    /// Number of programs without timers.
    pub hogs: usize,
    /// What the hogs compute.
    pub competitor: Competitor,
    /// Frames per second of each player.
    pub hz: usize,
    /// Which players share the CPU as a group.
    pub group: Grouping,
    /// The run-queue levels that the programs are on.
    pub levels: Levels,
    /// Number of CPUs that the programs share.
    pub cpus: usize,
}

impl rounds::Cell for Cell {
    fn load(&self) -> Load {
        self.load
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { players, hogs, hz, cpus, .. } = *self;
        write!(f, "{} at {hz} Hz", several(players as u64, "player"))?;
        if hogs > 0 {
            write!(f, ", {} ({})", several(hogs as u64, "hog"), self.competitor.name())?;
        }
        let cpu = self::cpus(cpus);
        let group = match self.group {
            Grouping::Each => "",
            Grouping::One => ", one group",
        };
        let levels = match self.levels {
            Levels::One => "",
            Levels::Each => ", a session each",
            Levels::Cgroup => ", a control group each",
        };
        write!(f, ", {cpu}{group}{levels}, load {}", self.load.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_said() {
        let cell = Cell {
            load: Load::Idle,
            players: 8,
            hogs: 4,
            competitor: Competitor::Cc,
            hz: 60,
            group: Grouping::One,
            levels: Levels::Each,
            cpus: 1,
        };
        let said = "8 players at 60 Hz, 4 hogs (cc), one CPU, one group, a session each, load idle";
        assert_eq!(cell.to_string(), said);
        let alone = Cell { players: 1, hogs: 0, cpus: 2, group: Grouping::Each, ..cell };
        let alone = Cell { levels: Levels::One, ..alone };
        assert_eq!(alone.to_string(), "1 player at 60 Hz, 2 CPUs, load idle");
    }
}

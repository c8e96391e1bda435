//! Terms of a competition: numbers and kinds of programs, and which of them share.

use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use antiphon_report::words::several;

/// A program that has no timers and wants all of the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Competitor {
    /// An empty loop
    Spin,
    /// gcc's compiler proper, on one file after the other
    Cc,
}

/// How players share the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grouping {
    /// Each player has its own share of the CPU
    Each,
    /// All players have one share, which goes to the player that has shown the fewest frames
    One,
}

/// The run-queue level on which programs compete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Levels {
    /// All programs of a run are on one level
    One,
    /// Each program has its own level: a session, of which the kernel makes an autogroup
    Each,
    /// Each program has its own control group
    Cgroup,
}

/// Numbers of programs, which may be 0: `0,4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hogs(pub Vec<usize>);

/// Maximal number of programs; a larger number is a typing error.
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

/// The least and greatest demand of a player, as multiples of the average.
const LEAST_PART: f64 = 0.6;
const MOST_PART: f64 = 1.4;

/// Returns the share of a CPU that player `number` of `players` wants, if the average is `average`.
pub fn wanted(average: f64, number: usize, players: usize) -> f64 {
    if players == 1 {
        return average;
    }
    let part = number as f64 / (players - 1) as f64;
    average * (LEAST_PART + (MOST_PART - LEAST_PART) * part)
}

/// A number of CPUs in words.
pub fn cpus(number: usize) -> String {
    if number == 1 { "one CPU".to_owned() } else { several(number as u64, "CPU") }
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
    fn players_want_what_they_are_to_want_on_average() {
        for players in [1, 2, 8] {
            let all: Vec<_> = (0..players).map(|number| wanted(0.15, number, players)).collect();
            let mean = all.iter().sum::<f64>() / players as f64;
            assert!((mean - 0.15).abs() < 1e-9 && all.is_sorted(), "{all:?}");
            assert_eq!(all[0] < all[players - 1], players > 1);
        }
    }
}

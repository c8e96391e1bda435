//! How many programs there are, of which kind, and who shares with whom.

use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

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

/// So many, in words.
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
}

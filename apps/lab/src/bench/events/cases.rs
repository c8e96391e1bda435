//! The subjects of measurements of events, and the conditions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::bench::neighbours::Load;
use crate::bench::rounds;

/// The work of the threads of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// Two threads tell each other in turn; a waiter that spins finds the other on its CPU.
    Running,
    /// The receiver sleeps.
    Parked,
    /// The receiver has slept for a millisecond, and its CPU with it.
    ParkedIdle,
    /// The receiver sleeps, and a third thread has its CPU.
    BusyTarget,
    /// No thread waits.
    SenderAlone,
    /// Several sleep and are notified at once.
    Broadcast,
    /// Fixed work, without any event: what the machine adds to each time.
    Noise,
    /// How far apart the counters of both CPUs are that time the other cases.
    Clock,
}

impl Case {
    /// Whether it is of the machine, and no subject has a part in it.
    pub fn is_of_the_machine(self) -> bool {
        matches!(self, Self::Noise | Self::Clock)
    }

    /// Whether it has one receiver, whose CPU may be chosen.
    fn has_target(self) -> bool {
        !matches!(self, Self::SenderAlone | Self::Broadcast)
    }
}

/// A case, and what there is to choose in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The other load on the machine.
    pub load: Load,
    /// The case.
    pub case: Case,
    /// How long the receiver is left asleep before it is notified; 0 where no thread sleeps.
    pub gap_us: u32,
    /// Threads that are notified at once.
    pub waiters: usize,
    /// The receiver's CPU, where it is one that can be chosen.
    pub target: Option<usize>,
}

/// How long a receiver sleeps where `--gap-us` has no say.
const GAP_US: u32 = 50;
const IDLE_GAP_US: u32 = 1_000;

impl Cell {
    /// The cells of a wanted case; those of the case `parked` by `gaps`, of one receiver by
    /// `targets`.
    pub fn of(load: Load, wanted: Wanted, gaps: &[u32], targets: &[usize]) -> Vec<Self> {
        let Wanted { case, waiters } = wanted;
        let gaps = match case {
            Case::Parked => gaps,
            Case::ParkedIdle => &[IDLE_GAP_US],
            Case::BusyTarget | Case::Broadcast => &[GAP_US],
            Case::Running | Case::SenderAlone | Case::Noise | Case::Clock => &[0],
        };
        let targets = match case.has_target() {
            true => targets.iter().copied().map(Some).collect(),
            false => vec![None],
        };
        let cell = |target, gap_us| Self { load, case, gap_us, waiters, target };
        let cells = |target| gaps.iter().map(move |&gap_us| cell(target, gap_us));
        targets.into_iter().flat_map(cells).collect()
    }

    /// Its case, as reports and the command line have it.
    pub fn name(&self) -> String {
        Wanted { case: self.case, waiters: self.waiters }.to_string()
    }
}

impl rounds::Cell for Cell {
    fn load(&self) -> Load {
        self.load
    }
}

impl fmt::Display for Cell {
    /// `noisy parked, 50 µs asleep, to CPU 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.load.name(), self.name())?;
        if self.case == Case::Parked {
            write!(f, ", {} µs asleep", self.gap_us)?;
        }
        self.target.map_or(Ok(()), |cpu| write!(f, ", to CPU {cpu}"))
    }
}

/// A case as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The case.
    pub case: Case,
    /// The number of waiters, as in [`Cell::waiters`].
    pub waiters: usize,
}

/// Cases with a name of one word.
const NAMES: [(&str, Case); 7] = [
    ("running", Case::Running),
    ("parked", Case::Parked),
    ("parked-idle-1ms", Case::ParkedIdle),
    ("busy-target", Case::BusyTarget),
    ("sender-alone", Case::SenderAlone),
    ("noise", Case::Noise),
    ("clock", Case::Clock),
];
/// The numbers that `broadcast` alone stands for.
const WAITERS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// More threads than this wait for nothing real.
const MOST: usize = 1024;

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, case)| *case == self.case) {
            Some((name, _)) => write!(f, "{name}"),
            None => write!(f, "broadcast-{}", self.waiters),
        }
    }
}

/// A list of cases: `running,parked,broadcast-8`, where `broadcast` stands for all sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cases(pub Vec<Wanted>);

impl FromStr for Cases {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Vec::new();
        for name in text.split(',').map(str::trim) {
            let wanted = wanted(name).ok_or_else(|| {
                let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
                format!(
                    "no case '{name}'; there are: {}, broadcast, broadcast-N up to {MOST}",
                    known.join(", ")
                )
            })?;
            for one in wanted {
                if !all.contains(&one) {
                    all.push(one);
                }
            }
        }
        Ok(Self(all))
    }
}

fn wanted(name: &str) -> Option<Vec<Wanted>> {
    let broadcast = |waiters| Wanted { case: Case::Broadcast, waiters };
    if name == "broadcast" {
        return Some(WAITERS.map(broadcast).into());
    }
    if let Some(waiters) = name.strip_prefix("broadcast-") {
        let waiters = waiters.parse().ok().filter(|waiters| (1..=MOST).contains(waiters))?;
        return Some(vec![broadcast(waiters)]);
    }
    let (_, case) = NAMES.iter().find(|(known, _)| *known == name)?;
    Some(vec![Wanted { case: *case, waiters: 1 }])
}

/// A list of gaps in microseconds: `3,50,1000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gaps(pub Vec<u32>);

/// A receiver that sleeps for longer than a second tells no more.
const LONGEST_US: u32 = 1_000_000;

impl FromStr for Gaps {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let gap = |text: &str| {
            text.trim().parse().ok().filter(|gap| (1..=LONGEST_US).contains(gap)).ok_or_else(|| {
                format!("'{text}' is not a number from 1 to {LONGEST_US}; write 3,50,1000")
            })
        };
        text.split(',').map(gap).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_read_as_they_are_written() {
        let text = "running,parked,parked-idle-1ms,busy-target,sender-alone,noise,clock";
        let Ok(Cases(all)) = text.parse() else { panic!("known cases") };
        let written: Vec<_> = all.iter().map(Wanted::to_string).collect();
        assert_eq!(written.join(","), text);
        let Ok(Cases(all)) = "broadcast-8,broadcast,broadcast-100".parse() else { panic!("cases") };
        let waiters: Vec<_> = all.iter().map(|one| one.waiters).collect();
        assert_eq!(waiters, [8, 1, 2, 4, 16, 32, 64, 100]);
        for wrong in ["", "awake", "broadcast-0", "broadcast-x", "broadcast-9999", "parked,"] {
            assert!(
                wrong.parse::<Cases>().is_err_and(|why| why.contains("busy-target")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn gaps_are_microseconds() {
        assert_eq!("3, 50".parse(), Ok(Gaps(vec![3, 50])));
        for wrong in ["", "0", "1.5", "-3", "3us", "1000001"] {
            assert!(wrong.parse::<Gaps>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_parked_cell_has_a_gap_and_a_target_of_those_asked_for() {
        let cells = |name: &str| {
            let Ok(Cases(all)) = name.parse() else { panic!("a case") };
            let of = |&wanted: &Wanted| Cell::of(Load::Noisy, wanted, &[3, 1000], &[1, 2]);
            all.iter().flat_map(of).collect::<Vec<_>>()
        };
        let names: Vec<_> = cells("parked,parked-idle-1ms,broadcast-2,sender-alone")
            .iter()
            .map(|cell| (cell.to_string(), cell.gap_us))
            .collect();
        let expected = [
            ("noisy parked, 3 µs asleep, to CPU 1", 3),
            ("noisy parked, 1000 µs asleep, to CPU 1", 1000),
            ("noisy parked, 3 µs asleep, to CPU 2", 3),
            ("noisy parked, 1000 µs asleep, to CPU 2", 1000),
            ("noisy parked-idle-1ms, to CPU 1", 1000),
            ("noisy parked-idle-1ms, to CPU 2", 1000),
            ("noisy broadcast-2", 50),
            ("noisy sender-alone", 0),
        ];
        assert_eq!(names, expected.map(|(name, gap)| (name.to_owned(), gap)));
    }
}

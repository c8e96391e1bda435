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
    /// Two threads notify each other in turn; a waiter that spins has its peer's CPU beside it.
    Running,
    /// The receiver sleeps.
    Parked,
    /// The receiver and its CPU have been idle for a millisecond.
    ParkedIdle,
    /// The receiver sleeps, and a third thread occupies its CPU.
    BusyTarget,
    /// No thread waits.
    SenderAlone,
    /// Several threads sleep and are notified at once.
    Broadcast,
    /// Fixed work without any event: the noise that the machine adds to each time.
    Noise,
    /// Offset between the counters of the two CPUs that time the other cases.
    Clock,
}

impl Case {
    /// Returns whether it measures the machine alone, without a subject.
    pub fn is_of_the_machine(self) -> bool {
        matches!(self, Self::Noise | Self::Clock)
    }

    /// Returns whether it has one receiver, whose CPU may be chosen.
    fn has_target(self) -> bool {
        !matches!(self, Self::SenderAlone | Self::Broadcast)
    }
}

/// A case with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The other load on the machine.
    pub load: Load,
    /// The case.
    pub case: Case,
    /// How long the receiver sleeps before it is notified, in microseconds; 0 where no thread
    /// sleeps.
    pub gap_us: u32,
    /// Number of threads that are notified at once.
    pub waiters: usize,
    /// The receiver's CPU, if the case allows a choice.
    pub target: Option<usize>,
}

/// How long a receiver sleeps in cases that `--gap-us` does not apply to.
pub const GAP_US: u32 = 50;
const IDLE_GAP_US: u32 = 1_000;

impl Cell {
    /// Returns the cells of a wanted case; `parked` has one for each of `gaps`, and a case with one
    /// receiver has one for each of `targets`.
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

    /// Returns the name of its case in reports and on the command line.
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
    /// Formats as in `noisy parked, 50 µs asleep, to CPU 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.load.name(), self.name())?;
        if self.case == Case::Parked {
            write!(f, ", {} µs asleep", self.gap_us)?;
        }
        self.target.map_or(Ok(()), |cpu| write!(f, ", to CPU {cpu}"))
    }
}

/// A case as requested on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The case.
    pub case: Case,
    /// The number of waiters, as in [`Cell::waiters`].
    pub waiters: usize,
}

/// Cases whose names have no number.
const NAMES: [(&str, Case); 7] = [
    ("running", Case::Running),
    ("parked", Case::Parked),
    ("parked-idle-1ms", Case::ParkedIdle),
    ("busy-target", Case::BusyTarget),
    ("sender-alone", Case::SenderAlone),
    ("noise", Case::Noise),
    ("clock", Case::Clock),
];
/// The numbers of waiters that `broadcast` without a number stands for.
const WAITERS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Maximal number of waiters; more threads are not realistic.
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

/// Longest gap: longer sleeps show nothing new.
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

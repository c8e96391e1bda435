//! One row: a simulation of a lock, in a case, with a number of threads.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::str::FromStr;

use antiphon_record::Histogram;
use antiphon_replay::locks::{Sections, SimLock};
use antiphon_sim::{Machine, Model, Outcome, Placement, Simulation, Stuck, finished};
use antiphon_trace::Event;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::cases::{Case, Hand, Operation, Site};

/// Which CPU gets a contended line next. No manual documents it, and the gain of NUMA-aware locks
/// depends on it more than on anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arbitration {
    /// First come, first served
    Fifo,
    /// The CPU nearest to the owner first, but no request is overtaken more than 16 times
    Near,
}

impl Arbitration {
    fn of_model(self) -> antiphon_sim::Arbitration {
        match self {
            Self::Fifo => antiphon_sim::Arbitration::Fifo,
            Self::Near => antiphon_sim::Arbitration::NEAREST,
        }
    }
}

/// The placement of memory: `near`, `first-touch`, `interleaved`, or the number of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pages(pub Placement);

impl FromStr for Pages {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(match text {
            "near" => Placement::Near,
            "first-touch" => Placement::FirstTouch,
            "interleaved" => Placement::Interleaved,
            _ => Placement::On(text.parse().map_err(|_| {
                format!("'{text}' is not near, first-touch, interleaved or a node, such as 0")
            })?),
        }))
    }
}

impl TryFrom<String> for Pages {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Pages> for String {
    fn from(pages: Pages) -> Self {
        pages.to_string()
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Placement::Near => f.write_str("near"),
            Placement::FirstTouch => f.write_str("first-touch"),
            Placement::Interleaved => f.write_str("interleaved"),
            Placement::On(node) => write!(f, "{node}"),
        }
    }
}

/// The settings of a simulation, besides the lock, the case and the number of threads.
#[derive(Clone)]
pub struct Setting {
    pub machine: Machine,
    pub arbitration: Arbitration,
    pub pages: Pages,
    pub seed: u64,
    pub limit_ns: u64,
    /// Whether each event of the threads is recorded.
    pub records: bool,
}

impl Setting {
    /// Returns the default model, with these settings.
    fn model(&self) -> Model {
        let (arbitration, placement) = (self.arbitration.of_model(), self.pages.0);
        Model { arbitration, placement, ..Model::default() }
    }
}

/// Time for which threads may go on after the limit, in simulated nanoseconds: a queue of spinners
/// that are not on a core takes a slice for each of them.
const GRACE_NS: u64 = 100_000_000_000;

/// Number of acquisitions in a window of [`Measured::lwss`].
const WINDOW: usize = 1000;

/// The result of a simulation.
pub struct Measured {
    pub outcome: Outcome,
    /// Completed operations, including those after the limit; the divisor for counts.
    pub completed: u64,
    /// CPU time of all threads up to the limit.
    pub cpu_ns: u64,
    /// Time of acquisitions.
    pub waits: Histogram,
    /// Hand-overs to a thread that was waiting, and the total time without an owner in them.
    pub handovers: (u64, u64),
    /// Hand-overs to a thread that slept when the lock was released.
    pub wakes: u64,
    /// Acquisitions of a lock that had an owner before, and those of them from the same socket.
    pub kept: (u64, u64),
    /// Number of failed attempts to lock.
    pub failed_tries: u64,
    /// Number of different threads in a thousand successive acquisitions of the first lock, on
    /// average; `None` if there were fewer than a thousand.
    pub lwss: Option<f64>,
    /// Events of each thread, if they were recorded.
    pub events: Vec<Vec<Event>>,
}

/// Why a row has no figures.
pub enum Missing {
    /// The lock can't make progress, which is a defect.
    Stuck(Stuck),
    /// The lock lacks an operation that the case requires.
    NotHere(&'static str),
}

const TAKES: &str = "it runs critical sections that are handed to it; this case takes a lock and \
                     gives it back, within another or on trial";
const SERVES: &str = "it needs a thread for each lock that does nothing else, on a CPU of its own, \
                      and none is left for others";

/// Simulates `case` with `threads` threads, including servers. Blocks meanwhile.
///
/// # Errors
///
/// If the lock can't make progress, or lacks an operation that the case requires.
///
/// # Panics
///
/// If the lock admits two threads that must exclude each other.
pub fn carry_out(
    setting: &Setting,
    subject: &SimLock,
    case: &Case,
    threads: usize,
) -> Result<Measured, Missing> {
    let (locks, cpus) = ((case.locks)(&setting.machine), setting.machine.cores() as usize);
    match case.operation {
        Operation::Sections(_) if subject.servers * locks >= threads.min(cpus) => {
            Err(Missing::NotHere(SERVES))
        }
        Operation::Sections(operation) => {
            let locks = (0..locks).map(|_| subject.sections()).collect();
            simulate(setting, subject, locks, operation, threads)
        }
        Operation::Locks(operation) => {
            let locks: Option<Vec<_>> = (0..locks).map(|_| subject.instance()).collect();
            let locks = locks.ok_or(Missing::NotHere(TAKES))?;
            simulate(setting, subject, locks, operation, threads)
        }
    }
}

fn simulate<L: Sections + ?Sized + 'static>(
    setting: &Setting,
    subject: &SimLock,
    locks: Vec<Box<L>>,
    operation: fn(&Hand<L>),
    threads: usize,
) -> Result<Measured, Missing> {
    let (machine, each) = (subject.on(&setting.machine), subject.servers);
    let servers = each * locks.len();
    let (topology, cpus) = (machine.topology.clone(), machine.cores() as usize);
    let site = Site::new(locks, threads - servers, cpus, setting.limit_ns, setting.records);
    let site = Rc::new(site);
    let mut simulation = Simulation::new(machine, setting.seed)
        .model(setting.model())
        .grace_ns(GRACE_NS)
        .account_at(setting.limit_ns);
    for server in 0..servers {
        let site = Rc::clone(&site);
        simulation =
            simulation.thread_on(topology.place(server), move || site.serve(server / each));
    }
    for number in 0..threads - servers {
        let site = Rc::clone(&site);
        let work = move || {
            let hand = Hand::new(Rc::clone(&site), number);
            while !finished() {
                operation(&hand);
            }
            site.leave();
        };
        // The model does not move threads. No thread begins on a server's CPU.
        let place = topology.place(servers + number % (cpus - servers));
        simulation = simulation.thread_on(place, work);
    }
    let mut outcome = simulation.run(setting.limit_ns).map_err(Missing::Stuck)?;
    outcome.operations.drain(..servers);
    let tally = &site.tally;
    let cpu_ns = outcome.accounts.iter().flat_map(|account| &account.ran_ns).sum();
    let lwss = lwss(&tally.admissions.borrow());
    Ok(Measured {
        outcome,
        completed: tally.operations.get(),
        cpu_ns,
        waits: tally.waits.take(),
        handovers: (tally.handovers.get(), tally.handover_ns.get()),
        wakes: tally.wakes.get(),
        kept: (tally.acquisitions.get(), tally.kept.get()),
        failed_tries: tally.failed.get(),
        lwss,
        events: tally.events.as_ref().map(RefCell::take).unwrap_or_default(),
    })
}

/// The lock's working set size: the number of different threads that acquire it in a window,
/// averaged over the windows. D. Dice, "Malthusian Locks", EuroSys 2017, measures short-term
/// fairness by it.
fn lwss(admissions: &[u32]) -> Option<f64> {
    let windows = admissions.chunks_exact(WINDOW);
    let count = windows.len();
    let sum: usize = windows
        .map(|window| {
            let mut threads = window.to_vec();
            threads.sort_unstable();
            threads.dedup();
            threads.len()
        })
        .sum();
    (count > 0).then(|| sum as f64 / count as f64)
}

/// The share of all operations done by the busier half of the threads: 0.5 is fair, 1 is not. D.
/// Dice and A. Kogan, "Compact NUMA-aware Locks", EuroSys 2019, measure long-term fairness by it.
/// In an odd number of threads, the middle one counts half. `None` for one thread, or without
/// operations.
pub fn busier_half(operations: &[u64]) -> Option<f64> {
    let total: u64 = operations.iter().sum();
    if total == 0 || operations.len() < 2 {
        return None;
    }
    let mut sorted = operations.to_vec();
    sorted.sort_unstable_by(|one, other| other.cmp(one));
    let half = sorted.len() / 2;
    let middle = if sorted.len() % 2 == 1 { sorted[half] as f64 / 2.0 } else { 0.0 };
    Some((sorted[..half].iter().sum::<u64>() as f64 + middle) / total as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busier_half_has_half_if_all_are_equal() {
        assert_eq!(busier_half(&[5, 5, 5, 5]), Some(0.5));
        assert_eq!(busier_half(&[5, 5, 5]), Some(0.5));
        assert_eq!(busier_half(&[0, 9, 0, 1]), Some(1.0));
        assert_eq!(busier_half(&[1, 2, 3, 4]), Some(0.7));
        assert_eq!((busier_half(&[5]), busier_half(&[0, 0])), (None, None));
    }

    #[test]
    fn pages_are_read_as_they_are_written() {
        for text in ["near", "first-touch", "interleaved", "7"] {
            assert_eq!(text.parse::<Pages>().map(|pages| pages.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "far", "-1", "1.5", "4294967296"] {
            assert!(text.parse::<Pages>().is_err_and(|what| what.contains("first-touch")));
        }
    }

    #[test]
    fn a_working_set_is_who_is_in_a_window() {
        let turns: Vec<u32> = (0..2500).map(|turn| turn % 7).collect();
        assert_eq!(lwss(&turns), Some(7.0));
        assert_eq!(lwss(&turns[..999]), None);
        let two_then_four: Vec<u32> =
            (0..2000).map(|turn| turn % if turn < 1000 { 2 } else { 4 }).collect();
        assert_eq!(lwss(&two_then_four), Some(3.0));
    }
}

//! Simulations of a lock in virtual machines.

use std::rc::Rc;

use antiphon_replay::locks::{Sections, SimLock};
use antiphon_sim::{Guests, Machine, Outcome, Simulation, Stuck, finished};

use super::told::Told;
use crate::all_cpus::on_all;
use crate::sim::cases::{Case, Hand, Operation, Site};

/// The hints that guests and their host give each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hints {
    /// No hints.
    None,
    /// Guests tell their host the sections of their locks.
    Sections,
    /// The host tells its guests of preemptions.
    Preempted,
    /// Both.
    Both,
}

impl Hints {
    /// All, in the order of reports.
    pub const ALL: [Self; 4] = [Self::None, Self::Sections, Self::Preempted, Self::Both];

    /// Returns the name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sections => "sections",
            Self::Preempted => "preempted",
            Self::Both => "both",
        }
    }
}

/// The settings of a simulation, besides what its threads do.
#[derive(Clone)]
pub struct Setting {
    pub machine: Machine,
    pub seed: u64,
    pub limit_ns: u64,
    /// Number of threads of each guest.
    pub threads: usize,
    /// Number of guests.
    pub guests: u32,
}

impl Setting {
    /// The guests of this setting, without hints.
    pub fn shared(&self) -> Guests {
        Guests {
            count: self.guests,
            slice_ns: self.machine.slice_ns,
            switch_ns: SWITCH_NS,
            grace_ns: GRACE_NS,
            releases: false,
            sections: false,
            preempted: false,
        }
    }
}

/// The cost of a switch from one virtual CPU to another. Estimated: an exit and an entry of some
/// 1,200 cycles together on Broadwell, and the host's switch between them.
const SWITCH_NS: u64 = 2_000;
/// The longest time for which the host puts a preemption off. The longest section of the cases that
/// are simulated here by default is a tenth of it.
const GRACE_NS: u64 = 50_000;
/// Time for which threads may go on after the limit.
const LATE_NS: u64 = 100_000_000_000;

/// The result with each hint, and of one guest alone.
pub struct Measured {
    pub alone: Outcome,
    pub with: Vec<(Hints, Outcome)>,
}

/// Simulates `case` with `lock` in one guest alone, and in all guests with each of `hints`, side by
/// side. Each guest has its own lock. Blocks meanwhile.
///
/// # Errors
///
/// If the lock can't make progress.
///
/// # Panics
///
/// If sections are handed to the lock, or it admits two threads that must exclude each other.
pub fn carry_out(
    setting: &Setting,
    lock: &'static SimLock,
    case: &'static Case,
    hints: &[Hints],
) -> Result<Measured, Stuck> {
    let mut runs = vec![(Setting { guests: 1, ..setting.clone() }, Hints::None)];
    runs.extend(hints.iter().map(|&hints| (setting.clone(), hints)));
    let run = |(setting, hints): &(Setting, Hints)| simulate(setting, lock, case, *hints);
    let mut outcomes = on_all(&runs, run).into_iter();
    let alone = outcomes.next().expect("it is the first run")?;
    let with = hints.iter().zip(outcomes).map(|(&hints, outcome)| Ok((hints, outcome?)));
    Ok(Measured { alone, with: with.collect::<Result<_, _>>()? })
}

fn simulate(
    setting: &Setting,
    lock: &SimLock,
    case: &Case,
    hints: Hints,
) -> Result<Outcome, Stuck> {
    let told = || Told(lock.instance().expect("the lock is taken and released"));
    let locks = 0..(case.locks)(&setting.machine);
    match case.operation {
        Operation::Sections(operation) => run(setting, lock, hints, operation, || {
            locks.clone().map(|_| Box::new(told()) as Box<dyn Sections>).collect()
        }),
        Operation::Locks(operation) => run(setting, lock, hints, operation, || {
            locks.clone().map(|_| Box::new(told()) as Box<_>).collect()
        }),
    }
}

fn run<L: Sections + ?Sized + 'static>(
    setting: &Setting,
    lock: &SimLock,
    hints: Hints,
    operation: fn(&Hand<L>),
    locks: impl Fn() -> Vec<Box<L>>,
) -> Result<Outcome, Stuck> {
    let &Setting { seed, limit_ns, threads, guests, .. } = setting;
    let machine = lock.on(&setting.machine);
    let (topology, cpus) = (machine.topology.clone(), machine.cores() as usize);
    let shared = Guests {
        sections: matches!(hints, Hints::Sections | Hints::Both),
        preempted: matches!(hints, Hints::Preempted | Hints::Both),
        ..setting.shared()
    };
    let mut simulation = Simulation::new(machine, seed).grace_ns(LATE_NS).guests(shared);
    for guest in 0..guests {
        let site = Rc::new(Site::new(locks(), threads, cpus, limit_ns, false));
        for number in 0..threads {
            let hand = Hand::new(Rc::clone(&site), number);
            let work = move || {
                while !finished() {
                    operation(&hand);
                }
            };
            simulation = simulation.guest_thread_on(guest, topology.place(number % cpus), work);
        }
    }
    simulation.run(limit_ns)
}

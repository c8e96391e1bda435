//! The workload on a simulated machine.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use antiphon_report::failure::Failure;
use antiphon_report::stats::median;
use antiphon_sim::{Access, Machine, Outcome, OwnLine, Sim, Simulation, count, now, touch, work};
use antiphon_sync::lock::Lock;

use super::budget::Budget;
use super::settings::CROWDED_WARM_UP_NS;
use super::workload::{Case, Lines, Stage, Visitor, contend, hand_over};

/// A simulated thread.
struct Thread {
    begun: bool,
    /// Rounds before this simulated time, in nanoseconds, don't count.
    from_ns: u64,
    /// Simulated time to stop.
    to_ns: u64,
    /// Budget of real time; when it is spent, threads stop, and their results are discarded.
    budget: Budget,
}

impl Stage for Thread {
    type P = Sim;

    fn goes_on(&mut self) -> bool {
        if std::mem::replace(&mut self.begun, true) && now() >= self.from_ns {
            count();
        }
        // Takes no simulated time: on a CPU, counting rounds overlaps with the other work.
        now() < self.to_ns && !self.budget.is_spent(1.0)
    }

    fn write(&self, lines: &Lines, count: usize) -> u64 {
        touch(&lines.0[..count], Access::Write);
        0
    }

    fn work(&self, ns: u32, start: u64) -> u64 {
        if ns > 0 {
            work(u64::from(ns));
        }
        start
    }
}

/// The parameters of a run.
pub struct Run<'a> {
    /// The simulated machine.
    pub machine: &'a Machine,
    /// The CPUs of the threads.
    pub places: &'a [usize],
    /// The work of the threads.
    pub case: Case,
    /// Length of the run, in nanoseconds of simulated time.
    pub ns: u64,
    /// Whether threads outnumber CPUs, and hand-overs are measured.
    pub crowded: bool,
    /// Seed of all randomness.
    pub seed: u64,
    /// Budget of real time.
    pub budget: Budget,
}

/// The result of a simulated run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// Rounds of all threads per second.
    pub rounds_per_s: f64,
    /// Median time of hand-overs between threads, in nanoseconds; 0 without hand-overs.
    pub hand_over_ns: f64,
    /// Context switches per thousand rounds.
    pub switches_per_1000: f64,
}

impl Visitor for Run<'_> {
    type Output = Result<Option<Predicted>, Failure>;

    /// Returns `None` if there was no time for it.
    fn visit<L: Lock>(self) -> Self::Output {
        let from_ns = if self.crowded { CROWDED_WARM_UP_NS } else { 0 };
        let (outcome, handed) = self.simulate::<L>(from_ns, from_ns + self.ns)?;
        let before = match from_ns {
            0 => 0,
            // With the same seed, this run is the same up to that time.
            _ => self.simulate::<L>(0, from_ns)?.0.counts.switches,
        };
        if self.budget.is_spent(1.0) {
            return Ok(None);
        }
        let rounds = outcome.total_operations() as f64;
        let switches = outcome.counts.switches.saturating_sub(before) as f64;
        Ok(Some(Predicted {
            rounds_per_s: rounds * 1e9 / self.ns as f64,
            hand_over_ns: median(handed).unwrap_or(0.0),
            switches_per_1000: if rounds > 0.0 { switches * 1e3 / rounds } else { 0.0 },
        }))
    }
}

impl Run<'_> {
    /// Simulates until `to_ns`, counting rounds from `from_ns`. Returns the outcome, and the
    /// hand-overs from `from_ns` on.
    fn simulate<L: Lock>(&self, from_ns: u64, to_ns: u64) -> Result<(Outcome, Vec<f64>), Failure> {
        let Self { case, crowded, budget, .. } = *self;
        // Not dropped: what a lock has allocated is freed with the simulation.
        let lock = ManuallyDrop::new(L::NEW);
        let shared = Rc::new((OwnLine(lock), OwnLine(Lines::default())));
        let handed = Rc::new(RefCell::new(Vec::new()));
        let mut simulation = Simulation::new(self.machine.clone(), self.seed);
        for (number, &place) in self.places.iter().enumerate() {
            let (shared, handed) = (Rc::clone(&shared), Rc::clone(&handed));
            simulation = simulation.thread_on(place as u32, move || {
                let mut stage = Thread { begun: false, from_ns, to_ns, budget };
                let (lock, lines) = (&*shared.0.0, &shared.1.0);
                if crowded {
                    let note = |ns| {
                        if now() >= from_ns {
                            handed.borrow_mut().push(ns as f64);
                        }
                    };
                    hand_over(&mut stage, lock, lines, (case, number), note);
                } else {
                    contend(&mut stage, lock, lines, case, number);
                }
            });
        }
        let outcome = simulation.run(to_ns).map_err(Failure::measured)?;
        Ok((outcome, handed.take()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::{LOCKS, SHORT, visit};
    use super::*;

    fn run(name: &str, crowded: bool, seed: u64) -> Predicted {
        let machine = Machine::two_sockets();
        let places: &[usize] = if crowded { &[0, 1, 0, 1] } else { &[0, 1] };
        let ns = if crowded { 20_000_000 } else { 200_000 };
        let budget = Budget::begin(60.0);
        let run = Run { machine: &machine, places, case: SHORT, ns, crowded, seed, budget };
        match visit::<Sim, _>(name, run) {
            Some(Ok(Some(predicted))) => predicted,
            _ => panic!("{name} is stuck"),
        }
    }

    #[test]
    fn each_lock_runs_here_too_and_the_same_each_time() {
        for &name in LOCKS {
            let predicted = run(name, false, 1);
            assert!(predicted.rounds_per_s > 1e5, "{name}: {predicted:?}");
            assert_eq!(predicted, run(name, false, 1), "{name}");
        }
    }

    #[test]
    fn a_simulation_ends_when_there_is_no_more_time() {
        let machine = Machine::two_sockets();
        let (ns, budget) = (3_600_000_000_000, Budget::begin(0.0));
        let (places, case, crowded) = (&[0, 1][..], SHORT, false);
        let run = Run { machine: &machine, places, case, ns, crowded, seed: 1, budget };
        assert!(matches!(visit::<Sim, _>("futex", run), Some(Ok(None))));
    }

    #[test]
    fn where_threads_outnumber_cpus_a_fair_spinlock_switches_and_hands_over() {
        let predicted = run("ticket", true, 1);
        assert!(predicted.hand_over_ns > 0.0 && predicted.switches_per_1000 > 0.0, "{predicted:?}");
    }
}

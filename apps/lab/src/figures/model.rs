//! The simulations of figures. Rows that several figures show are simulated once.

use std::collections::BTreeMap;

use antiphon_replay::locks::SimLock;
use antiphon_report::failure::Failure;
use antiphon_report::page::curves::Curve;
use antiphon_report::stats::distribution;
use antiphon_report::words::several;
use antiphon_sim::{Machine, Placement, known};

use crate::compete::tardiness::sorted_us;
use crate::sim::cases;
use crate::sim::event_loop;
use crate::sim::event_loop::experiment::{Observed, compete};
use crate::sim::experiment::{Arbitration, Measured, Missing, Pages, Setting, carry_out};
use crate::sim::tasks;
use crate::sim::tasks::subjects::Form;

/// The rows that have been simulated, and their settings.
pub struct Model {
    seed: u64,
    /// Share of the usual simulated time, or of the usual packets.
    share: f64,
    locks: BTreeMap<LockRow, Work>,
    tasks: BTreeMap<TaskRow, tasks::rows::Row>,
}

/// A lock in a case: machine, case, lock, threads, and simulated microseconds.
type LockRow = (&'static str, &'static str, &'static str, usize, u64);
/// A policy in a case: case, policy, whether its form is the published one, workers, and packets.
type TaskRow = (&'static str, &'static str, bool, usize, u32);

/// The figures of a lock in a case.
#[derive(Clone, Copy)]
pub struct Work {
    pub ops_per_s: f64,
    /// Share of acquisitions whose last owner was on the same socket.
    pub on_socket: f64,
}

/// A lock in a case on a machine.
#[derive(Clone, Copy)]
pub struct Locks {
    pub machine: &'static str,
    pub case: &'static str,
    /// Simulated time, in milliseconds.
    pub ms: f64,
}

/// Players on one core.
#[derive(Clone, Copy)]
pub struct Players {
    pub case: &'static str,
    pub subject: event_loop::subjects::Subject,
    pub players: usize,
    pub hogs: usize,
    pub round_us: u64,
}

/// A machine by its name.
pub fn machine(name: &str) -> &'static Machine {
    &known(name).expect("a preset").machine
}

impl Model {
    pub fn new(seed: u64, share: f64) -> Self {
        Self { seed, share, locks: BTreeMap::new(), tasks: BTreeMap::new() }
    }

    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The conditions that figures of a lock's case have in common, for people.
    pub fn conditions(&self, locks: Locks) -> String {
        let Locks { machine, case, ms } = locks;
        let about = cases::named(case).map_or("", |case| case.about);
        format!("{machine}, case {case} ({about}), {} ms, seed {}", ms * self.share, self.seed)
    }

    /// Simulates a lock in a case.
    ///
    /// # Errors
    ///
    /// If it can't make progress, or is not in the case.
    pub fn work(
        &mut self,
        of: Locks,
        subject: &'static str,
        threads: usize,
    ) -> Result<Work, Failure> {
        let limit_ns = (of.ms * self.share * 1e6).round() as u64;
        let key = (of.machine, of.case, subject, threads, limit_ns);
        if let Some(known) = self.locks.get(&key) {
            return Ok(*known);
        }
        let setting = Setting {
            machine: machine(of.machine).clone(),
            arbitration: Arbitration::Fifo,
            pages: Pages(Placement::Near),
            seed: self.seed,
            limit_ns,
            records: false,
        };
        let (lock, case) = (SimLock::named(subject).expect("a lock"), cases::named(of.case));
        let measured = carry_out(&setting, lock, case.expect("a case"), threads);
        let measured = measured.map_err(|missing| {
            let why = match missing {
                Missing::Stuck(stuck) => stuck.to_string(),
                Missing::NotHere(why) => why.to_owned(),
            };
            let threads = several(threads as u64, "thread");
            Failure::measured(format!("{subject}, {}, {threads}: {why}", of.case))
        })?;
        let work = Work::of(&measured, limit_ns);
        self.locks.insert(key, work);
        Ok(work)
    }

    /// Simulates locks with several numbers of threads, and returns a curve of operations a second
    /// for each.
    ///
    /// # Errors
    ///
    /// As [`work`](Self::work).
    pub fn curves(
        &mut self,
        of: Locks,
        subjects: &[&'static str],
        threads: &[usize],
    ) -> Result<Vec<Curve>, Failure> {
        let mut curves = Vec::new();
        for &subject in subjects {
            let mut points = Vec::new();
            for &count in threads {
                points.push((count as f64, self.work(of, subject, count)?.ops_per_s));
            }
            curves.push(Curve { name: subject.to_owned(), points, dashed: false });
        }
        Ok(curves)
    }

    /// Simulates a task policy in a case.
    ///
    /// # Errors
    ///
    /// If the workers deadlock.
    pub fn tasks(
        &mut self,
        case: &'static str,
        (subject, form): (&'static str, Form),
        workers: usize,
        packets: u32,
    ) -> Result<&tasks::rows::Row, Failure> {
        let packets = (f64::from(packets) * self.share).round() as u32;
        let key = (case, subject, form == Form::Published, workers, packets);
        if !self.tasks.contains_key(&key) {
            let case = tasks::cases::CASES.iter().find(|known| known.name == case);
            let named = tasks::subjects::named(subject, Some(form)).map_err(Failure::measured)?;
            let setting = tasks::experiment::Setting {
                machine: machine("epyc-2x64c"),
                costs: &tasks::cases::COSTS[0],
                seed: self.seed,
                packets,
                workers,
            };
            let subject = named.subjects[0];
            let row = tasks::rows::Row::of(&setting, subject, case.expect("a case"))?;
            self.tasks.insert(key, row);
        }
        Ok(&self.tasks[&key])
    }

    /// Simulates players and hogs on one core for a time that counts, in seconds.
    ///
    /// # Errors
    ///
    /// If the threads deadlock.
    pub fn players(&self, of: Players, seconds: f64) -> Result<Heard, Failure> {
        let case = event_loop::cases::CASES.iter().find(|case| case.name == of.case);
        let setting = event_loop::plan::Setting {
            machine: machine("8s-192c"),
            seed: self.seed,
            counted_ns: (seconds * self.share * 1e9).round() as u64,
            warm_ns: 100_000_000,
            cores: 1,
            players: of.players,
            hogs: of.hogs,
            placement: event_loop::cases::Placement::Even,
            options: antiphon_runtime::coop::Options::default(),
            round_ns: of.round_us * 1_000,
        };
        let observed = compete(&setting, of.subject, case.expect("a case"));
        observed.map(Heard).map_err(Failure::measured)
    }
}

impl Work {
    fn of(measured: &Measured, limit_ns: u64) -> Self {
        let (acquisitions, kept) = measured.kept;
        Self {
            ops_per_s: measured.outcome.total_operations() as f64 * 1e9 / limit_ns as f64,
            on_socket: kept as f64 / acquisitions.max(1) as f64,
        }
    }
}

/// What was observed of players.
pub struct Heard(Observed);

impl Heard {
    /// The players' CPU time as shares of the counted time.
    pub fn cpu(&self) -> Vec<f64> {
        let [before, after] = &self.0.accounts;
        let counted = (after.at_ns - before.at_ns) as f64;
        let ran = before.ran_ns.iter().zip(&after.ran_ns).take(self.0.seen.len());
        ran.map(|(before, after)| (after - before) as f64 / counted).collect()
    }

    /// The frames that each player showed in a second.
    pub fn frames(&self) -> Vec<f64> {
        let [before, after] = &self.0.accounts;
        let counted_s = (after.at_ns - before.at_ns) as f64 / 1e9;
        self.0.seen.iter().map(|seen| seen.shown as f64 / counted_s).collect()
    }

    /// Context switches a second.
    pub fn switches_per_s(&self) -> f64 {
        let [before, after] = &self.0.accounts;
        let counted_s = (after.at_ns - before.at_ns) as f64 / 1e9;
        (after.counts.switches - before.counts.switches) as f64 / counted_s
    }

    /// The tardiness of the timers of players that misbehave, or of the others, in microseconds and
    /// ascending order.
    pub fn late_us(&self, misbehaves: bool) -> Vec<f64> {
        let players = self.0.seen.iter().zip(&self.0.plan.players);
        let players = players.filter(|(_, seat)| seat.misbehaves == misbehaves);
        let late: Vec<_> =
            players.flat_map(|(seen, _)| seen.tardiness_ns.iter().copied()).collect();
        sorted_us(&late)
    }
}

/// A curve of a distribution of microseconds.
pub fn shares(name: &str, sorted_us: &[f64]) -> Curve {
    Curve::of_distribution(name, &distribution(sorted_us), false)
}

/// The value of a curve at a number of threads; NaN if there is none, which no bound accepts.
pub fn at(curves: &[Curve], name: &str, count: usize) -> f64 {
    let curve = curves.iter().find(|curve| curve.name == name);
    let point = curve.and_then(|curve| curve.points.iter().find(|point| point.0 == count as f64));
    point.map_or(f64::NAN, |point| point.1)
}

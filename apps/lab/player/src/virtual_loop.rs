//! A loop in virtual time: runs programs with a given share of a CPU, deterministically.
//!
//! The order is that of every loop here: timers first, by release and then in the order of
//! submission; then best effort by importance. Time passes only where a job spends it on the
//! [`Cpu`], and while nothing is pending. Several programs on one loop are a group: they share its
//! CPU by their importance.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use crate::program::{Job, Program, Timeline};

/// The CPU and the clock of a [`VirtualLoop`], for code whose cost it counts.
#[derive(Clone, Debug)]
pub struct Cpu {
    now_ns: Rc<Cell<u64>>,
    percent: Rc<Cell<u64>>,
}

impl Cpu {
    /// A CPU of which the loop gets `percent`, from time `now_ns`.
    ///
    /// # Panics
    ///
    /// If `percent` is not 1 to 100.
    pub fn new(now_ns: u64, percent: u64) -> Self {
        assert!((1..=100).contains(&percent), "{percent} % of a CPU");
        Self { now_ns: Rc::new(Cell::new(now_ns)), percent: Rc::new(Cell::new(percent)) }
    }

    /// The current time, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    /// Spends `work_ns` nanoseconds of the whole CPU's work.
    pub fn spend(&self, work_ns: u64) {
        self.now_ns.set(self.now_ns.get() + work_ns * 100 / self.percent.get());
    }
}

/// The place of a job: a program's number, and the key of one of the queues.
type Key = (u64, u64);

/// Events of several programs.
#[derive(Default)]
struct Queues {
    timers: BTreeMap<Key, (usize, Job)>,
    best_effort: BTreeMap<Key, (usize, Job)>,
    keys: HashMap<(usize, Job), (bool, Key)>,
    submitted: u64,
}

impl Queues {
    fn submit(&mut self, is_timer: bool, value: u64, whose: (usize, Job)) {
        self.cancel(whose);
        self.submitted += 1;
        let key = (value, self.submitted);
        self.keys.insert(whose, (is_timer, key));
        self.queue(is_timer).insert(key, whose);
    }

    fn cancel(&mut self, whose: (usize, Job)) {
        if let Some((is_timer, key)) = self.keys.remove(&whose) {
            self.queue(is_timer).remove(&key);
        }
    }

    fn queue(&mut self, is_timer: bool) -> &mut BTreeMap<Key, (usize, Job)> {
        if is_timer { &mut self.timers } else { &mut self.best_effort }
    }

    fn release_ns(&self) -> Option<u64> {
        self.timers.keys().next().map(|&(release_ns, _)| release_ns)
    }

    /// The job to do next at `now_ns`.
    fn next(&mut self, now_ns: u64) -> Option<(usize, Job)> {
        let is_due = self.release_ns().is_some_and(|release_ns| release_ns <= now_ns);
        let (_, whose) = self.queue(is_due).pop_first()?;
        self.keys.remove(&whose);
        Some(whose)
    }
}

struct View<'a> {
    queues: &'a mut Queues,
    cpu: &'a Cpu,
    program: usize,
}

impl Timeline for View<'_> {
    fn now_ns(&self) -> u64 {
        self.cpu.now_ns()
    }

    fn until_ns(&self) -> Option<u64> {
        self.queues.release_ns()
    }

    fn timer(&mut self, release_ns: u64, job: Job) {
        self.queues.submit(true, release_ns, (self.program, job));
    }

    fn best_effort(&mut self, importance: u64, job: Job) {
        self.queues.submit(false, importance, (self.program, job));
    }

    fn cancel(&mut self, job: Job) {
        self.queues.cancel((self.program, job));
    }
}

/// A loop in virtual time.
pub struct VirtualLoop {
    queues: Queues,
    cpu: Cpu,
}

impl VirtualLoop {
    /// A loop without programs.
    pub fn new(cpu: Cpu) -> Self {
        Self { queues: Queues::default(), cpu }
    }

    /// Starts the programs and runs them until `end_ns`, or until nothing is left to do.
    pub fn run(&mut self, programs: &mut [&mut dyn Program], end_ns: u64) {
        for (number, program) in programs.iter_mut().enumerate() {
            program.start(&mut View { queues: &mut self.queues, cpu: &self.cpu, program: number });
        }
        while self.cpu.now_ns() < end_ns {
            if let Some((number, job)) = self.queues.next(self.cpu.now_ns()) {
                let mut view = View { queues: &mut self.queues, cpu: &self.cpu, program: number };
                programs[number].run(job, &mut view);
            } else if let Some(release_ns) = self.queues.release_ns() {
                self.cpu.now_ns.set(release_ns);
            } else {
                return;
            }
        }
    }
}

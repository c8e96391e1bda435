//! A CPU on which programs run, in virtual time: the driver of the scheduler in its tests.

use alloc::vec::Vec;

use crate::coop::{Group, Member, Members, Options, Pick, Scheduler, Standing, Table, WEIGHT};

/// The behaviour of a program.
#[derive(Clone, Debug)]
pub(super) enum Program {
    /// Computes, and never polls.
    Hog,
    /// Shows a frame each period and decodes the rest of the time, at `frame_ns` a frame.
    Player { frame_ns: u64, period_ns: u64 },
    /// Like a player, but one in `each` pieces of work takes `late_ns`.
    Late { each: u64, late_ns: u64, period_ns: u64 },
    /// Always tells a release time of now.
    Liar,
    /// Computes for a while, and then sleeps without a poll.
    Sleeper { runs_ns: u64, sleeps_ns: u64 },
}

/// A program on the CPU.
#[derive(Debug)]
pub(super) struct Actor {
    pub(super) id: usize,
    program: Program,
    next_ns: u64,
    wakes_ns: Option<u64>,
    decoded_ns: u64,
    pieces: u64,
    /// CPU time of the program.
    pub(super) cpu_ns: u64,
    /// Tardiness of each of its timers.
    pub(super) tardiness_ns: Vec<u64>,
}

pub(super) struct Cpu<T: Table = Members> {
    pub(super) now_ns: u64,
    pub(super) scheduler: Scheduler<T>,
    pub(super) actors: Vec<Actor>,
    pub(super) switches: u64,
    last: Option<usize>,
}

const CHUNK_NS: u64 = 250_000;
const TIMER_NS: u64 = 50_000;

impl Cpu {
    pub(super) fn new(options: Options) -> Self {
        Self::over(Members::new(), options)
    }
}

impl<T: Table> Cpu<T> {
    pub(super) fn over(table: T, options: Options) -> Self {
        let scheduler = Scheduler::new(table, options);
        Self { now_ns: 0, scheduler, actors: Vec::new(), switches: 0, last: None }
    }

    pub(super) fn add(&mut self, group: Group, program: Program) {
        self.add_weighted(group, WEIGHT, program);
    }

    pub(super) fn add_weighted(&mut self, group: Group, weight: u32, program: Program) {
        let id = self.scheduler.join(Member::new(group, weight)).expect("a place");
        // Not all at a time, as no two clips begin together.
        let next_ns = 1_000_000 + 777_777 * id as u64;
        if matches!(program, Program::Player { .. } | Program::Late { .. }) {
            self.scheduler.poll(id, 0, Some(next_ns), Some(0));
        }
        self.actors.push(Actor {
            id,
            program,
            next_ns,
            wakes_ns: None,
            decoded_ns: 0,
            pieces: 0,
            cpu_ns: 0,
            tardiness_ns: Vec::new(),
        });
    }

    /// Runs for `for_ns`.
    pub(super) fn run(&mut self, for_ns: u64) {
        let end_ns = self.now_ns + for_ns;
        while self.now_ns < end_ns {
            for actor in &mut self.actors {
                if actor.wakes_ns.is_some_and(|at| at <= self.now_ns) {
                    actor.wakes_ns = None;
                    self.scheduler.wake(actor.id);
                }
            }
            let wakes = self.actors.iter().filter_map(|a| a.wakes_ns).min();
            match self.scheduler.pick(self.now_ns) {
                Pick::Idle { until_ns } => {
                    let until = until_ns.into_iter().chain(wakes).min();
                    self.now_ns = until.expect("somebody wakes").max(self.now_ns + 1);
                }
                Pick::Run { id, slice_end_ns, until_ns, .. } => {
                    self.switches += u64::from(self.last.replace(id) != Some(id));
                    self.turn(id, slice_end_ns, until_ns);
                }
            }
        }
    }

    /// Runs the program for a turn: until it polls, or is preempted.
    fn turn(&mut self, id: usize, slice_end_ns: u64, until_ns: u64) {
        let began_ns = self.now_ns;
        let actor = self.actors.iter_mut().find(|a| a.id == id).expect("an actor");
        match actor.program.clone() {
            Program::Hog => self.now_ns = until_ns,
            Program::Liar => self.now_ns += 90_000,
            Program::Sleeper { runs_ns, .. } => self.now_ns = until_ns.min(self.now_ns + runs_ns),
            Program::Player { .. } | Program::Late { .. } => {
                let mut first = true;
                loop {
                    while actor.next_ns <= self.now_ns {
                        actor.tardiness_ns.push(self.now_ns - actor.next_ns);
                        self.now_ns += TIMER_NS;
                        actor.next_ns += actor.period_ns();
                    }
                    if self.now_ns >= slice_end_ns && !(first && slice_end_ns > began_ns) {
                        break;
                    }
                    first = false;
                    self.now_ns += actor.piece();
                }
            }
        }
        let preempted = self.now_ns > until_ns;
        if preempted {
            // The rest of the piece is dropped: no test needs it.
            self.now_ns = until_ns;
        }
        let ran_ns = self.now_ns - began_ns;
        actor.cpu_ns += ran_ns;
        let (release, importance) = (actor.next_ns, actor.frames());
        match actor.program {
            _ if preempted || self.now_ns == until_ns => {
                self.scheduler.expire(self.now_ns, ran_ns);
            }
            Program::Hog => unreachable!("it runs until it is preempted"),
            Program::Liar => {
                self.scheduler.poll(id, ran_ns, Some(self.now_ns), Some(0));
            }
            Program::Sleeper { sleeps_ns, .. } => {
                self.scheduler.block(id, ran_ns);
                actor.wakes_ns = Some(self.now_ns + sleeps_ns);
            }
            Program::Player { .. } | Program::Late { .. } => {
                self.scheduler.poll(id, ran_ns, Some(release), Some(importance));
            }
        }
    }

    pub(super) fn standing(&self, actor: usize) -> Standing {
        let id = self.actors[actor].id;
        let found = self.scheduler.members().find(|(other, _)| *other == id);
        found.expect("a member").1.standing
    }

    /// The greatest tardiness of any timer of these actors.
    pub(super) fn latest_ns(&self, actors: core::ops::Range<usize>) -> u64 {
        let all = self.actors[actors].iter().flat_map(|a| &a.tardiness_ns);
        all.copied().max().unwrap_or(0)
    }

    /// The fraction of the time in which these actors ran.
    pub(super) fn share(&self, actors: core::ops::Range<usize>) -> f64 {
        let had: u64 = self.actors[actors].iter().map(|a| a.cpu_ns).sum();
        had as f64 / self.now_ns as f64
    }
}

impl Actor {
    fn period_ns(&self) -> u64 {
        match self.program {
            Program::Player { period_ns, .. } | Program::Late { period_ns, .. } => period_ns,
            _ => u64::MAX / 2,
        }
    }

    /// Duration of the actor's next piece of work.
    fn piece(&mut self) -> u64 {
        self.pieces += 1;
        let ns = match self.program {
            Program::Late { each, late_ns, .. } if self.pieces.is_multiple_of(each) => late_ns,
            _ => CHUNK_NS,
        };
        self.decoded_ns += ns;
        ns
    }

    /// Number of frames that the actor has decoded, in thousandths.
    pub(super) fn frames(&self) -> u64 {
        match self.program {
            Program::Player { frame_ns, .. } => self.decoded_ns * 1000 / frame_ns,
            _ => self.decoded_ns / 1000,
        }
    }
}

/// Jain's index of fairness: 1 if all have the same.
pub(super) fn jain(of: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = of.clone().count() as f64;
    let sum: f64 = of.clone().sum();
    sum * sum / (count * of.map(|x| x * x).sum::<f64>())
}

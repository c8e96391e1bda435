//! One run: a simulated machine with a worker on each CPU, and a thread that calls from outside.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::Duration;

use antiphon_runtime::sched::Policy;
use antiphon_sim::{Machine, Memory, Model, Sim, Simulation, Stuck};

use super::run::{Entered, Ongoing, message};
use super::schedule::What;
use super::{BoxedPolicy, Failure, Pool, Schedule, Why};
use crate::deadline::nanos;
use crate::pool::Standard;

/// Runs closures with a [`Pool`]: sets the number of workers, the policy, and the limit of virtual
/// time.
pub struct Runner {
    workers: usize,
    policy: Box<dyn Fn() -> BoxedPolicy>,
    limit: Duration,
}

/// A run that has succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<T> {
    /// The result of the closure.
    pub returned: T,
    /// The virtual time that passed until all workers had ended.
    pub time: Duration,
    /// The parts of tasks that were run, with their times.
    pub schedule: Schedule,
}

/// Size of a stack, the same as for threads. Only touched pages use memory.
const STACK_BYTES: usize = 2 << 20;
/// Maximum number of workers; each has a CPU.
const MOST: usize = 1_000;

impl Runner {
    /// Creates a runner with four workers, the [`Standard`] policy, and a limit of one minute.
    #[must_use]
    pub fn new() -> Self {
        let policy = || BoxedPolicy::new(Standard::default());
        Self { workers: 4, policy: Box::new(policy), limit: Duration::from_secs(60) }
    }

    /// Sets the number of workers.
    ///
    /// # Panics
    ///
    /// If the number is 0, or above 1000.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        assert!(
            (1..=MOST).contains(&workers),
            "{workers} workers: the number must be from 1 to {MOST}"
        );
        self.workers = workers;
        self
    }

    /// Sets the policy, made anew for each run: one of [`pool`](crate::pool), by name, or your own.
    ///
    /// ```
    /// use antiphon::deterministic::{BoxedPolicy, Runner};
    /// use antiphon::pool::policy::{Fifo, Scheme, Share, Steal};
    ///
    /// let one = Runner::new().policy(|| Scheme::new(Fifo, Steal { share: Share::One }));
    /// let same = Runner::new().policy(|| "fifo/steal-one".parse::<BoxedPolicy>().unwrap());
    /// let schedule = |runner: Runner| {
    ///     let run = runner.run(1, |pool| (0..9).for_each(|_| drop(pool.spawn(|| {}))));
    ///     run.unwrap().schedule
    /// };
    /// assert_eq!(schedule(one), schedule(same));
    /// ```
    #[must_use]
    pub fn policy<Y: Policy<Sim> + 'static>(mut self, policy: impl Fn() -> Y + 'static) -> Self {
        self.policy = Box::new(move || BoxedPolicy::new(policy()));
        self
    }

    /// Sets the limit of virtual time; above 292 years it is the same as 292 years.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs the closure with a new pool, on a thread that is not a worker. When it has returned,
    /// the pool ends as if it were dropped: the workers run the queued tasks, and those that these
    /// spawn, and end; a task that sleeps or waits to be woken is dropped. Blocks until then.
    ///
    /// # Errors
    ///
    /// The [`Failure`] of the run: see [`Why`].
    ///
    /// # Panics
    ///
    /// If called inside a run.
    pub fn run<T: 'static>(
        &self,
        seed: u64,
        closure: impl FnOnce(Pool) -> T + 'static,
    ) -> Result<Run<T>, Failure> {
        let run = Rc::new(Ongoing::new(seed, (self.policy)(), self.workers));
        let (returned, told) = (Rc::new(RefCell::new(None)), run.clone());
        let returns = returned.clone();
        let outside = move || {
            *returns.borrow_mut() = Some(told.call(closure));
        };
        let _entered = Entered::new(run.clone());
        let simulation = self.simulation(seed, &run, outside);
        let limit_ns = nanos(self.limit);
        let simulated = catch_unwind(AssertUnwindSafe(|| simulation.run(limit_ns)));
        let schedule = run.schedule.take();
        let fails = |why, at, schedule| Err(Failure { seed, why, at, schedule });
        let last = schedule.steps().last().map_or(Duration::ZERO, |step| step.at);
        let outcome = match simulated {
            Err(panic) => return fails(Why::Panicked(message(panic.as_ref())), last, schedule),
            Ok(Err(Stuck { why, at_ns, .. })) => {
                return fails(why.into(), Duration::from_nanos(at_ns), schedule);
            }
            Ok(Ok(outcome)) => outcome,
        };
        let time = Duration::from_nanos(outcome.end_ns);
        if let Some((task, message)) = run.uncaught.take().into_iter().next() {
            return fails(Why::TaskPanicked { task, message }, time, schedule);
        }
        if schedule.unfinished().any(|step| step.what == What::Spawned) {
            return fails(Why::Lost, time, schedule);
        }
        let returned = returned.take().expect("its thread is over");
        Ok(Run { returned, time, schedule })
    }

    /// Creates the simulated machine. It has a CPU for each thread, so that none is interrupted,
    /// and nothing in it depends on the addresses that the host's allocator returns.
    fn simulation(
        &self,
        seed: u64,
        run: &Rc<Ongoing>,
        outside: impl FnOnce() + 'static,
    ) -> Simulation {
        let threads = self.workers + 2;
        let machine = Machine::two_sockets().shape(1, threads as u32);
        // A panicking thread accesses memory without delay: no other access may be pending.
        let model = Model { memory: Memory::Sc, apart: true, ..Model::default() };
        let simulation = Simulation::new(machine, seed).model(model).grace_ns(0);
        let (workers, last) = (run.clone(), run.clone());
        simulation
            .stack_bytes(STACK_BYTES)
            .thread(outside)
            .threads(self.workers, move |worker| workers.be_worker(worker))
            .thread(move || {
                last.timers.run();
                // Closed only now, because the tasks that the timers have just woken must still
                // run.
                last.crew.close();
            })
    }
}

impl Ongoing {
    /// Runs the closure of the run, and ends the pool.
    fn call<T>(&self, closure: impl FnOnce(Pool) -> T) -> T {
        self.note(0, What::Began);
        match catch_unwind(AssertUnwindSafe(|| closure(Pool::of(self.id)))) {
            Ok(returned) => {
                self.note(0, What::Ended);
                self.put_late();
                self.timers.close();
                returned
            }
            Err(panic) => {
                self.note(0, What::Panicked(message(panic.as_ref())));
                resume_unwind(panic)
            }
        }
    }
}

impl From<antiphon_sim::Why> for Why {
    fn from(why: antiphon_sim::Why) -> Self {
        match why {
            antiphon_sim::Why::Deadlock => Self::Deadlock,
            antiphon_sim::Why::Overrun => Self::Overrun,
        }
    }
}

impl Default for Runner {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workers, limit, policy: _ } = self;
        let mut f = f.debug_struct("Runner");
        f.field("workers", workers).field("limit", limit).finish_non_exhaustive()
    }
}

//! One repetition, in a process of its own: it runs the chains, checks each result, and counts.

use std::path::PathBuf;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _};
use serde::{Deserialize, Serialize};

use super::cases::{Case, Cell};
use super::go;
use super::problems::Problem;
use super::work::Work;
use crate::bench::pools::arrivals;
use crate::bench::pools::course::Course;
use crate::bench::pools::figures::{Counted, Figures};
use crate::bench::pools::runner::{Run, Runner};
use crate::bench::pools::subjects::{self, Setup, Visitor};
use crate::bench::rounds::Outcome;
use crate::ticks::Ticks;
use crate::ticks::now;

/// The order for one repetition.
#[derive(Clone, Serialize, Deserialize)]
pub struct Order {
    /// Name of the runner of the tasks.
    pub subject: String,
    /// The conditions.
    pub cell: Cell,
    /// Number of chains.
    pub chains: u64,
    /// Capacity of each worker's queue, in tasks.
    pub capacity: usize,
    /// Chains per second, for a case with a rate.
    pub rate: f64,
    /// Strike of the options.
    pub strike: f64,
    /// The seed of all random choices.
    pub seed: u64,
    /// Rate of the counter that times.
    pub ticks: Ticks,
    /// Path of the peer's Go program, or why it is missing.
    pub go: Result<PathBuf, String>,
}

/// Carries out one repetition.
///
/// # Errors
///
/// If the subject is unknown, or can't be started.
pub fn measure(order: &Order) -> Result<Outcome<Figures>, String> {
    if order.subject == go::NAME {
        return go::measure(order);
    }
    let setup = Setup { workers: order.cell.workers, capacity: order.capacity, trace: false };
    subjects::with(&order.subject, &setup, Repetition(order))
}

struct Repetition<'a>(&'a Order);

impl Visitor for Repetition<'_> {
    type Output = Outcome<Figures>;

    fn visit<R: Runner>(
        self,
        runner: &'static R,
        counted: &dyn Fn() -> Option<Counted>,
    ) -> Outcome<Figures> {
        let mut work = work(self.0);
        let tasks = work.tasks();
        (work.course.begun, work.begun_ns) = (now(), Linux::now(Clock::Monotonic));
        // Leaked because tasks refer to it; the process ends soon.
        let work: &'static Work = Box::leak(Box::new(work));
        let (done, figures) = work.course.run(tasks, || Run { runner, work }.begin());
        match done.check(tasks, ("chains", work.chains), ("right answers", work.chains)) {
            Ok(()) => Outcome::Figures(Figures { counted: counted(), ..figures }),
            Err(broken) => Outcome::Violation(broken),
        }
    }
}

fn work(order: &Order) -> Work {
    let Order { cell, chains, rate, strike, seed, ticks, .. } = *order;
    let problems = |depth| Problem::all(cell.kernel, depth, strike, seed);
    let arrivals = (cell.case == Case::Open).then(|| arrivals::steady(chains, rate));
    Work {
        depths: cell.depths,
        short: problems(cell.depths.short),
        long: problems(cell.depths.long),
        chains,
        course: Course::new(ticks, arrivals, cell.spawners),
        seed,
        begun_ns: 0,
    }
}

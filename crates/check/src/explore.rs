//! The exploration: runs executions one after the other, until none is left.
//!
//! The search is not over interleavings but over execution graphs (`graph`), which have for each
//! read the write that it reads from, and for each word the order of its writes. For each graph,
//! the program runs again from the start:
//!
//! ```text
//!   later: graphs to run along       ┌───────────────────────────────────────────┐
//!   ┌───┐                            │ run along it: each operation takes its    │
//!   │ g ├──── pop ──────────────────►│ event from the graph (`follow`)           │
//!   │ . │                            ├───────────────────────────────────────────┤
//!   │ . │◄─── other sources, places, │ go on: each operation adds an event, the  │
//!   │ . │     choices (`step`)       │ canonical one (`extend`)                  │
//!   │ . │◄─── reads that the new     ├───────────────────────────────────────────┤
//!   └───┘     write could serve      │ all threads have ended: one execution     │
//!             (`revisit`)            └───────────────────────────────────────────┘
//! ```
//!
//! The order of threads in a run is always the same: the first thread that can continue runs. The
//! order does not matter: a read that comes too early for a write gets that write later, by a
//! revisit. So there is no search over schedules, and each graph is run exactly once (`README.md`
//! has the argument, `tests/check/brute.rs` the evidence).
//!
//! A wait that no write in the graph can end is not in the graph; its thread is passed over. A wait
//! that a write can end reads that write, or reads the latest value and is *blocked* until a
//! revisit gives it another write. When no thread can continue, and no deadline or budget is left
//! to end a wait, there is a deadlock. The exception: if a blocked wait has not seen the latest
//! value, the graph is not an execution, only a step towards one.
//!
//! The random modes use the same operations and graphs, but pick a thread for each event and one of
//! its alternatives, and never revisit.

use std::time::Instant;

use crate::context;
use crate::decide::{Decider, Rng, Way};
use crate::execution::{Ending, Execution};
use crate::graph::Graph;
use crate::model::{Failure, Mode, Model, Report};
use crate::replay;
use crate::run::{Program, run_once};
use crate::scope::Scope;

impl Model {
    /// Runs `program` once for each execution: it builds the shared state and spawns the threads,
    /// which start when it returns. Stops at the first failure.
    ///
    /// # Panics
    ///
    /// If a model is running on this OS thread already, if the program spawns more than 15 threads,
    /// or if the word of [`Mode::Replay`] can't be parsed.
    pub fn run<'env, F>(&self, program: F) -> Report
    where
        F: for<'scope> Fn(&'scope Scope<'scope, 'env>),
    {
        explore(self, &program)
    }
}

/// Runs all executions of `program` that `model` requests.
fn explore<'env>(model: &Model, program: &Program<'_, 'env>) -> Report {
    let started = Instant::now();
    let way = first_way(&model.mode);
    let mut execution = Execution::new(model.config.clone(), Decider::new(way));
    let mut graph = Graph::default();
    if let Mode::Replay(word) = &model.mode {
        let (events, last) = replay::parse(word).unwrap_or_else(|why| panic!("{why}"));
        graph = events;
        execution.scripted = true;
        execution.last = last;
    }
    let _entered = context::enter(execution);
    let mut report = Report {
        name: model.name.clone(),
        executions: 0,
        discarded: 0,
        forced: 0,
        complete: false,
        failure: None,
        probes: Default::default(),
        longest: 0,
        seconds: 0.0,
    };
    let exhausts = matches!(model.mode, Mode::Exhaustive | Mode::Enumerate);
    loop {
        run_once(program, graph);
        match context::with(|execution| count(execution, &mut report)) {
            Some(failure) => {
                report.failure = Some(failure);
                break;
            }
            None if report.executions >= model.executions || started.elapsed() > model.time => {
                report.complete = exhausts && context::with(|x| next(x, model, &report)).is_none();
                break;
            }
            None => {}
        }
        match context::with(|execution| next(execution, model, &report)) {
            Some(later) => graph = later,
            None => {
                report.complete = exhausts;
                break;
            }
        }
    }
    let execution = context::leave();
    report.probes = execution.probes.into_iter().collect();
    report.seconds = started.elapsed().as_secs_f64();
    report
}

fn first_way(mode: &Mode) -> Way {
    match *mode {
        Mode::Exhaustive => Way::Explore,
        Mode::Replay(_) => Way::First,
        Mode::Enumerate => Way::Enumerate { path: Vec::new(), depth: 0 },
        Mode::Random { seed, .. } => random(Rng(seed)),
        Mode::Pct { seed, depth, .. } => pct(Rng(seed), depth, 50),
    }
}

fn random(mut rng: Rng) -> Way {
    let sticky = [0, 32, 56, 62][rng.below(4)];
    Way::Random { rng, sticky, running: 0 }
}

fn pct(mut rng: Rng, depth: usize, steps: usize) -> Way {
    let changes = (1..depth).map(|_| rng.below(steps.max(1))).collect();
    Way::Pct { rng, priorities: Vec::new(), changes }
}

/// Counts the execution that has just ended in the report; returns its failure, if any.
fn count(execution: &mut Execution, report: &mut Report) -> Option<Failure> {
    report.longest = report.longest.max(execution.order.len());
    match execution.ending.take() {
        Some(Ending::Discarded) => {
            report.discarded += 1;
            None
        }
        Some(Ending::Failed(kind)) => {
            report.executions += 1;
            let what = execution.decider.what_failed.take().unwrap_or_default();
            let (trace, replay) = (execution.trace(), replay::word(execution));
            Some(Failure { kind, what, trace, replay })
        }
        None => {
            report.executions += 1;
            let forced = execution.threads.iter().any(|thread| thread.forced > 0);
            report.forced += u64::from(forced);
            None
        }
    }
}

/// The graph to run next, if any.
fn next(execution: &mut Execution, model: &Model, report: &Report) -> Option<Graph> {
    let again = match model.mode {
        Mode::Exhaustive => {
            return execution.decider.later.pop();
        }
        Mode::Replay(_) => false,
        Mode::Enumerate => execution.decider.advance(),
        Mode::Random { executions, .. } | Mode::Pct { executions, .. } => {
            report.executions + report.discarded < executions
        }
    };
    // Each random execution has its own stickiness or priorities.
    let way = match (&model.mode, &execution.decider.way) {
        (Mode::Random { .. }, Way::Random { rng, .. }) => Some(random(rng.clone())),
        (Mode::Pct { depth, .. }, Way::Pct { rng, .. }) => {
            Some(pct(rng.clone(), *depth, report.longest))
        }
        _ => None,
    };
    if let Some(way) = way {
        execution.decider.way = way;
    }
    again.then(Graph::default)
}

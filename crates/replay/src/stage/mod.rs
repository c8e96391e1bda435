//! Plays a script on a simulated machine.
//!
//! Each actor is a simulated thread. Each lock is one of the [`Subject`]'s, on cache lines of its
//! own, together with the lines of data that each critical section touches, if any.
//!
//! A replay must never hang, although its threads arrive at their locks in another order than
//! recorded:
//!
//! - A thread that waits for a token checks again after 10 ms, then after twice as long. If each
//!   thread then waits for another, and none has made a step meanwhile, it continues without the
//!   token: a *fall-back*. A thread that holds a lock for which others wait continues first,
//!   because those have arrived there in another order.
//! - A thread that would wait for a lock whose release depends on the thread itself continues
//!   without the lock: also a fall-back. The last thread to ask closes each cycle of owners, and
//!   sees all of it.

mod player;
mod state;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use antiphon_sim::{Arbitration, Machine, Model, OwnLine, Simulation, Stuck};
use antiphon_trace::{Event, Thread, Trace};

use crate::locks::Instance;
use crate::outcome::{Played, SiteTimes};
use crate::plan::{Plan, Program};
use crate::scale::Script;
use crate::subject::Subject;
use player::Player;
use state::{State, Token, Waits};

/// Time to wait for a token before checking for progress.
const PATIENCE_NS: u64 = 10_000_000;
/// A replay is given up after this many times the length of all its work, one after the other.
const GIVEN_UP: u64 = 100;

/// How a script is played.
#[derive(Clone, Debug)]
pub struct Play {
    /// The simulated machine.
    pub machine: Machine,
    /// The order in which requests get a contended line there.
    pub arbitration: Arbitration,
    /// The seed of all random choices.
    pub seed: u64,
    /// Number of cache lines of a lock's data that each critical section touches.
    pub data_lines: usize,
}

impl Play {
    /// Plays `script` with the locks of `subject`. Blocks the calling host thread.
    ///
    /// # Errors
    ///
    /// [`Stuck`] if the replay does not end: a lock that makes no progress on this machine.
    pub fn play(&self, script: &Arc<Script>, subject: Subject) -> Result<Played, Stuck> {
        Ok(self.plays(script, subject, false)?.0)
    }

    /// [`play`](Self::play) for the program as it was recorded. Returns the events of its threads
    /// as a trace with the threads, sites and locks of the recorded one, and simulated times.
    /// `plan` is the plan of `recorded`.
    ///
    /// # Errors
    ///
    /// As [`play`](Self::play).
    pub fn trace(
        &self,
        recorded: &Trace,
        plan: &Arc<Plan>,
        subject: Subject,
    ) -> Result<Trace, Stuck> {
        let (_, told) = self.plays(&Arc::new(Script::recorded(plan)), subject, true)?;
        let thread = |(program, events): (&Program, Vec<Event>)| Thread {
            dropped: 0,
            events,
            ..recorded.threads[program.traced as usize].clone()
        };
        Ok(Trace {
            about: recorded.about.clone(),
            locks: recorded.locks.clone(),
            sites: recorded.sites.clone(),
            threads: plan.threads.iter().zip(told).map(thread).collect(),
            ..Trace::default()
        })
    }

    /// Plays a script; returns the result and, if requested, the events of each actor.
    fn plays(
        &self,
        script: &Arc<Script>,
        subject: Subject,
        tells: bool,
    ) -> Result<(Played, Vec<Vec<Event>>), Stuck> {
        let machine = subject.on(&self.machine);
        let overhead_ns = machine.park_ns + machine.wake_latency_ns + machine.wake_jitter_ns / 2;
        let stage = Rc::new(Stage::new(script, &subject, self.data_lines, overhead_ns));
        if tells {
            stage.state.borrow_mut().told = Some(vec![Vec::new(); script.threads()]);
        }
        // Recorded threads go where there is room.
        let model = Model { arbitration: self.arbitration, balance: true, ..Model::default() };
        let mut simulation = Simulation::new(machine, self.seed).model(model);
        for actor in 0..script.threads() {
            let stage = Rc::clone(&stage);
            simulation = simulation.thread(move || Player::new(&stage, actor).play());
        }
        let limit_ns = script.busy_ns().saturating_mul(GIVEN_UP).saturating_add(
            // Each wait for a token may end without success.
            script.awaits().saturating_mul(GIVEN_UP * PATIENCE_NS),
        );
        let outcome = simulation.run(limit_ns)?;
        let mut state = stage.state.borrow_mut();
        let told = state.told.take().unwrap_or_default();
        let played = Played {
            end_ns: state.end_ns,
            takes: state.takes,
            awaits: state.awaits,
            wait_ns: state.sites.iter().map(|site| site.wait_ns).sum(),
            lived_ns: state.lived_ns,
            fallbacks: state.fallbacks,
            lost_ns: state.lost_ns,
            sites: std::mem::take(&mut state.sites),
            readers_writer_wait_ns: state.readers_writer_wait_ns,
            counts: outcome.counts,
            trace_hash: outcome.trace_hash,
        };
        Ok((played, told))
    }
}

/// The state that all actors share.
struct Stage {
    script: Arc<Script>,
    locks: Vec<Instance>,
    data: Vec<Vec<OwnLine<[u64; 8]>>>,
    /// The time that the system adds to a sleep, before and after it, in nanoseconds.
    overhead_ns: u64,
    /// Not borrowed across a simulated step.
    state: RefCell<State>,
}

impl Stage {
    fn new(script: &Arc<Script>, subject: &Subject, lines: usize, overhead_ns: u64) -> Self {
        let plan = &script.plan;
        let lines = |_| (0..lines).map(|_| OwnLine([0; 8])).collect();
        let token = |&left: &u32| Token { left, waiters: Vec::new() };
        let state = State {
            tokens: script.tokens.iter().map(token).collect(),
            next: vec![0; script.pools.len()],
            owners: vec![Vec::new(); plan.locks.len()],
            waits: vec![Waits::No; script.threads()],
            sites: vec![SiteTimes::default(); plan.sites],
            ..State::default()
        };
        Self {
            script: Arc::clone(script),
            locks: plan.locks.iter().map(|lock| subject.make(lock.kind)).collect(),
            data: plan.locks.iter().map(lines).collect(),
            overhead_ns,
            state: RefCell::new(state),
        }
    }
}

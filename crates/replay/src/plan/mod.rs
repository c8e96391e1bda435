//! Converts a trace to a plan: the steps of each thread.
//!
//! | recorded | becomes |
//! |---|---|
//! | the time between two events, without its [`Off`](What::Off) | [`Step::Compute`] |
//! | `Off`, blocked | [`Step::Block`]: a device or a timer is equally fast on any machine |
//! | the part of that time that recording took | nothing: `recorder` computes it |
//! | `Off`, queued | nothing: it is the run queue of the machine that recorded |
//! | from [`Waits`](What::Waits) to [`Takes`](What::Takes) | nothing: waiting, not work |
//! | a wait on a condition that was notified | [`Step::Await`] of its [`Step::Signal`] |
//! | such a wait that was not notified; a lock that was given up | [`Step::Block`]: time ran out |
//! | a thread is created, or joined | [`Step::Await`] of its creator, or of its end |
//!
//! The plan of any trace can be replayed: events that do not fit together are left out and counted
//! in [`Cleaned`].

mod conditions;
mod pairs;
mod recorder;
mod story;

use std::collections::HashMap;

use antiphon_trace::{Event, LockKind, Trace, What};

use crate::step::{Step, Timed};
use recorder::Recorder;

/// A recorded program, prepared for replays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The threads that have events, in the order of the trace.
    pub threads: Vec<Program>,
    /// The locks that are taken.
    pub locks: Vec<Lock>,
    /// Number of call sites, which are numbered as in the trace.
    pub sites: usize,
    /// Number of signals that each token needs before its waiter continues.
    pub tokens: Vec<u32>,
    /// Events that did not fit together and were left out.
    pub cleaned: Cleaned,
}

/// A lock of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its kind.
    pub kind: LockKind,
    /// Its place in the table of the trace.
    pub traced: u32,
}

impl Lock {
    /// Returns whether the lock has a reader mode.
    #[must_use]
    pub fn is_readers_writer(&self) -> bool {
        self.kind == LockKind::RwLock
    }
}

/// The steps of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Its index in the trace.
    pub traced: u32,
    /// The process and the function in which it began: threads of one role do the same.
    pub role: (u32, u32),
    /// Whether another thread created it; otherwise it is the first of its process, or its creation
    /// is not in the trace.
    pub made: bool,
    /// Its beginning and end, in nanoseconds since the recording began.
    pub lived_ns: (u64, u64),
    /// The token of its end, if there is one.
    pub end: Option<u32>,
    /// Its steps, in order.
    pub steps: Vec<Timed>,
    /// The part of its time that recording took, which is in no step, in nanoseconds.
    pub left_out_ns: u64,
}

/// Events that were left out of a trace to get a plan that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Acquisitions of a lock that was never released.
    pub taken_for_ever: u64,
    /// Releases of a lock that the thread did not hold.
    pub released_untaken: u64,
    /// Acquisitions of locks that had no room in the recorder's table.
    pub unnamed: u64,
    /// Waits on conditions that were notified by an unknown thread: they last as recorded.
    pub woken_by_nobody: u64,
    /// Joins of threads whose end is not in the trace: they last as recorded.
    pub joined_nothing: u64,
}

impl Cleaned {
    /// The number of all events that were left out.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Self { taken_for_ever, released_untaken, unnamed, woken_by_nobody, joined_nothing } =
            self;
        taken_for_ever + released_untaken + unnamed + woken_by_nobody + joined_nothing
    }
}

impl Plan {
    /// The plan of a trace.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        Links::new(trace).plan(trace)
    }

    /// Number of acquisitions in the plan.
    #[must_use]
    pub fn takes(&self) -> u64 {
        let takes = |step: &&Timed| matches!(step.step, Step::Lock { .. });
        self.threads.iter().map(|thread| thread.steps.iter().filter(takes).count() as u64).sum()
    }

    /// Largest number of threads that existed at a time.
    #[must_use]
    pub fn peak(&self) -> usize {
        let lived = self.threads.iter().map(|thread| thread.lived_ns);
        let mut changes: Vec<_> =
            lived.flat_map(|(from, to)| [(from, 1), (to.saturating_add(1), -1)]).collect();
        changes.sort_unstable();
        let mut alive = 0isize;
        changes
            .iter()
            .map(|change| {
                alive += change.1;
                alive
            })
            .max()
            .unwrap_or(0) as usize
    }

    /// CPU time of all threads, in nanoseconds.
    #[must_use]
    pub fn compute_ns(&self) -> u64 {
        let steps = self.threads.iter().flat_map(|thread| &thread.steps);
        steps.fold(0, |sum, step| match step.step {
            Step::Compute { ns } => sum.saturating_add(ns),
            _ => sum,
        })
    }

    /// The time of all threads that recording took, in nanoseconds, as far as known. The plan
    /// leaves it out.
    #[must_use]
    pub fn recorder_ns(&self) -> u64 {
        self.threads.iter().fold(0, |sum, thread| sum.saturating_add(thread.left_out_ns))
    }

    /// The same plan, but with half the time for work that is done while holding a lock taken at
    /// `site`.
    #[must_use]
    pub fn with_half_the_hold(&self, site: u32) -> Self {
        let mut plan = self.clone();
        for thread in &mut plan.threads {
            let mut held: Vec<u32> = Vec::new();
            for timed in &mut thread.steps {
                match &mut timed.step {
                    Step::Lock { lock, site: at, .. } if *at == site => held.push(*lock),
                    Step::Unlock { lock } => held.retain(|held| held != lock),
                    Step::Compute { ns } | Step::Block { ns } if !held.is_empty() => *ns /= 2,
                    _ => {}
                }
            }
        }
        plan
    }
}

/// The links between the threads of a trace.
struct Links {
    /// The tokens that an event signals.
    signals: HashMap<conditions::Place, Vec<u32>>,
    /// The token that a waiter of a condition waits for.
    wakes: HashMap<conditions::Place, u32>,
    /// The tokens of the beginning (with the time of the creation) and of the end of threads.
    begins: HashMap<usize, (u32, u64)>,
    ends: HashMap<usize, u32>,
    /// Number of signals that each token needs.
    tokens: Vec<u32>,
    /// The cost of recording each kind of event.
    recorder: Recorder,
}

impl Links {
    fn new(trace: &Trace) -> Self {
        let mut links = Self {
            signals: HashMap::new(),
            wakes: HashMap::new(),
            begins: HashMap::new(),
            ends: HashMap::new(),
            tokens: Vec::new(),
            recorder: Recorder::new(&trace.costs),
        };
        let mut wakers: Vec<_> = conditions::wakers(trace).into_iter().collect();
        wakers.sort_unstable();
        for (wakes, notifies) in wakers {
            let token = links.token();
            links.wakes.insert(wakes, token);
            links.signals.entry(notifies).or_default().push(token);
        }
        for (thread, story) in trace.threads.iter().enumerate() {
            let is = |wanted| move |event: &Event| event.what == wanted;
            if story.events.iter().any(is(What::Ends)) {
                let token = links.token();
                links.ends.insert(thread, token);
            }
            for (index, event) in story.events.iter().enumerate() {
                let What::Creates { thread: made } = event.what else { continue };
                let made = made as usize;
                let begins = trace.threads.get(made).and_then(|made| made.events.first());
                let begins = begins.is_some_and(|event| event.what == What::Begins);
                // A thread that creates itself, or is created twice, is a damaged record: the first
                // counts.
                if begins && made != thread && !links.begins.contains_key(&made) {
                    let token = links.token();
                    links.begins.insert(made, (token, event.at_ns));
                    links.signals.entry((thread, index)).or_default().push(token);
                }
            }
        }
        links
    }

    fn token(&mut self) -> u32 {
        self.tokens.push(1);
        self.tokens.len() as u32 - 1
    }

    fn plan(self, trace: &Trace) -> Plan {
        let mut plan =
            Plan { sites: trace.sites.len(), tokens: self.tokens.clone(), ..Plan::default() };
        let mut locks = Locks { trace, numbers: HashMap::new(), locks: Vec::new() };
        let begun_ns = trace.begins_ns();
        for thread in 0..trace.threads.len() {
            if !trace.threads[thread].events.is_empty() {
                let program = self.program(thread, begun_ns, &mut locks, &mut plan.cleaned);
                plan.threads.push(program);
            }
        }
        plan.locks = locks.locks;
        plan
    }
}

/// The locks of a plan, numbered in the order in which they are found.
struct Locks<'a> {
    trace: &'a Trace,
    numbers: HashMap<u32, u32>,
    locks: Vec<Lock>,
}

impl Locks<'_> {
    fn number(&mut self, traced: u32) -> u32 {
        *self.numbers.entry(traced).or_insert_with(|| {
            let kind = self.trace.locks[traced as usize].kind;
            self.locks.push(Lock { kind, traced });
            self.locks.len() as u32 - 1
        })
    }
}

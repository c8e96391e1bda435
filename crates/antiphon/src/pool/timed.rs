//! A task that was timed, and what its time went to.
//!
//! ```text
//!            begins        waits          may go on       goes on        ends
//!   ┌────────┐   ┌─────────┐   ┌─────────┐      ┌──────────┐   ┌─────────┐
//!   │ queued │ ► │ running │ ► │ waiting │  ►   │ runnable │ ► │ running │ ►
//!   └────────┘   └─────────┘   └─────────┘      └──────────┘   └─────────┘
//!                     │             yields             ▲
//!                     └────────────────────────────────┘
//! ```
//!
//! `hogged` is that of `queued` and `runnable` in which one other task did not let the thread go.

use std::panic::Location;

use antiphon_runtime::flight::{Event, LONG_NS, Sample, What};

use super::ledger::Spans;

/// A task that was timed: see [`Recording::tasks`](super::Recording).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timed {
    /// Tells it from the others of a recording.
    pub number: u64,
    /// The name of the thread that ran it.
    pub thread: String,
    /// When it was made ready, by whom, and for how many tasks it stands.
    pub sample: Sample,
    /// When it began, in nanoseconds of the monotonic clock, as all times here.
    pub began_ns: u64,
    /// When it ended; of one that has not, when the recording was read.
    pub until_ns: u64,
    /// Whether it has ended.
    pub is_over: bool,
    /// Whether it is a fiber. What a closure waits for counts as run.
    pub is_fiber: bool,
    /// For how long it ran.
    pub running_ns: u64,
    /// For how long it waited: from when it was suspended until somebody let it go on, or its
    /// deadline was over.
    pub waiting_ns: u64,
    /// For how long it could go on, and others ran.
    pub runnable_ns: u64,
    /// That part of the time in the queue, and of `runnable_ns`, in which its thread was busy with
    /// one other task for longer than the pool's patience, or a millisecond if it has none.
    pub hogged_ns: u64,
    /// The line that has spawned it, or has made the stage whose it is; `None`: a closure, of which
    /// there is no room to say.
    pub spawned_at: Option<&'static Location<'static>>,
    /// The latest times of more than 250 µs ([`LONG_NS`]) in which it did not run, 64 at the most,
    /// in order.
    pub spans: Vec<Span>,
    /// Of `hogged_ns`, what is not of the queue.
    pub(super) late_ns: u64,
}

/// A part of a task's time in which it did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it began, in nanoseconds of the monotonic clock.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
    /// [`Waiting`](Part::Waiting), [`Runnable`](Part::Runnable), or [`Hogged`](Part::Hogged): it
    /// could go on, and one other task did not let the thread go, for a part of that at least.
    pub part: Part,
}

/// What a task's time goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// It was made ready, and has not begun.
    Queued,
    /// It runs.
    Running,
    /// It is suspended, and waits.
    Waiting,
    /// It could go on, and others run.
    Runnable,
    /// It could begin or go on, and one other task does not let its thread go.
    Hogged,
}

impl Part {
    /// All there are.
    pub const ALL: [Self; 5] =
        [Self::Queued, Self::Running, Self::Waiting, Self::Runnable, Self::Hogged];

    /// As it is called in tables and traces.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Runnable => "runnable",
            Self::Hogged => "hogged",
        }
    }
}

impl Timed {
    /// One that begins.
    pub(super) fn begin(number: u64, thread: String, sample: Sample, began_ns: u64) -> Self {
        Self {
            number,
            thread,
            sample,
            began_ns,
            until_ns: began_ns,
            is_over: false,
            is_fiber: false,
            running_ns: 0,
            waiting_ns: 0,
            runnable_ns: 0,
            hogged_ns: 0,
            spawned_at: None,
            spans: Vec::new(),
            late_ns: 0,
        }
    }

    /// A closure that a worker has recorded; it has no number of its own yet.
    pub(super) fn closure(thread: &str, event: &Event) -> Option<Self> {
        let What::Task(sample) = event.what else { return None };
        Some(Self {
            until_ns: event.ended_ns,
            is_over: true,
            running_ns: event.ended_ns.saturating_sub(event.began_ns),
            ..Self::begin(0, thread.to_owned(), sample, event.began_ns)
        })
    }

    /// For how long it was ready before it began.
    #[must_use]
    pub fn queued_ns(&self) -> u64 {
        self.began_ns.saturating_sub(self.sample.ready_ns)
    }

    /// For how long it could run, and did not: in the queue, and afterwards.
    #[must_use]
    pub fn delayed_ns(&self) -> u64 {
        self.queued_ns().saturating_add(self.runnable_ns)
    }

    pub(super) fn copy(&self, spans: Spans) -> Self {
        let spans = if spans == Spans::Kept { self.spans.clone() } else { Vec::new() };
        Self { thread: self.thread.clone(), spans, ..*self }
    }

    /// How much of its time, in nanoseconds, went to that.
    #[must_use]
    pub fn spent_ns(&self, part: Part) -> u64 {
        match part {
            Part::Queued => self.queued_ns(),
            Part::Running => self.running_ns,
            Part::Waiting => self.waiting_ns,
            Part::Runnable => self.runnable_ns,
            Part::Hogged => self.hogged_ns,
        }
    }
}

impl Span {
    /// Whether it is long enough to be kept.
    pub(super) fn is_long(&self) -> bool {
        self.to_ns.saturating_sub(self.from_ns) > LONG_NS
    }
}

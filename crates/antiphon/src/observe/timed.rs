//! Timed tasks, and the parts of their time.
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
//! `hogged` is the part of `queued` and `runnable` in which one other task occupied the thread.

use std::panic::Location;

use antiphon_runtime::flight::{Event, LONG_NS, Sample, What};

/// The line that has spawned a task.
pub(crate) type Caller = &'static Location<'static>;

/// A task that was timed: see [`Recording::tasks`](crate::pool::recording::Recording).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timed {
    /// Identifies the task within a recording.
    pub number: u64,
    /// The name of the thread that ran the task.
    pub thread: String,
    /// When the task was made ready, by which worker, and how many tasks it stands for.
    pub sample: Sample,
    /// When the task began, in nanoseconds of the monotonic clock, like all times here.
    pub began_ns: u64,
    /// When the task ended, or when the recording was read if it has not ended.
    pub until_ns: u64,
    /// Whether the task has ended.
    pub is_over: bool,
    /// Whether the task is a fiber. Waits of a closure count as running.
    pub is_fiber: bool,
    /// Time that the task ran.
    pub running_ns: u64,
    /// Time that the task waited: from its suspension until it was woken or its deadline had
    /// passed.
    pub waiting_ns: u64,
    /// Time that the task could continue while others ran.
    pub runnable_ns: u64,
    /// The part of the time in the queue, and of `runnable_ns`, in which one other task occupied
    /// the thread for longer than the pool's patience, or a millisecond if the pool has none.
    pub hogged_ns: u64,
    /// The line that spawned the task or made its stage. `None` for a closure, whose record has no
    /// room for it.
    pub spawned_at: Option<&'static Location<'static>>,
    /// The latest spans of more than 250 µs ([`LONG_NS`]) in which the task did not run, at most
    /// 64, in order.
    pub spans: Vec<Span>,
    /// The part of `hogged_ns` that was not in the queue.
    pub(crate) late_ns: u64,
}

/// Whether the spans of a task are read: they may be larger than the rest of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spans {
    Kept,
    Left,
}

/// A span of a task's time in which it did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When the span began, in nanoseconds of the monotonic clock.
    pub from_ns: u64,
    /// When the span ended.
    pub to_ns: u64,
    /// [`Waiting`](Part::Waiting), [`Runnable`](Part::Runnable), or [`Hogged`](Part::Hogged): the
    /// task could continue, and one other task occupied the thread for at least a part of the span.
    pub part: Part,
}

/// A part of a task's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The task was made ready, and has not begun.
    Queued,
    /// The task runs.
    Running,
    /// The task is suspended and waits.
    Waiting,
    /// The task could continue, and others run.
    Runnable,
    /// The task could begin or continue, and one other task occupies its thread.
    Hogged,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 5] =
        [Self::Queued, Self::Running, Self::Waiting, Self::Runnable, Self::Hogged];

    /// Returns the name of the part in tables and traces.
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
    /// Creates the record of a task that begins.
    pub(crate) fn begin(number: u64, thread: String, sample: Sample, began_ns: u64) -> Self {
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

    /// Creates the record of a closure that a worker has recorded, with the number 0. Returns
    /// `None` for other events.
    pub(crate) fn closure(thread: &str, event: &Event) -> Option<Self> {
        let What::Task(sample) = event.what else { return None };
        Some(Self {
            until_ns: event.ended_ns,
            is_over: true,
            running_ns: event.ended_ns.saturating_sub(event.began_ns),
            ..Self::begin(0, thread.to_owned(), sample, event.began_ns)
        })
    }

    /// Returns the time from when the task was ready until it began, in nanoseconds.
    #[must_use]
    pub fn queued_ns(&self) -> u64 {
        self.began_ns.saturating_sub(self.sample.ready_ns)
    }

    /// Returns the time in which the task could run and did not, in the queue and afterwards, in
    /// nanoseconds.
    #[must_use]
    pub fn delayed_ns(&self) -> u64 {
        self.queued_ns().saturating_add(self.runnable_ns)
    }

    pub(crate) fn copy(&self, spans: Spans) -> Self {
        let spans = if spans == Spans::Kept { self.spans.clone() } else { Vec::new() };
        Self { thread: self.thread.clone(), spans, ..*self }
    }

    /// Returns the time that the task spent in `part`, in nanoseconds.
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
    /// Returns whether it is long enough to be kept.
    pub(crate) fn is_long(&self) -> bool {
        self.to_ns.saturating_sub(self.from_ns) > LONG_NS
    }
}

//! The account of a timed task: the part of its time that it is in, and the totals of all parts.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::cycles::Parts;
use super::timed::{Part, Span, Spans, Timed};
use crate::unpoisoned::lock;

/// The times of one task. Written by its thread, read by any thread.
pub(crate) struct Account(Mutex<Open>);

struct Open {
    timed: Timed,
    part: Part,
    since_ns: u64,
    /// Whether another task causes that.
    is_hogged: bool,
    spans: VecDeque<Span>,
}

/// Number of spans of a task that are kept.
const SPANS: usize = 64;

impl Account {
    /// Opens the account of a task that begins.
    pub(crate) fn open(timed: Timed) -> Self {
        let (part, since_ns, spans) = (Part::Running, timed.began_ns, VecDeque::new());
        Self(Mutex::new(Open { timed, part, since_ns, is_hogged: false, spans }))
    }

    /// Records that the task is a fiber.
    pub(crate) fn is_fiber(&self) {
        lock(&self.0).timed.is_fiber = true;
    }

    /// Returns the beginning of the part that the task is in, in nanoseconds.
    pub(crate) fn since_ns(&self) -> u64 {
        lock(&self.0).since_ns
    }

    /// Records that the task is suspended, because it waits or yields. `parts` has the times of
    /// untimed suspensions since it continued.
    pub(crate) fn stops(&self, now_ns: u64, waits: bool, parts: Parts) {
        let mut open = lock(&self.0);
        let passed_ns = now_ns.saturating_sub(open.since_ns);
        let runnable_ns = parts.runnable_ns.min(passed_ns);
        let waiting_ns = parts.waiting_ns.min(passed_ns - runnable_ns);
        open.timed.running_ns += passed_ns - runnable_ns - waiting_ns;
        open.timed.waiting_ns += waiting_ns;
        open.timed.runnable_ns += runnable_ns;
        open.timed.late_ns += parts.hogged_ns.min(runnable_ns);
        open.part = if waits { Part::Waiting } else { Part::Runnable };
        open.since_ns = now_ns;
    }

    /// Records that the task may continue from `at_ns` on. Others have occupied its thread for
    /// `hogged_ns` of the time.
    pub(crate) fn wakes(&self, at_ns: u64, hogged_ns: u64) {
        let mut open = lock(&self.0);
        let at_ns = at_ns.max(open.since_ns);
        open.passes(at_ns);
        (open.part, open.since_ns, open.is_hogged) = (Part::Runnable, at_ns, hogged_ns > 0);
        open.timed.late_ns += hogged_ns;
    }

    /// Records that the task continues, with `hogged_ns` as in `wakes`. Returns how long it was
    /// runnable before, in nanoseconds.
    pub(crate) fn goes_on(&self, now_ns: u64, hogged_ns: u64) -> u64 {
        let mut open = lock(&self.0);
        let runnable_ns = now_ns.saturating_sub(open.since_ns);
        let hogged_ns = hogged_ns.min(runnable_ns);
        open.is_hogged |= hogged_ns > 0;
        open.passes(now_ns);
        open.timed.late_ns += hogged_ns;
        (open.part, open.since_ns, open.is_hogged) = (Part::Running, now_ns, false);
        runnable_ns
    }

    /// Returns the record of the task as it is at `now_ns`.
    pub(crate) fn read(&self, now_ns: u64, spans: Spans) -> Timed {
        let open = lock(&self.0);
        let kept = if spans == Spans::Kept { open.spans.clone() } else { VecDeque::new() };
        let mut copy = Open { timed: open.timed.copy(spans), spans: kept, ..*open };
        drop(open);
        copy.passes(now_ns.max(copy.since_ns));
        let until_ns = now_ns.max(copy.since_ns);
        Timed { until_ns, spans: copy.spans.into(), ..copy.timed }
    }
}

impl Open {
    /// Ends the part that the task is in.
    fn passes(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.since_ns);
        match self.part {
            Part::Running => self.timed.running_ns += passed_ns,
            Part::Waiting => self.timed.waiting_ns += passed_ns,
            Part::Queued | Part::Runnable | Part::Hogged => self.timed.runnable_ns += passed_ns,
        }
        let part = if self.is_hogged { Part::Hogged } else { self.part };
        let span = Span { from_ns: self.since_ns, to_ns: now_ns, part };
        if self.part != Part::Running && span.is_long() {
            if self.spans.len() == SPANS {
                self.spans.pop_front();
            }
            self.spans.push_back(span);
        }
    }
}

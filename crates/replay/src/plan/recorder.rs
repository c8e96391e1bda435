//! The part of the program's time that recording took. It is in the spans between events, and is
//! not work of the program.
//!
//! The recorder reads an event's timestamp in the middle of its work on that event. So a span
//! contains the end of the work on one event and the beginning of the work on the next: for the
//! hold of a lock, the work after the timestamp of taking it, and the work before that of releasing
//! it. If the recorder called the kernel, the trace has the time of the call. All of that is
//! subtracted from the thread's work.
//!
//! The figures are means; single events take more or less. So a span may be shorter than the time
//! to subtract: then it becomes 0, and the rest is subtracted from the next spans. Without that,
//! errors in short spans would not cancel out.

use antiphon_trace::{Cost, What};

/// Number of known codes of events; a file may have others.
const CODES: usize = 32;

/// Cost of recording an event, by code: before its timestamp and after it, in picoseconds.
pub(super) struct Recorder([(u64, u64); CODES]);

impl Recorder {
    pub(super) fn new(costs: &[Cost]) -> Self {
        let mut all = [(0, 0); CODES];
        for cost in costs {
            if let Some(known) = all.get_mut(usize::from(cost.code)) {
                *known = (cost.before_ps, cost.after_ps);
            }
        }
        Self(all)
    }

    fn of(&self, what: What) -> (u64, u64) {
        self.0.get(usize::from(what.code())).copied().unwrap_or_default()
    }

    /// The part of the span from one event to the next that recording took, in picoseconds.
    pub(super) fn between(&self, one: Option<What>, next: What) -> u64 {
        one.map_or(0, |one| self.of(one).1).saturating_add(self.of(next).0)
    }
}

//! The part of the program's time that recording took. It lies in the spans between events, and is
//! not work of the program.
//!
//! The recorder reads an event's timestamp in the middle of its work on that event. So a span
//! contains the end of the work on one event and the beginning of the work on the next: for the
//! hold of a lock, the work after the timestamp of taking it, and the work before that of releasing
//! it. If the recorder called the kernel, the trace says for how long. All of that is left out of
//! what the thread computes.
//!
//! The figures are means, and single events take more and less. So a span may be shorter than what
//! is to be left out: nothing is left of it then, and the rest is subtracted from the next ones.
//! Without that, errors in short spans would not cancel out.

use antiphon_trace::{Cost, What};

/// Codes of events that are known; those of a file may be others.
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

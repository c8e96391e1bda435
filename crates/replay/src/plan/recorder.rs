//! What recording took of the program's time: it is in the spans between events, and no work.
//!
//! An event's time is taken in the middle of what the recorder does for it, so a span has the end
//! of one event's and the beginning of the next one's: that of a lock's hold is what taking it took
//! after its time, and what releasing it took before. Where the recorder asked the kernel, the
//! trace says for how long. All of that is left out of what the thread computes.
//!
//! The figures are means, and single events take more and less. So a span may be shorter than what
//! is to be left out: nothing is left of it then, and the rest is left out of the next ones. Else
//! what is left of short ones that took less would never be made up for by those that took more.

use antiphon_trace::{Cost, What};

/// Codes of events that are known; those of a file may be others.
const CODES: usize = 32;

/// What events take, by code: before their time and after it, in picoseconds.
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

    /// What it took of the span from one event to the next, in picoseconds.
    pub(super) fn between(&self, one: Option<What>, next: What) -> u64 {
        one.map_or(0, |one| self.of(one).1).saturating_add(self.of(next).0)
    }
}

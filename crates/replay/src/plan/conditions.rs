//! Matches each wait on a condition variable with the notification that ended it.

use std::collections::HashMap;

use antiphon_trace::{Trace, What};

/// The position of an event: its thread, and its index there.
pub(super) type Place = (usize, usize);

/// A notification of a condition variable that can still wake a thread.
struct Notified {
    at: Place,
    at_ns: u64,
    all: bool,
}

/// The state of a condition variable at some event.
#[derive(Default)]
struct Condition {
    /// The threads that sleep on it, and when each began.
    asleep: HashMap<usize, u64>,
    /// Notifications, in the order of time.
    notified: Vec<Notified>,
}

impl Condition {
    fn is_notified(&mut self, notified: Notified) {
        if self.asleep.is_empty() {
            // No thread sleeps that this or an earlier notification could wake.
            self.notified.clear();
        } else {
            self.notified.push(notified);
        }
    }

    /// A thread was woken: returns the notification that did it.
    fn waker(&mut self, thread: usize) -> Option<Place> {
        let since_ns = self.asleep.remove(&thread)?;
        let latest = self.notified.len().checked_sub(1)?;
        let Notified { at, at_ns, all } = self.notified[latest];
        if at_ns < since_ns {
            return None;
        }
        if !all {
            self.notified.pop();
        }
        Some(at)
    }
}

/// Maps the `Wakes` of each notified wait to its `Notifies`: the latest one while the thread slept
/// that had not woken another. A notification of all waiters is never used up.
pub(super) fn wakers(trace: &Trace) -> HashMap<Place, Place> {
    let mut events = Vec::new();
    for (thread, story) in trace.threads.iter().enumerate() {
        for (index, event) in story.events.iter().enumerate() {
            match event.what {
                // Order of simultaneous events: a thread sleeps before it is notified, and is
                // notified before it wakes.
                What::Sleeps { condition, .. } => {
                    events.push((event.at_ns, 0, (thread, index), condition));
                }
                What::Notifies { condition, .. } => {
                    events.push((event.at_ns, 1, (thread, index), condition));
                }
                What::Wakes { condition, .. } => {
                    events.push((event.at_ns, 2, (thread, index), condition));
                }
                _ => {}
            }
        }
    }
    events.sort_unstable();
    let mut conditions: HashMap<u32, Condition> = HashMap::new();
    let mut wakers = HashMap::new();
    for (at_ns, _, at, on) in events {
        let condition = conditions.entry(on).or_default();
        match trace.threads[at.0].events[at.1].what {
            What::Sleeps { .. } => _ = condition.asleep.insert(at.0, at_ns),
            What::Notifies { all, .. } => condition.is_notified(Notified { at, at_ns, all }),
            What::Wakes { notified: false, .. } => _ = condition.asleep.remove(&at.0),
            _ => {
                if let Some(waker) = condition.waker(at.0) {
                    wakers.insert(at, waker);
                }
            }
        }
    }
    wakers
}

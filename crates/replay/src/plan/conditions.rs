//! Which thread woke which: the waits on condition variables, each with the notification that ended
//! it.

use std::collections::HashMap;

use antiphon_trace::{Trace, What};

/// An event: its thread, and its place there.
pub(super) type Place = (usize, usize);

/// A notification of a condition variable that can still wake a thread.
struct Notified {
    at: Place,
    at_ns: u64,
    all: bool,
}

/// A condition variable, as far as the events have been read.
#[derive(Default)]
struct Condition {
    /// The threads that sleep on it, and since when.
    asleep: HashMap<usize, u64>,
    /// In the order of time.
    notified: Vec<Notified>,
}

impl Condition {
    fn is_notified(&mut self, notified: Notified) {
        if self.asleep.is_empty() {
            // No thread is there to be woken, by this or an earlier one.
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

/// For each wait that was notified, by its `Wakes`, the `Notifies` that did it: the latest that
/// came while the thread slept and had not woken another. One that wakes all is never spent.
pub(super) fn wakers(trace: &Trace) -> HashMap<Place, Place> {
    let mut events = Vec::new();
    for (thread, story) in trace.threads.iter().enumerate() {
        for (index, event) in story.events.iter().enumerate() {
            match event.what {
                // At the same time: it is asleep before it is notified, and notified before it
                // wakes.
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

//! Cuts a part out of a long recording.

use antiphon_trace::{Event, Trace, What};

/// The part in the middle of a trace that has `takes` acquisitions; `None` if the trace has no
/// more. Waits in progress at its beginning begin with it.
#[must_use]
pub fn middle(trace: &Trace, takes: usize) -> Option<Trace> {
    let events = trace.threads.iter().flat_map(|thread| &thread.events);
    let is_take = |event: &&Event| matches!(event.what, What::Takes { .. });
    let mut at_ns: Vec<u64> = events.filter(is_take).map(|event| event.at_ns).collect();
    if at_ns.len() <= takes || takes == 0 {
        return None;
    }
    at_ns.sort_unstable();
    let first = (at_ns.len() - takes) / 2;
    let (from_ns, to_ns) = (at_ns[first], at_ns[first + takes - 1]);
    let mut part = trace.clone();
    for thread in &mut part.threads {
        let before = thread.events.partition_point(|event| event.at_ns < from_ns);
        let end = thread.events.partition_point(|event| event.at_ns <= to_ns);
        let waits = thread.events[..before].last().filter(|event| begins_a_wait(event.what));
        let waits = waits.map(|event| Event { at_ns: from_ns, what: event.what });
        let inside = thread.events[before..end].iter().copied();
        thread.events = waits.into_iter().chain(inside).collect();
    }
    Some(part)
}

fn begins_a_wait(what: What) -> bool {
    matches!(what, What::Waits { .. } | What::Sleeps { .. } | What::Joins { .. })
}

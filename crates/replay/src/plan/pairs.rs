//! Matches the acquisitions and releases of locks in a trace.
//!
//! A release belongs to the thread's latest acquisition of that lock that has no release yet. All
//! others are damaged (events that found no room, a mutex that another thread unlocked): a section
//! without an end would block all other threads for the rest of the replay, so it is left out.

use std::collections::HashMap;

use antiphon_trace::{Event, LockKind, Trace, What};

use super::Cleaned;

/// Returns for each event of a thread whether it takes or releases a lock in the replay. Nested
/// acquisitions of one lock count as one.
pub(super) fn pairs(trace: &Trace, events: &[Event], cleaned: &mut Cleaned) -> Vec<bool> {
    let mut open: HashMap<u32, Vec<usize>> = HashMap::new();
    let mut end_of: HashMap<usize, usize> = HashMap::new();
    for (at, event) in events.iter().enumerate() {
        match event.what {
            What::Takes { lock, .. } if is_one(trace, lock) => {
                open.entry(lock).or_default().push(at);
            }
            What::Takes { .. } => cleaned.unnamed += 1,
            What::Releases { lock } if is_one(trace, lock) => {
                match open.get_mut(&lock).and_then(Vec::pop) {
                    Some(begin) => _ = end_of.insert(begin, at),
                    None => cleaned.released_untaken += 1,
                }
            }
            _ => {}
        }
    }
    cleaned.taken_for_ever += open.values().map(|left| left.len() as u64).sum::<u64>();
    outermost(events, &end_of)
}

/// Leaves out the sections that are inside another section of the same lock.
fn outermost(events: &[Event], end_of: &HashMap<usize, usize>) -> Vec<bool> {
    let mut kept = vec![false; events.len()];
    let mut busy_until: HashMap<u32, usize> = HashMap::new();
    for (at, event) in events.iter().enumerate() {
        let What::Takes { lock, .. } = event.what else { continue };
        let Some(&end) = end_of.get(&at) else { continue };
        let until = busy_until.entry(lock).or_default();
        if end > *until {
            *until = end;
            (kept[at], kept[end]) = (true, true);
        }
    }
    kept
}

/// Returns whether it is a single lock, and not the entry for all locks without room in the
/// recorder's table.
fn is_one(trace: &Trace, lock: u32) -> bool {
    let kind = trace.locks.get(lock as usize).map(|lock| lock.kind);
    matches!(kind, Some(LockKind::Mutex | LockKind::Spin | LockKind::RwLock))
}

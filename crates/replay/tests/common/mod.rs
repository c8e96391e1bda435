//! Traces written by hand.

use antiphon_trace::{Event, Lock, LockKind, Site, Thread, Trace, What};

/// A thread of process 0 that began in that function, with events at those times.
pub fn thread(role: u32, events: &[(u64, What)]) -> Thread {
    let events = events.iter().map(|&(at_ns, what)| Event { at_ns, what }).collect();
    Thread { role, events, ..Thread::default() }
}

/// Two mutexes, a readers-writer lock and a condition variable, 0 to 3; ten call sites.
pub fn trace(threads: Vec<Thread>) -> Trace {
    let kinds = [LockKind::Mutex, LockKind::Mutex, LockKind::RwLock, LockKind::Condition];
    let lock = |kind| Lock { kind, address: 0, process: 0 };
    Trace {
        locks: kinds.map(lock).to_vec(),
        sites: vec![Site::default(); 10],
        threads,
        ..Trace::default()
    }
}

pub fn takes(lock: u32) -> What {
    What::Takes { lock, site: lock, shared: false, tried: false }
}

pub fn releases(lock: u32) -> What {
    What::Releases { lock }
}

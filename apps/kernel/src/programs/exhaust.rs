//! `exhaust`: creates threads until the memory for their stacks is used up. A failed creation must
//! take nothing, and threads that have ended must be reused.
//!
//! | part | counts |
//! |---|---|
//! | `refused` | creations after the first failure, which fail too |
//! | `taken` | bytes and numbers of threads that the failures have used up: must be 0 |
//! | `again` | threads that can be created when the first ones have ended: as many as before |

use alloc::sync::Arc;
use alloc::vec::Vec;

use antiphon_metal::Metal;
use antiphon_metal::kernel::thread::{self, JoinHandle};
use antiphon_metal::kernel::{cpu, heap};
use antiphon_metal::x86::power::Outcome;
use antiphon_sync::wait::Event;

use crate::programs::parts::Parts;

/// More than can be created with the memory that an emulator usually has.
const MOST: usize = 1 << 16;
const FAILURES: u64 = 20;

pub fn run() -> Outcome {
    let mut parts = Parts::NONE;
    let first = Crowd::gather();
    let (mut refused, mut taken) = (0, 0);
    for _ in 0..FAILURES {
        let before = (left(), thread::made());
        refused += u64::from(thread::spawn(|| ()).is_err());
        let after = (left(), thread::made());
        taken += before.0.abs_diff(after.0) + u64::from(before.1.abs_diff(after.1));
    }
    parts.add("refused", (refused, FAILURES));
    parts.add("taken", (taken + first.taken, 0));
    let count = first.end();
    let again = Crowd::gather();
    parts.add("again", (again.end(), count));
    parts.outcome()
}

/// Returns the memory of all nodes that is in no use, in bytes.
fn left() -> u64 {
    (0..cpu::nodes() as u16).map(|node| heap::memory(node).1).sum()
}

/// Threads that wait.
struct Crowd {
    handles: Vec<JoinHandle<()>>,
    go: Arc<Event<Metal>>,
    /// What the failed creation has used up.
    taken: u64,
}

impl Crowd {
    /// Creates threads until that fails.
    fn gather() -> Self {
        let go = Arc::new(Event::NEW);
        let mut handles = Vec::with_capacity(MOST);
        loop {
            let event: Arc<Event<Metal>> = go.clone();
            // Each thread lets the next one go.
            let body = move || {
                event.wait();
                event.set();
            };
            let before = (left(), thread::made());
            match thread::spawn(body) {
                Ok(handle) => handles.push(handle),
                Err(_) => {
                    let taken = before.0.abs_diff(left());
                    let taken = taken + u64::from(before.1.abs_diff(thread::made()));
                    return Self { handles, go, taken };
                }
            }
        }
    }

    /// Lets all threads end; returns their number.
    fn end(self) -> u64 {
        self.go.set();
        let count = self.handles.len() as u64;
        self.handles.into_iter().for_each(JoinHandle::join);
        count
    }
}

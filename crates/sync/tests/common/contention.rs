//! Simulated threads that take one lock repeatedly.

use antiphon_sim::{Machine, Outcome};
use antiphon_sync::lock::Lock;

pub use antiphon_sim::Pace;

/// `threads` threads take one lock repeatedly; each critical section writes two lines and is
/// checked to be alone.
pub fn contend<L: Lock>(machine: Machine, threads: usize, pace: Pace, limit_ns: u64) -> Outcome {
    // SAFETY: the lock that is released was acquired.
    let unlock = |lock: &L| unsafe { lock.unlock() };
    antiphon_sim::contend(machine, threads, pace, limit_ns, L::NEW, (L::lock, unlock))
        .unwrap_or_else(|stuck| panic!("{stuck}"))
}

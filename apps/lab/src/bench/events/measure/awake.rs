//! Two threads that notify each other in turn.

use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use antiphon_report::failure::Failure;

use super::thread::{Part, Trials, Usage, between, stamp};
use super::{Figures, Order};
use crate::bench::events::subjects::Mechanism;
use crate::pinned::{self, Task};

/// Time before anything is measured: a CPU takes a while to reach its frequency.
const WARM_UP: Duration = Duration::from_millis(10);
/// A batch of round trips lasts about this long, or is one round trip.
const BATCH_NS: f64 = 10_000.0;
const MOST: f64 = 4_096.0;
/// Round trips between two readings of the clock: on a shared CPU, each may take time slices.
const LOOK: usize = 64;

/// Measures round trips; a latency is half of one.
pub fn measure<M: Mechanism>(order: &Order, places: &[usize]) -> Result<Figures, String> {
    let (there, back, stop) = (M::new()?, M::new()?, AtomicBool::new(false));
    let ready = Barrier::new(2);
    let first: Task<'_, Part> = Box::new(|| {
        back.enter();
        ready.wait();
        let usage = Usage::now();
        let mut events = 0;
        let mut times = |batch: usize, end: Instant| {
            let begin = stamp();
            let mut turns = 0;
            while turns < batch && (turns % LOOK > 0 || turns == 0 || Instant::now() < end) {
                there.signal();
                back.wait();
                turns += 1;
            }
            let spent = between(order.ticks, begin, stamp());
            events += turns as u64;
            spent / (2 * turns) as f64
        };
        let warm = Instant::now() + WARM_UP;
        let mut half = times(1, warm);
        while Instant::now() < warm {
            half = times(1, warm).min(half);
        }
        let batch = (BATCH_NS / (2.0 * half.max(1.0))).clamp(1.0, MOST) as usize;
        let trials = Trials::of(order);
        let end = trials.end;
        let counted = trials.map(|counts| (counts, times(batch, end))).filter(|one| one.0);
        let latency_ns = counted.map(|(_, half)| half).collect();
        let part = usage.part(events);
        // Relaxed: the signal orders it.
        stop.store(true, Relaxed);
        there.signal();
        Part { latency_ns, batch, ..part }
    });
    let second: Task<'_, Part> = Box::new(|| {
        there.enter();
        ready.wait();
        let (usage, mut events) = (Usage::now(), 0);
        loop {
            there.wait();
            if stop.load(Relaxed) {
                return usage.part(events);
            }
            back.signal();
            events += 1;
        }
    });
    let parts = pinned::all(vec![(places[0], first), (places[1], second)]);
    parts.map(Figures::of).map_err(Failure::into_message)
}

//! The cost of a notification when no thread waits.

use std::hint::black_box;

use antiphon_report::failure::Failure;

use super::thread::{Part, Trials, between, stamp};
use super::{Figures, Order};
use crate::bench::events::subjects::Mechanism;
use crate::pinned::{self, Task};

/// Signals that are timed together. Each is of its own mechanism, because a second signal to the
/// same one may take another path.
const BATCH: usize = 64;

/// Measures the sender's side.
pub fn measure<M: Mechanism>(order: &Order, places: &[usize]) -> Result<Figures, String> {
    let all = (0..BATCH).map(|_| M::new()).collect::<Result<Vec<_>, _>>()?;
    let task: Task<'_, Part> = Box::new(|| {
        all.iter().for_each(M::enter);
        let time = || {
            let begin = stamp();
            for one in &all {
                black_box(one).signal();
            }
            let spent = between(order.ticks, begin, stamp());
            // Notified before, so it returns at once.
            all.iter().for_each(M::wait);
            spent / BATCH as f64
        };
        let counted = Trials::of(order).map(|counts| (counts, time())).filter(|one| one.0);
        let sender_ns = counted.map(|(_, ns)| ns).collect();
        Part { sender_ns, batch: BATCH, ..Part::default() }
    });
    let parts = pinned::all(vec![(places[0], task)]).map_err(Failure::into_message)?;
    let mut figures = Figures::of(parts);
    // No other thread takes part, so the sender's time is all CPU time.
    let count = figures.sender_ns.len().max(1) as f64;
    figures.cpu_ns_per_event = Some(figures.sender_ns.iter().sum::<f64>() / count);
    Ok(figures)
}

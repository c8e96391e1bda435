//! The cost of a lock that no other thread wants.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use antiphon_report::stats::median;

use super::{Figures, Order, Outcome};

/// Pairs of lock and unlock between two readings of the clock.
const BATCH: u32 = 10_000;

/// Measures while a second thread is alive and asleep: glibc takes its expensive path from the
/// first thread that a process makes.
pub fn beside_a_thread(order: &Order, pair: impl Fn()) -> Outcome {
    let (stop, stopped) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // Sleeps until the sender is dropped.
        scope.spawn(move || stopped.recv());
        let outcome = alone(order, pair);
        drop(stop);
        outcome
    })
}

/// Measures in a process that never made a thread, if the caller has made none.
pub fn alone(order: &Order, pair: impl Fn()) -> Outcome {
    let end = Instant::now() + Duration::from_secs_f64(order.seconds);
    let mut batches = Vec::new();
    loop {
        let begin = Instant::now();
        for _ in 0..BATCH {
            pair();
        }
        let now = Instant::now();
        batches.push((now - begin).as_nanos() as f64 / f64::from(BATCH));
        if now >= end {
            break;
        }
    }
    let ns_per_op = median(batches).unwrap_or(f64::NAN);
    Outcome::Figures(Figures::Uncontended { ns_per_op })
}

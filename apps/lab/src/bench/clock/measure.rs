//! One repetition: threads on CPUs take stamps for a given time.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use antiphon_clock::Clock;
use antiphon_linux::Linux;
use antiphon_report::failure::Failure;

use crate::bench::rounds::{Outcome, Repeated};
use crate::clocks::{Repeat, Site, Subject};
use crate::pinned::{on_each, usable};

/// Number of operations between two readings of the time.
const BATCH: u64 = 256;

/// The figures of one repetition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Time that a thread takes for an operation, in nanoseconds.
    pub ns_per_op: f64,
    /// Aborts per thousand operations.
    pub aborts_per_kop: f64,
}

/// The work of one thread.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    ns: f64,
    operations: u64,
    aborts: u64,
}

impl Figures {
    fn of(threads: &[Done]) -> Self {
        let operations: u64 = threads.iter().map(|done| done.operations).sum();
        let aborts: u64 = threads.iter().map(|done| done.aborts).sum();
        let ns: f64 = threads.iter().map(|done| done.ns).sum();
        let each = |all: f64| all / operations as f64;
        Self { ns_per_op: each(ns), aborts_per_kop: each(aborts as f64 * 1e3) }
    }
}

/// Measures for `seconds`. Threads are assigned in turn to the CPUs that this process may use.
///
/// # Errors
///
/// If a CPU can't be used.
pub fn repetition(
    clock: &Clock,
    subject: Subject,
    threads: usize,
    seconds: f64,
) -> Repeated<Figures> {
    let site = Site::<Linux>::new(threads, clock.ordo());
    let cpus: Vec<_> = usable().into_iter().cycle().take(threads).collect();
    let start = Barrier::new(threads);
    let done = on_each(&cpus, |thread| {
        start.wait();
        site.run(subject, thread, For(Duration::from_secs_f64(seconds)))
    });
    let done = done.map_err(Failure::into_message)?;
    Ok(match site.is_sound() {
        true => Outcome::Figures(Figures::of(&done)),
        false => Outcome::Violation("it has lost a transaction".to_owned()),
    })
}

/// Repeats work for a given time.
struct For(Duration);

impl Repeat for For {
    type Done = Done;

    fn repeat(self, mut operation: impl FnMut() -> u32) -> Done {
        let begun = Instant::now();
        let mut done = Done::default();
        loop {
            for _ in 0..BATCH {
                done.aborts += u64::from(operation());
            }
            done.operations += BATCH;
            let passed = begun.elapsed();
            if passed >= self.0 {
                return Done { ns: passed.as_nanos() as f64, ..done };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_takes_what_all_threads_take_for_all() {
        let threads = [
            Done { ns: 1_000.0, operations: 10, aborts: 1 },
            Done { ns: 1_000.0, operations: 30, aborts: 0 },
        ];
        assert_eq!(Figures::of(&threads), Figures { ns_per_op: 50.0, aborts_per_kop: 25.0 });
    }
}

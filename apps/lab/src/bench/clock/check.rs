//! Checks that stamps keep their order across CPUs: threads pass them on through one cache line,
//! and a stamp that a thread has read must not be certainly later than the next one that it takes.

use std::process::ExitCode;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use antiphon_clock::{Clock, Order, Timestamp};
use antiphon_report::failure::Failure;
use antiphon_report::table::count;
use antiphon_report::{report, say};
use serde_json::json;

use super::{described, heading};
use crate::pinned::{on_each, usable};

/// Number of stamps between two readings of the time.
const BATCH: u64 = 1024;

/// What a thread has observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Stamps received from other threads.
    passed: u64,
    /// Received stamps that were certainly earlier, as they should be.
    certain: u64,
    /// Received stamps that were certainly later, which must not happen.
    violations: u64,
    /// The furthest that a received stamp was ahead of the next own stamp, in ticks.
    ahead: u64,
}

impl Seen {
    fn add(&mut self, order: Order, ahead: u64) {
        self.passed += 1;
        self.certain += u64::from(order == Order::Less);
        self.violations += u64::from(order == Order::Greater);
        self.ahead = self.ahead.max(ahead);
    }

    fn with(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            certain: self.certain + other.certain,
            violations: self.violations + other.violations,
            ahead: self.ahead.max(other.ahead),
        }
    }
}

/// A word on cache lines that hold nothing else.
#[repr(align(128))]
struct Line(AtomicU64);

/// Checks for `seconds` on all CPUs, and prints the result.
///
/// # Errors
///
/// If there is only one CPU, or a CPU can't be used; if no stamp was passed on, or a stamp was in
/// the wrong order.
pub fn run(clock: &Clock, seconds: f64, as_json: bool) -> Result<ExitCode, Failure> {
    let cpus = usable();
    if cpus.len() < 2 {
        return Err(Failure::missing(
            "--check passes stamps from CPU to CPU, and this process may use one only",
        ));
    }
    let line = Line(AtomicU64::new(0));
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let seen = on_each(&cpus, |_| pass_on(clock, &line, end))?;
    let seen = seen.into_iter().fold(Seen::default(), Seen::with);
    let Seen { passed, certain, violations, ahead } = seen;
    let uncertain = clock.ordo().uncertainty();
    if as_json {
        report::print(json!({
            "clock": described(clock),
            "check": {
                "seconds": seconds, "cpus": cpus.len(), "stamps": passed, "certain": certain,
                "violations": violations, "ahead_ticks": ahead, "uncertainty_ticks": uncertain,
            },
        }))?;
    } else {
        say(&format!(
            "{}\n{} stamps passed on between {} CPUs: {} certainly earlier, {} certainly later, \
             which would be wrong;\nthe furthest was {ahead} ticks ahead, of {uncertain} that are \
             uncertain\n",
            heading(clock),
            count(passed),
            cpus.len(),
            count(certain),
            count(violations),
        ))?;
    }
    match violations {
        0 if passed == 0 => Err(Failure::measured(
            "no stamp was passed on, so nothing was checked: give it more time, or a machine that \
             is less busy",
        )),
        0 => {
            clock.verify().map_err(|changed| Failure::measured(changed.to_string()))?;
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(Failure::measured(format!(
            "{violations} of {passed} stamps were certainly later than one that was taken after \
             them: the counters of this machine are not what they are believed to be"
        ))),
    }
}

fn pass_on(clock: &Clock, line: &Line, end: Instant) -> Seen {
    let mut seen = Seen::default();
    let mut mine = 0;
    while Instant::now() < end {
        for _ in 0..BATCH {
            // Acquire and Release pair with each other: a stamp taken after reading another is
            // ordered after it.
            let theirs = line.0.load(Acquire);
            let before = mine;
            mine = clock.now().to_bits();
            if theirs != before {
                let [theirs, mine] = [theirs, mine].map(Timestamp::from_bits);
                let ahead = theirs.to_bits().saturating_sub(mine.to_bits());
                seen.add(clock.cmp(theirs, mine), ahead);
            }
            line.0.store(mine, Release);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_from_the_future_is_counted() {
        let mut seen = Seen::default();
        seen.add(Order::Less, 0);
        seen.add(Order::Uncertain, 7);
        let mut other = Seen::default();
        other.add(Order::Greater, 900);
        let all = Seen { passed: 3, certain: 1, violations: 1, ahead: 900 };
        assert_eq!(seen.with(other), all);
    }
}

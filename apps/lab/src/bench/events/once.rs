//! One repetition of one mechanism, for reports of other verbs: a receiver that sleeps, or several
//! at once.

use super::cases::{Case, Cell, GAP_US};
use super::measure::{Figures, Order, Outcome};
use super::targets;
use crate::bench::neighbours::Load;
use crate::bench::repeat::repeat;
use crate::ticks::Ticks;

/// Greatest time that the trials may take, in seconds.
const SECONDS: f64 = 5.0;

/// Measures how long it takes from `subject`'s notification until a sleeping receiver runs; with
/// `waiters`, until the last of several does. No other load is started.
///
/// # Errors
///
/// One line: the machine lacks the mechanism or a second CPU, or the repetition has failed.
pub fn once(subject: &str, waiters: Option<usize>, trials: usize) -> Result<Figures, String> {
    let case = if waiters.is_some() { Case::Broadcast } else { Case::Parked };
    let target = if waiters.is_some() { None } else { targets(None).ok().and_then(first) };
    let waiters = waiters.unwrap_or(1);
    let cell = Cell { load: Load::Idle, case, gap_us: GAP_US, waiters, target };
    let ticks = Ticks::calibrate();
    let order = Order { subject: subject.to_owned(), cell, trials, seconds: SECONDS, ticks };
    match repeat(&crate::bench::Order::Event(order), SECONDS)? {
        Outcome::Figures(figures) => Ok(figures),
        Outcome::Missing(reason) | Outcome::Violation(reason) => Err(reason),
    }
}

fn first(cpus: Vec<usize>) -> Option<usize> {
    cpus.first().copied()
}

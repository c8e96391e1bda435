//! One repetition, in a process of its own.
//!
//! ```text
//!   sender    ── waits until the receiver sleeps ── gap ── t0 ── signal ── t2 ──────── sees t1
//!   receiver  ── wait: sleeps ─────────────────────────────────────── returns ── t1
//! ```
//!
//! The latency of an event is t1 - t0, and its cost for the sender t2 - t0, by the time-stamp
//! counters of their CPUs; the case `clock` measures their offset. Where both threads are awake
//! they notify each other in turn, and a latency is half of a round trip, by one counter; round
//! trips are timed in batches, so that reading the counter does not count. The threads are pinned:
//! a receiver to the target, the sender to the first other CPU that may be used; several receivers
//! to all CPUs in turn.
//!
//! A lost wake-up ends the repetition by its time limit, which is enforced from outside.

mod alone;
mod awake;
mod machine;
mod many;
mod parked;
mod sleeper;
mod thread;

use serde::{Deserialize, Serialize};

use super::cases::{Case, Cell};
use super::subjects::{Broadcast, ManyVisitor, Mechanism, OneVisitor, many as for_many, one};
use crate::bench::rounds;
use crate::pinned;
use crate::ticks::Ticks;
use thread::Part;

/// The order for one repetition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Name of the mechanism.
    pub subject: String,
    /// The case and its conditions.
    pub cell: Cell,
    /// Number of trials that count, unless the time is up before.
    pub trials: usize,
    /// Time limit for all trials, in seconds.
    pub seconds: f64,
    /// The rate of the counter that times them.
    pub ticks: Ticks,
}

/// The figures of a repetition. Times are in nanoseconds, one for each trial.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Time from before the notification to the return of the (last) receiver.
    pub latency_ns: Vec<f64>,
    /// The cost of an event for the sender.
    pub sender_ns: Vec<f64>,
    /// Standard deviation of the arrivals of a broadcast.
    pub sigma_ns: Vec<f64>,
    /// CPU time per event: all of the receivers', and the sender's during the notification.
    pub cpu_ns_per_event: Option<f64>,
    /// Sleeps of a receiver per event.
    pub sleeps_per_event: Option<f64>,
    /// Number of round trips or signals that were timed together.
    pub batch: usize,
    /// Offset of the second CPU's counter and its uncertainty, in nanoseconds.
    pub clock: Option<(f64, f64)>,
}

/// The result of a repetition.
pub type Outcome = rounds::Outcome<Figures>;

/// Number of trials at the beginning that do not count.
const WARM_UP: usize = 10;

/// Carries out one repetition in this process.
///
/// # Errors
///
/// One line, if there is no such mechanism.
pub fn measure(order: &Order) -> Result<Outcome, String> {
    let places = places(order.cell.target);
    let (subject, case) = (&order.subject[..], order.cell.case);
    if places.len() < 2 && !matches!(case, Case::SenderAlone | Case::Noise) {
        return Ok(Outcome::Missing(
            "sender and receiver need a CPU each, and there is one".into(),
        ));
    }
    let known = super::subjects::ours().contains(&subject)
        || super::subjects::peers().contains(&subject)
        || case.is_of_the_machine();
    let measured = match case {
        Case::Noise => Some(machine::noise(order, &places)),
        Case::Clock => Some(machine::clock(order, &places)),
        Case::Broadcast => for_many::visit(subject, Told { order, places: &places }),
        _ => one::visit(subject, Told { order, places: &places }),
    };
    let only = if case == Case::Broadcast { "one thread at a time" } else { "all at once" };
    match measured {
        Some(Ok(figures)) => Ok(Outcome::Figures(figures)),
        Some(Err(missing)) => Ok(Outcome::Missing(missing)),
        None if known => Ok(Outcome::Missing(format!("it tells {only}"))),
        None => Err(format!("no mechanism '{subject}'")),
    }
}

/// Returns the places of all CPUs that this process may use: the sender's, the target's if there is
/// one, and the others.
fn places(target: Option<usize>) -> Vec<usize> {
    let mut places = pinned::usable();
    let is_target = |&place: &usize| pinned::number(place).map(|cpu| cpu as usize) == target;
    if let Some(at) = places.iter().position(is_target)
        && places.len() > 1
    {
        let target = places.remove(at);
        places.insert(1, target);
    }
    places
}

struct Told<'a> {
    order: &'a Order,
    places: &'a [usize],
}

impl OneVisitor for Told<'_> {
    type Output = Result<Figures, String>;

    fn visit<M: Mechanism>(self) -> Self::Output {
        match self.order.cell.case {
            Case::Running => awake::measure::<M>(self.order, self.places),
            Case::SenderAlone => alone::measure::<M>(self.order, self.places),
            _ => parked::measure::<M>(self.order, self.places),
        }
    }
}

impl ManyVisitor for Told<'_> {
    type Output = Result<Figures, String>;

    fn visit<B: Broadcast>(self) -> Self::Output {
        many::measure::<B>(self.order, self.places)
    }
}

impl Figures {
    /// Combines the figures of all threads.
    fn of(parts: Vec<Part>) -> Self {
        let mut figures = Self { batch: 1, ..Self::default() };
        let (mut cpu_ns, mut sleeps, mut events) = (0.0, 0.0, 0.0);
        for part in parts {
            figures.latency_ns.extend(part.latency_ns);
            figures.sender_ns.extend(part.sender_ns);
            figures.sigma_ns.extend(part.sigma_ns);
            figures.batch = figures.batch.max(part.batch);
            cpu_ns += part.cpu_ns;
            sleeps += part.sleeps as f64;
            events += part.events as f64;
        }
        if events > 0.0 {
            figures.cpu_ns_per_event = Some(cpu_ns / events);
            figures.sleeps_per_event = Some(sleeps / events);
        }
        figures
    }
}

#[cfg(test)]
mod tests;

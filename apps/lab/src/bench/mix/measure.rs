//! One repetition, in a process of its own: a given number of conferences, or a search for the
//! most.

use antiphon::fiber;
use serde::{Deserialize, Serialize};

use super::cases::Cell;
use super::conference::{Exchange, Host, PERIOD_NS};
use super::hosts::{self, Parts, Visitor};
use crate::bench::pools::figures::Latencies;
use crate::bench::pools::tally;
use crate::bench::rounds::Outcome;
use crate::bench::usage::Usage;

/// The order for one repetition.
#[derive(Clone, Serialize, Deserialize)]
pub struct Order {
    /// The host that runs the conferences.
    pub subject: String,
    /// The conditions.
    pub cell: Cell,
    /// The seed of all random choices.
    pub seed: u64,
}

/// The figures of a repetition.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Number of conferences; in a search, the most that were sustained.
    pub conferences: f64,
    /// Share of frames that were sent too late.
    pub breaches: f64,
    /// Time from when a frame was due at the mixer to when it was sent.
    pub latency: Latencies,
    /// Frames sent per second.
    pub frames_per_s: f64,
    /// CPU time used, in CPUs.
    pub cpus: f64,
}

/// A number of conferences is sustained if fewer than this share of frames is late.
const SUSTAINED: f64 = 0.01;
/// Maximal number of conferences that are tried.
const MOST: u32 = 1 << 13;
/// Maximal number of tries.
const TRIES: f64 = 36.0;
/// The search ends when the least number that failed is within this factor of the most that was
/// sustained.
const NEAR: f64 = 1.04;

/// Carries out one repetition.
///
/// # Errors
///
/// If the subject is unknown, or can't be started.
pub fn measure(order: &Order) -> Result<Outcome<Figures>, String> {
    let Cell { conferences, search, codec, .. } = order.cell;
    if let Err(missing) = codec.prepare() {
        return Ok(Outcome::Missing(missing));
    }
    let conferences = if search { MOST } else { conferences };
    let stack_bytes = codec.stack_bytes(fiber::STACK_BYTES);
    let parts = Parts { count: order.cell.parts(conferences), stack_bytes };
    hosts::with(&order.subject, order.cell.size(), parts, Repetition(order))
}

struct Repetition<'a>(&'a Order);

impl Visitor for Repetition<'_> {
    type Output = Outcome<Figures>;

    fn visit<H: Host>(self, host: &'static H) -> Outcome<Figures> {
        let Order { cell, seed, .. } = *self.0;
        let done = if cell.search {
            most(cell.conferences, |conferences| {
                let cell = Cell { conferences, ..cell };
                let frames = Exchange::new(cell, seed, 0).frames();
                hold(host, cell, seed, (frames as f64 * SUSTAINED) as u64)
            })
        } else {
            hold(host, cell, seed, u64::MAX)
        };
        done.map_or_else(Outcome::Violation, Outcome::Figures)
    }
}

/// Holds this number of conferences; they end early after more than `most` breaches.
fn hold<H: Host>(host: &'static H, cell: Cell, seed: u64, most: u64) -> Result<Figures, String> {
    let before = Usage::now();
    // Leaked because parts refer to it; the process ends soon.
    let exchange: &'static Exchange = Box::leak(Box::new(Exchange::new(cell, seed, most)));
    let (sent, ns) = exchange.open(host);
    let used = Usage::now().since(before);
    let done = tally::take();
    for (what, seen) in [("frames sent", done.items), ("frames as they should be", done.found)] {
        if seen != sent {
            return Err(format!("{what}: {seen} for {sent}"));
        }
    }
    let late: u64 = done.steps.iter().map(|step| step.items - step.good).sum();
    let latency = done.steps.first().map(|step| Latencies::of(step, |ns| ns));
    Ok(Figures {
        conferences: cell.conferences.into(),
        // If it has ended early, a share of the frames that were planned.
        breaches: late as f64 / exchange.frames() as f64,
        latency: latency.unwrap_or_default(),
        frames_per_s: sent as f64 * 1e9 / ns as f64,
        cpus: used.cpu_ns() as f64 / ns as f64,
    })
}

/// Searches for the largest sustained number: doubles it, then bisects. A number that is not
/// sustained is tried again, because other programs may have had the CPUs for 10 ms.
fn most(
    first: u32,
    mut hold: impl FnMut(u32) -> Result<Figures, String>,
) -> Result<Figures, String> {
    let mut best = Figures { breaches: 1.0, ..Figures::default() };
    let (mut good, mut bad) = (0, MOST + 1);
    let mut next = first;
    while (1..=MOST).contains(&next) && f64::from(bad) > f64::from(good) * NEAR {
        let mut figures = hold(next)?;
        if figures.breaches >= SUSTAINED {
            figures = hold(next)?;
        }
        if figures.breaches < SUSTAINED {
            (good, best) = (next, figures);
        } else {
            bad = next;
        }
        next = match (good, bad) {
            (0, _) => bad / 2,
            (_, bad) if bad > MOST => (good * 2).min(MOST),
            _ if bad - good < 2 => break,
            _ => good.midpoint(bad),
        };
    }
    Ok(best)
}

/// Returns the time limit of a repetition, in seconds.
pub fn seconds(order: &Order) -> f64 {
    const FRAME_S: f64 = 1e-4;
    let Cell { conferences, search, legs, frames, .. } = order.cell;
    let paced = (f64::from(frames) + 5.0) * PERIOD_NS as f64 / 1e9;
    let (conferences, tries) = if search { (1024, TRIES) } else { (conferences, 1.0) };
    let busy = f64::from(conferences) * legs as f64 * f64::from(frames) * FRAME_S;
    tries * (paced + busy)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches where at most `can` are sustained; returns the number found and the number of
    /// tries.
    fn found(first: u32, can: u32) -> (u32, u32) {
        let mut tried: Vec<u32> = Vec::new();
        let found = most(first, |conferences| {
            let again = tried.iter().filter(|&&it| it == conferences).count();
            assert!(again == 0 || again == 1 && conferences > can, "{conferences} again");
            tried.push(conferences);
            let breaches = if conferences <= can { 0.0 } else { 0.5 };
            Ok(Figures { conferences: conferences.into(), breaches, ..Figures::default() })
        });
        (found.map_or(0, |figures| figures.conferences as u32), tried.len() as u32)
    }

    #[test]
    fn the_most_is_found_within_a_few_percent() {
        for first in [1, 10, 700, MOST] {
            for can in [1, 2, 3, 99, 1000, 5000, MOST - 1] {
                let (most, tries) = found(first, can);
                assert!(most <= can && f64::from(most) * NEAR + 1.0 >= f64::from(can), "{can}");
                assert!(f64::from(tries) < TRIES, "{tries}");
            }
            assert_eq!(found(first, 0).0, 0);
            assert_eq!(found(first, MOST).0, MOST);
        }
    }

    #[test]
    fn what_fails_is_told() {
        assert!(most(4, |_| Err("lost".to_owned())).is_err_and(|why| why == "lost"));
    }
}

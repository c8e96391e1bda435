//! The figures of a contended repetition.

use antiphon_report::stats::{Histogram, jain};
use serde::{Deserialize, Serialize};

use super::tally::{Had, Tally};
use crate::bench::usage::Usage;
use crate::ticks::Ticks;

/// Figures of a repetition. A quantile or a mean of nothing is absent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Contended {
    /// Critical sections, and the waits for them.
    #[serde(flatten)]
    pub all: Side,
    /// Jain's index of the threads' acquisitions.
    pub jain: Option<f64>,
    /// The mean of Jain's index over windows of 10 ms.
    pub jain_10ms: Option<f64>,
    /// Context switches, voluntary or not, per thousand acquisitions.
    pub switches_per_kop: f64,
    /// CPU time of the process per acquisition.
    pub cpu_ns_per_op: f64,
    /// Figures of the readers of a readers-writer lock, if any threads read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readers: Option<Side>,
    /// Figures of the writers of a readers-writer lock, if any threads write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writers: Option<Side>,
}

/// Figures of all threads that take a lock, or of those that take it in the same way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Side {
    /// Critical sections per second.
    pub ops_per_s: f64,
    /// How long an acquisition took.
    pub acquire_ns: Waits,
    /// Length of the wait in which a random waiting thread is at a random instant.
    pub wait_ns_at_random_instant: AtInstant,
    /// The longest acquisition that was timed.
    pub longest_wait_ns: f64,
}

/// Quantiles of the time of acquisitions, in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Waits {
    /// The median.
    pub p50: f64,
    /// One in a hundred took longer.
    pub p99: f64,
    /// One in a thousand took longer.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// Quantiles of waiting time, in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AtInstant {
    /// Half of all waiting was in waits up to this long.
    pub p50: f64,
    /// A hundredth of all waiting was in longer waits.
    pub p99: f64,
}

impl Contended {
    /// The figures of these threads in `spent` ticks, with separate figures of the threads that
    /// have held the lock in one of the ways of `apart`.
    pub fn of(tallies: &[Tally], usage: &Usage, ticks: Ticks, spent: u64, apart: &[Had]) -> Self {
        let seconds = ticks.to_ns(spent as f64) / 1e9;
        let side = |kinds: &[Had]| Side::of(tallies, kinds, ticks, seconds);
        let counted: u64 = tallies.iter().map(Tally::counted).sum();
        let ops = counted.max(1) as f64;
        Self {
            all: side(&[Had::Alone, Had::Shared]),
            jain: jain(tallies.iter().map(Tally::counted)),
            jain_10ms: jain_by_window(tallies),
            switches_per_kop: usage.switches as f64 * 1e3 / ops,
            cpu_ns_per_op: usage.cpu_ns() as f64 / ops,
            readers: apart.contains(&Had::Shared).then(|| side(&[Had::Shared])),
            writers: apart.contains(&Had::Alone).then(|| side(&[Had::Alone])),
        }
    }
}

impl Side {
    fn of(tallies: &[Tally], kinds: &[Had], ticks: Ticks, seconds: f64) -> Self {
        let mut waits = Histogram::new();
        let mut counted = 0;
        for tally in tallies {
            for &kind in kinds {
                waits.merge(tally.waits(kind));
                counted += tally.counted_as(kind);
            }
        }
        let ns = |seen: f64| ticks.to_ns(seen);
        let longest = ns(waits.max() as f64);
        Self {
            ops_per_s: counted as f64 / seconds,
            acquire_ns: Waits {
                p50: ns(waits.quantile(0.5)),
                p99: ns(waits.quantile(0.99)),
                p999: ns(waits.quantile(0.999)),
                max: longest,
            },
            wait_ns_at_random_instant: AtInstant {
                p50: ns(waits.length_biased_quantile(0.5)),
                p99: ns(waits.length_biased_quantile(0.99)),
            },
            longest_wait_ns: longest,
        }
    }
}

/// Mean of Jain's index over the windows that all threads have finished. A window in which no
/// thread got the lock has no index.
fn jain_by_window(tallies: &[Tally]) -> Option<f64> {
    let windows = tallies.iter().map(|tally| tally.windows.len()).min().unwrap_or(0);
    let indices: Vec<_> = (0..windows)
        .filter_map(|window| jain(tallies.iter().map(|tally| tally.windows[window])))
        .collect();
    (!indices.is_empty()).then(|| indices.iter().sum::<f64>() / indices.len() as f64)
}

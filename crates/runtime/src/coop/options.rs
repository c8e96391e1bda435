//! The parameters of a scheduler.

use core::fmt;

/// The parameters of a scheduler, in nanoseconds. Where the document gives a value, that is the
/// default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The time within which each ready thread has a turn (§3.2).
    pub period_ns: u64,
    /// The shortest time from the start of a turn to a preemption (§3.2).
    pub min_slice_ns: u64,
    /// How long after the end of its slice a cooperative thread is preempted and demoted
    /// (`coop_slack`, §3.2).
    pub slack_ns: u64,
    /// A thread that has had this much more CPU, for its weight, than the thread with the least is
    /// not served on time at its release (§3.2, which says "order of ms"). In memory that processes
    /// share, no thread is further ahead than [`FAR_NS`](super::FAR_NS): a threshold of that or
    /// more never applies.
    pub threshold_ns: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            period_ns: 20_000_000,
            min_slice_ns: 100_000,
            slack_ns: 1_000_000,
            threshold_ns: 20_000_000,
        }
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns as f64 / 1e6;
        write!(
            f,
            "period {} ms, minimum slice {} ms, slack {} ms, threshold {} ms",
            ms(self.period_ns),
            ms(self.min_slice_ns),
            ms(self.slack_ns),
            ms(self.threshold_ns)
        )
    }
}

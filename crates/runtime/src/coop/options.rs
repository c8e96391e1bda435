//! What a scheduler can be told.

use core::fmt;

/// The parameters of a scheduler, in nanoseconds. Where the document gives a value, that is the
/// default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// In so long each thread that is ready has a turn (§3.2).
    pub period_ns: u64,
    /// Nobody who has its turn is preempted before (§3.2).
    pub min_slice_ns: u64,
    /// So long after the end of its slice a cooperative thread is preempted, and is not one any
    /// longer (`coop_slack`, §3.2).
    pub slack_ns: u64,
    /// Who has had so much more CPU, for its weight, than who has had the least, is not waited on
    /// at its release (§3.2, which says "order of ms"). In memory that processes share nobody is
    /// further ahead than [`FAR_NS`](super::FAR_NS): from there on it is as if it had no end.
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

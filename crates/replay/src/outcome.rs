//! The result of a replay. Every figure is simulated.

use antiphon_sim::Counts;

/// The result of one replay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Played {
    /// End of the last thread, in simulated nanoseconds.
    pub end_ns: u64,
    /// Number of acquisitions.
    pub takes: u64,
    /// Number of waits for another thread, other than for a lock.
    pub awaits: u64,
    /// Total time of all threads to acquire locks, in nanoseconds.
    pub wait_ns: u64,
    /// The part of `wait_ns` at readers-writer locks.
    pub readers_writer_wait_ns: u64,
    /// Total lifetime of all threads, in nanoseconds.
    pub lived_ns: u64,
    /// Number of times that a thread continued without what it waited for, because that could not
    /// come.
    pub fallbacks: u64,
    /// Total time of these waits without success, in nanoseconds.
    pub lost_ns: u64,
    /// Times by call site, numbered as in the trace.
    pub sites: Vec<SiteTimes>,
    /// The machine's counts.
    pub counts: Counts,
    /// A hash of the simulation's steps: equal for identical replays.
    pub trace_hash: u64,
}

/// Times at a call site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteTimes {
    /// Number of acquisitions there.
    pub takes: u64,
    /// Total time of these acquisitions, in nanoseconds.
    pub wait_ns: u64,
    /// Total time that locks taken there were held, in nanoseconds.
    pub hold_ns: u64,
}

impl Played {
    /// Acquisitions per second.
    #[must_use]
    pub fn takes_per_s(&self) -> f64 {
        if self.end_ns == 0 { 0.0 } else { self.takes as f64 * 1e9 / self.end_ns as f64 }
    }

    /// The share of all threads' time that went into waiting for locks.
    #[must_use]
    pub fn wait_share(&self) -> f64 {
        if self.lived_ns == 0 { 0.0 } else { self.wait_ns as f64 / self.lived_ns as f64 }
    }

    /// The time of waits without success, as a share of the replay's length.
    #[must_use]
    pub fn lost_share(&self) -> f64 {
        if self.end_ns == 0 { 0.0 } else { self.lost_ns as f64 / self.end_ns as f64 }
    }

    /// The share of waits, for locks and for other threads, that ended with a fall-back.
    #[must_use]
    pub fn fallback_share(&self) -> f64 {
        let waits = self.takes + self.awaits;
        if waits == 0 { 0.0 } else { self.fallbacks as f64 / waits as f64 }
    }
}

//! The result of a replay. Every figure is simulated.

use antiphon_sim::Counts;

/// One replay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Played {
    /// When its last thread ended, in simulated nanoseconds.
    pub end_ns: u64,
    /// How often locks were taken.
    pub takes: u64,
    /// How often one waited for another thread, other than for a lock.
    pub awaits: u64,
    /// How long all threads together took to have the locks that they asked for.
    pub wait_ns: u64,
    /// That part of it that was spent at readers-writer locks.
    pub readers_writer_wait_ns: u64,
    /// How long all threads together lived.
    pub lived_ns: u64,
    /// How often a thread continued without what it waited for, because that could not come.
    pub fallbacks: u64,
    /// How long all threads together waited in vain before they continued.
    pub lost_ns: u64,
    /// By call site, numbered as in the trace.
    pub sites: Vec<SiteTimes>,
    /// The machine's counts.
    pub counts: Counts,
    /// The same for replays that went the same way.
    pub trace_hash: u64,
}

/// Times at a call site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteTimes {
    /// How often a lock was taken there.
    pub takes: u64,
    /// How long that took, in nanoseconds.
    pub wait_ns: u64,
    /// How long locks that were taken there were held.
    pub hold_ns: u64,
}

impl Played {
    /// Locks taken in a second.
    #[must_use]
    pub fn takes_per_s(&self) -> f64 {
        if self.end_ns == 0 { 0.0 } else { self.takes as f64 * 1e9 / self.end_ns as f64 }
    }

    /// The share of all threads' time that went into waiting for locks.
    #[must_use]
    pub fn wait_share(&self) -> f64 {
        if self.lived_ns == 0 { 0.0 } else { self.wait_ns as f64 / self.lived_ns as f64 }
    }

    /// The time that threads waited in vain, as a share of the whole replay's.
    #[must_use]
    pub fn lost_share(&self) -> f64 {
        if self.end_ns == 0 { 0.0 } else { self.lost_ns as f64 / self.end_ns as f64 }
    }

    /// The share of waits, for locks and for others, that went otherwise than they should.
    #[must_use]
    pub fn fallback_share(&self) -> f64 {
        let waits = self.takes + self.awaits;
        if waits == 0 { 0.0 } else { self.fallbacks as f64 / waits as f64 }
    }
}

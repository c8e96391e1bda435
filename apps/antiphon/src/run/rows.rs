//! A row of a report: the use of one lock at one call site.

use antiphon_record::Histogram;

use super::home::Home;
use crate::symbols::CallSite;

/// The use of one lock at one call site, or of all locks at one site.
#[derive(Clone, Debug)]
pub struct LockRow {
    /// Where the lock function was called.
    pub site: CallSite,
    /// What names the lock; of several locks, of the first.
    pub home: Home,
    /// The kind of the lock.
    pub kind: &'static str,
    /// The address of the lock; of several locks, of the first.
    pub address: u64,
    /// The process of the lock; of several locks, of the first.
    pub pid: u32,
    /// Number of locks.
    pub locks: usize,
    /// Number of acquisitions; without a profile, of those after a wait. For a condition variable,
    /// number of notifications at the site.
    pub acquisitions: u64,
    /// Number of waits.
    pub contended: u64,
    /// Number of waits that ended without the lock. Where a condition variable is notified, number
    /// of notifications that found no waiter.
    pub gave_up: u64,
    /// Number of calls that did not wait, and found the lock taken.
    pub refused: u64,
    /// Number of waits that had not ended at the end of the run; they are counted up to there.
    pub still_waiting: u64,
    /// Histogram of the waits.
    pub wait: Histogram,
    /// Histogram of the holds; empty without a profile.
    pub hold: Histogram,
}

impl LockRow {
    /// The call site of a hold. Callers are known for waits, not for holds: a site in a wrapper has
    /// the wrapper's name.
    pub fn holder(&self) -> String {
        CallSite { caller: None, has_other_callers: false, ..self.site.clone() }.label()
    }

    /// The call site, and the number of threads that still wait there.
    pub fn site_and_waiters(&self) -> String {
        match self.still_waiting {
            0 => self.site.label(),
            waiters => format!("{}, {waiters} still waiting", self.site.label()),
        }
    }
}

//! The counts of a hunt so far.

use std::fmt;
use std::time::Duration;

use super::board::Snapshot;

/// Counts over all runs.
#[derive(Default)]
pub struct Tally {
    /// How long the hunt has run, without the time for which the hunter itself was stopped.
    pub ran: Duration,
    /// Number of times that the program was killed.
    pub kills: u64,
    /// Number of times that it was stopped and continued.
    pub stops: u64,
    runs: u64,
    operations: u64,
    forks: u64,
    signals: u64,
    cancels: u64,
    timeouts: u64,
}

impl Tally {
    /// Adds the board of a run that has ended.
    pub fn add(&mut self, board: &Snapshot) {
        self.runs += 1;
        self.operations += board.operations();
        self.forks += board.forks;
        self.signals += board.signals;
        self.cancels += board.cancels;
        self.timeouts += board.timeouts;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ran, runs, kills, stops, operations, forks, signals, cancels, timeouts } = self;
        write!(f, "{:.0} s, {runs} runs, {operations} operations, ", ran.as_secs_f64())?;
        write!(f, "{kills} kills, {stops} stops, ")?;
        write!(f, "{forks} forks, {signals} signals, {cancels} cancels, {timeouts} timeouts")
    }
}

//! What one thread of a contended repetition has seen.

use super::ticks::since;
use crate::stats::Histogram;

/// Counts, windows and waits of one thread. Written by that thread alone.
pub struct Tally {
    /// Acquisitions from the beginning of the measured time to its end.
    pub counted: u64,
    /// Acquisitions in all, for the exclusion check.
    pub acquired: u64,
    /// Acquisitions in each finished window.
    pub windows: Vec<u64>,
    /// How long acquisitions took, in ticks.
    pub waits: Histogram,
    window: u64,
    window_end: Option<u64>,
    counted_before: u64,
}

impl Tally {
    /// Nothing was seen; a window takes `window` ticks.
    pub fn new(window: u64) -> Self {
        Self {
            counted: 0,
            acquired: 0,
            windows: Vec::new(),
            waits: Histogram::new(),
            window,
            window_end: None,
            counted_before: 0,
        }
    }

    /// The measured time begins at `begin`; 0 is not yet, and after the first it is known.
    #[inline]
    pub fn begin_by(&mut self, begin: u64) {
        if self.window_end.is_none() && begin != 0 {
            self.window_end = Some(begin + self.window);
        }
    }

    /// Whether the measured time has begun.
    #[inline]
    pub fn begun(&self) -> bool {
        self.window_end.is_some()
    }

    /// It is `now`: finishes the windows that end before.
    #[inline]
    pub fn advance(&mut self, now: u64) {
        while let Some(end) = self.window_end.filter(|&end| now >= end) {
            self.windows.push(self.counted - self.counted_before);
            self.counted_before = self.counted;
            self.window_end = Some(end + self.window);
        }
    }

    /// An acquisition was asked for at `asked` and had at `had`; `weight` stand for it.
    #[inline]
    pub fn wait(&mut self, asked: u64, had: u64, weight: u64) {
        self.waits.record(since(asked, had), weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_counts_what_was_acquired_in_it() {
        let mut tally = Tally::new(10);
        tally.advance(1_000);
        tally.begin_by(0);
        assert!(!tally.begun() && tally.windows.is_empty());
        tally.begin_by(100);
        tally.begin_by(105);
        for now in [101, 105, 112] {
            tally.advance(now);
            tally.counted += 1;
        }
        // Starved from 112 to 145: two windows with nothing.
        tally.advance(145);
        assert_eq!(tally.windows, [2, 1, 0, 0]);
    }
}

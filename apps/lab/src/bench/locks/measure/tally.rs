//! The counts of one thread of a contended repetition.

use antiphon_report::stats::Histogram;

use crate::bench::ticks::since;

/// How a thread has had the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Had {
    /// As its only owner.
    Alone,
    /// Beside others that only read.
    Shared,
}

/// Counts, windows and waits of one thread. Written by that thread alone.
pub struct Tally {
    /// Acquisitions by which a writer would be noticed that was not alone, in all.
    pub written: u64,
    /// Readers that saw half of a writer's work.
    pub torn: u64,
    /// Acquisitions in each finished window.
    pub windows: Vec<u64>,
    /// Acquisitions from the beginning of the measured time to its end; by how they were had.
    counted: [u64; 2],
    /// How long acquisitions took, in ticks.
    waits: [Histogram; 2],
    window: u64,
    window_end: Option<u64>,
    counted_before: u64,
}

impl Tally {
    /// Nothing was seen; a window takes `window` ticks.
    pub fn new(window: u64) -> Self {
        Self {
            written: 0,
            torn: 0,
            windows: Vec::new(),
            counted: [0; 2],
            waits: [Histogram::new(), Histogram::new()],
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

    /// Finishes the windows that end before `now`.
    #[inline]
    pub fn advance(&mut self, now: u64) {
        while let Some(end) = self.window_end.filter(|&end| now >= end) {
            self.windows.push(self.counted() - self.counted_before);
            self.counted_before = self.counted();
            self.window_end = Some(end + self.window);
        }
    }

    /// The lock was had within the measured time.
    #[inline]
    pub fn count(&mut self, had: Had) {
        self.counted[had as usize] += 1;
    }

    /// How often [`count`](Self::count) was called.
    pub fn counted(&self) -> u64 {
        self.counted.iter().sum()
    }

    /// The acquisitions that count, of one way to have it.
    pub fn counted_as(&self, had: Had) -> u64 {
        self.counted[had as usize]
    }

    /// An acquisition was asked for at `asked` and had at `then`; `weight` stand for it.
    #[inline]
    pub fn wait(&mut self, had: Had, (asked, then): (u64, u64), weight: u64) {
        self.waits[had as usize].record(since(asked, then), weight);
    }

    /// The waits for one way to have it.
    pub fn waits(&self, had: Had) -> &Histogram {
        &self.waits[had as usize]
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
        for (now, had) in [(101, Had::Alone), (105, Had::Shared), (112, Had::Alone)] {
            tally.advance(now);
            tally.count(had);
        }
        // Starved from 112 to 145: two windows with nothing.
        tally.advance(145);
        assert_eq!(tally.windows, [2, 1, 0, 0]);
        assert_eq!((tally.counted_as(Had::Alone), tally.counted_as(Had::Shared)), (2, 1));
    }
}

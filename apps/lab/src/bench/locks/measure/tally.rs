//! The counts of one thread of a contended repetition.

use antiphon_report::stats::Histogram;

use crate::ticks::since;

/// How a thread has held the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Had {
    /// As its only owner.
    Alone,
    /// Together with other readers.
    Shared,
}

/// Counts, windows and waits of one thread, written by that thread only.
pub struct Tally {
    /// Total number of writes: acquisitions that would expose a writer that was not alone.
    pub written: u64,
    /// Number of readers that saw an incomplete write.
    pub torn: u64,
    /// Acquisitions in each finished window.
    pub windows: Vec<u64>,
    /// Acquisitions in the measured time, by how the lock was held.
    counted: [u64; 2],
    /// Time of acquisitions, in ticks.
    waits: [Histogram; 2],
    window: u64,
    window_end: Option<u64>,
    counted_before: u64,
}

impl Tally {
    /// An empty tally; a window takes `window` ticks.
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

    /// Sets the beginning of the measured time to `begin`. Ignores 0, which means not yet, and all
    /// calls after the first other value.
    #[inline]
    pub fn begin_by(&mut self, begin: u64) {
        if self.window_end.is_none() && begin != 0 {
            self.window_end = Some(begin + self.window);
        }
    }

    /// Returns whether the measured time has begun.
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

    /// Counts an acquisition within the measured time.
    #[inline]
    pub fn count(&mut self, had: Had) {
        self.counted[had as usize] += 1;
    }

    /// Returns how often [`count`](Self::count) was called.
    pub fn counted(&self) -> u64 {
        self.counted.iter().sum()
    }

    /// Returns the counted acquisitions that held the lock in this way.
    pub fn counted_as(&self, had: Had) -> u64 {
        self.counted[had as usize]
    }

    /// Records an acquisition that was requested at `asked` and succeeded at `then`; it stands for
    /// `weight` acquisitions.
    #[inline]
    pub fn wait(&mut self, had: Had, (asked, then): (u64, u64), weight: u64) {
        self.waits[had as usize].record(since(asked, then), weight);
    }

    /// Returns the waits of acquisitions that held the lock in this way.
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
        // Starved from 112 to 145: two empty windows.
        tally.advance(145);
        assert_eq!(tally.windows, [2, 1, 0, 0]);
        assert_eq!((tally.counted_as(Had::Alone), tally.counted_as(Had::Shared)), (2, 1));
    }
}

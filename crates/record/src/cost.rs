//! The time that recording events costs the program, measured on a sample of them.
//!
//! An event has one time, and the recorder works before and after it is taken. For an event of the
//! sample, the clock is also read at the beginning and the end of that work, and both spans are
//! added to the sums of that kind of event. So the figures are from the program itself, with its
//! caches in their real state.

use core::sync::atomic::Ordering::Relaxed;
use std::io;

use crate::events::Code;
use crate::layout::COST;
use crate::{Recording, Writer};

/// The average time of recording an event of one kind, from those that were timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The kind.
    pub code: Code,
    /// Number of events that were timed.
    pub timed: u64,
    /// Time before the event's own time, in picoseconds.
    pub before_ps: u64,
    /// Time after the event's own time, in picoseconds.
    pub after_ps: u64,
}

impl Writer {
    /// Records that an event of that kind was timed: the recorder's work began `before` ticks
    /// before the event's time, and ended `after` ticks after it. Both include one of the
    /// additional readings of the clock, or half of each.
    pub fn timed(self, code: Code, before: u64, after: u64) {
        let Some(cost) = self.map.base().costs.get(code as usize) else { return };
        cost.before.fetch_add(before, Relaxed);
        cost.after.fetch_add(after, Relaxed);
        // Last: a reader that reads meanwhile gets an average that is slightly too high, and none
        // of zero events.
        cost.count.fetch_add(1, Relaxed);
    }
}

impl Recording {
    /// The time that recording takes by kind of event, from the events that were timed.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn costs(&self) -> io::Result<Vec<Cost>> {
        let [rate, _, look] = self.clock_words()?;
        let words = self.words(COST)?;
        let cost = |(code, record): (usize, &[u64])| {
            let code = Code::of(code as u64)?;
            let [count, before, after, _] = *record else { return None };
            let mean_ps = |sum: u64| {
                // In 1024ths of a tick, without the readings of the clock made for the measurement.
                let sum = u128::from(sum) << 10;
                let mean = sum.checked_div(count.into())?.saturating_sub((look / 2).into());
                u64::try_from((mean * u128::from(rate) * 1000) >> 42).ok()
            };
            Some(Cost {
                code,
                timed: count,
                before_ps: mean_ps(before)?,
                after_ps: mean_ps(after)?,
            })
        };
        Ok(words.chunks(COST.words).enumerate().filter_map(cost).collect())
    }
}

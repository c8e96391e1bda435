//! What recording events takes of the program's time: some of them are timed.
//!
//! An event has one time, and the recorder works before it is taken and after it. Whose turn it is
//! takes the clock at the beginning and at the end of that work too, and adds both spans to what is
//! known of that kind of event: so the figures are from the program itself, with its caches as they
//! are.

use core::sync::atomic::Ordering::Relaxed;
use std::io;

use crate::events::Code;
use crate::layout::COST;
use crate::{Recording, Writer};

/// The time that recording an event of one kind takes, on average of those that were timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The kind.
    pub code: Code,
    /// How many were timed.
    pub timed: u64,
    /// Before the time that the event has, in picoseconds.
    pub before_ps: u64,
    /// After it, in picoseconds.
    pub after_ps: u64,
}

impl Writer {
    /// Notes that an event of that kind was timed: the recorder's work began `before` ticks before
    /// the time that the event has, and ended `after` ticks after it. Both hold one of the looks at
    /// the clock that were made for that, or half of each.
    pub fn timed(self, code: Code, before: u64, after: u64) {
        let Some(cost) = self.map.base().costs.get(code as usize) else { return };
        cost.before.fetch_add(before, Relaxed);
        cost.after.fetch_add(after, Relaxed);
        // Last: a reader that reads in between has an average that is a little too high, and none
        // of nothing.
        cost.count.fetch_add(1, Relaxed);
    }
}

impl Recording {
    /// The time that recording takes, by kind of event: of the events that were timed.
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
                // In 1024ths of a tick, without the looks that were made to time it.
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

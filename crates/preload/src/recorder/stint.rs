//! Measures the cost of recording an event. One event of a thread in [`PERIOD`] is timed, so that
//! the figures are of the program's own events, with the caches in the state that the program
//! leaves them in. A replay subtracts the costs.
//!
//! An event after which the kernel was asked is not timed here: the time of each query is noted.
//! Nor is one that took over [`LONG_NS`], in which the thread most likely lost its CPU, or came to
//! a call site for the first time.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_record::events::Code;

use super::events::are_on;
use super::span::{LONG_NS, Span};
use super::writer;
use crate::{thread, ticks};

/// One event of this many is timed. A prime, so that the period does not coincide with a loop of
/// the program.
const PERIOD: u32 = 31;

/// The recorder's work for one event, if that is timed.
#[must_use]
pub(crate) struct Stint {
    /// The beginning in ticks; 0 if this event is not timed.
    since: u64,
}

impl Stint {
    /// Begins a stint, which is timed once in [`PERIOD`] calls.
    #[inline]
    pub(crate) fn begins() -> Self {
        if !are_on() || !is_timed() {
            return Self { since: 0 };
        }
        Self { since: ticks::now() }
    }

    /// Ends the stint; `code` is the kind of the event, if there was one.
    #[inline]
    pub(crate) fn ends(self, code: Code) {
        if self.since != 0 {
            tells(self.since, code);
        }
    }
}

fn is_timed() -> bool {
    let thread = thread::current();
    let left = &thread.span.untimed;
    let (next, timed) = match left.load(Relaxed) {
        // The first event of the thread: the count starts at a number that depends on the thread,
        // so that of many short threads not all have their first events timed.
        0 => (1 + thread.pen.number() % PERIOD, false),
        1 => (PERIOD, true),
        left => (left - 1, false),
    };
    left.store(next, Relaxed);
    timed
}

#[cold]
fn tells(since: u64, code: Code) {
    let until = ticks::now();
    let Some(writer) = writer() else { return };
    let Some(at) = thread::current().span.only_event_since(since) else { return };
    if at <= until && ticks::to_ns(until - since) < LONG_NS {
        writer.timed(code, at - since, until - at);
    }
}

impl Span {
    /// The time of the thread's last event in ticks, if that was after `since` and the kernel was
    /// not asked.
    fn only_event_since(&self, since: u64) -> Option<u64> {
        let last = self.last.load(Relaxed);
        (last >= since && self.began.load(Relaxed) == last).then_some(last)
    }
}

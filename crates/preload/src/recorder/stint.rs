//! The cost of recording an event, to the program: each of a thread's events in turn is timed, one
//! of [`PERIOD`], so that the figures are of the program's own events, with the caches as those
//! find them. A replay takes them out again.
//!
//! A span in which the kernel was asked is not timed here: that is noted each time. Nor is one of
//! over [`LONG_NS`], in which the thread most likely lost its CPU, or came to a call site for the
//! first time.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_record::events::Code;

use super::events::are_on;
use super::span::{LONG_NS, Span};
use super::writer;
use crate::{thread, ticks};

/// One event of this many is timed. A prime, so that a loop of a program does not fall into step.
const PERIOD: u32 = 31;

/// Work of the recorder in which one event is noted, if it is to be timed.
#[must_use]
pub(crate) struct Stint {
    /// The beginning, in ticks; 0 if it is not timed.
    since: u64,
}

impl Stint {
    /// Begins a stint.
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
        // The first event of the thread: the turn begins at a number of the thread's own, so that
        // of many short threads not all have their first events timed.
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
    /// When the thread's last event was, in ticks, if that was after `since` and the kernel was not
    /// asked.
    fn only_event_since(&self, since: u64) -> Option<u64> {
        let last = self.last.load(Relaxed);
        (last >= since && self.began.load(Relaxed) == last).then_some(last)
    }
}

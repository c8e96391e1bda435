//! Future events, in order of simulated time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::line::LineId;

/// Something that happens at a time. An event with a number may be void when its time comes; the
/// number then differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A thread continues, if its turn is still this one.
    Resume { thread: u32, turn: u32 },
    /// The request that is served at a line is done.
    Served { line: LineId },
    /// The first store in a thread's buffer, whose line was present, is done.
    Stored { thread: u32 },
    /// A thread becomes runnable: it starts, or was woken.
    Arrive { thread: u32 },
    /// An interrupt that a program has sent arrives at a core.
    Interrupt { core: u32 },
    /// A wait of a thread ends by its deadline, if it is still this wait.
    Expire { thread: u32, wait: u32 },
    /// The slice of a core's present thread ends, if it is still this slice.
    Slice { core: u32, slice: u32 },
    /// The patience of a spinner ends, if it is still in this wait.
    Yield { thread: u32, wait: u32 },
    /// The slice of the virtual CPU on a core ends, if it is still this slice.
    Host { core: u32, slice: u32 },
}

/// A queue of events, ordered by time and then by the order of insertion.
#[derive(Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    foreseen: u64,
}

impl Events {
    pub(crate) fn push(&mut self, at_ns: u64, event: Event) {
        self.foreseen += 1;
        self.heap.push(Reverse((at_ns, self.foreseen, event)));
    }

    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|Reverse((at_ns, _, event))| (at_ns, event))
    }

    /// The time of the next event, void or not.
    pub(crate) fn next_ns(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns)
    }
}

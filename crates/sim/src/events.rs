//! What will happen, in order of simulated time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens at a time. Each may have become void when its time comes; the number in
/// it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A thread goes on, if its turn is still this one.
    Resume { thread: usize, turn: u64 },
    /// A thread wants its core: it starts, or was woken.
    Arrive { thread: usize },
    /// A wait of a thread ends by its deadline, if it is still this wait.
    Expire { thread: usize, wait: u64 },
    /// The slice of a core's present thread ends, if it is still this slice.
    Slice { core: u32, slice: u64 },
}

/// A queue of events, first by time and then by the order in which they were foreseen.
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

    /// When the next event happens, void or not.
    pub(crate) fn next_ns(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns)
    }
}

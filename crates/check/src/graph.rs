//! An execution as a graph: its events, the source of each read, and the modification order of
//! writes.
//!
//! Nothing else of an execution is stored: program order is in the events' names; happens-before
//! and values follow from the graph when the program runs along it. Two interleavings with the same
//! graph are the same execution.
//!
//! A read-modify-write is two consecutive events, a read and an *exclusive* write that takes the
//! place right after the read's source. A `store_unless` is a read and a write that are both marked
//! as a *section*.

use std::sync::atomic::Ordering;

use crate::clock::{Clock, Id, SLOTS};

/// The kind of a choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// 0: wait; 1: wake spuriously; 2: time out.
    Park,
    /// 0: no; 1: yes.
    Crowded,
    /// 0: stay; n: move on by n sockets.
    Move,
    /// 0: granted; 1: refused.
    Heavy,
    /// The lead of the CPU's counter.
    Ahead,
    /// The sleeper to wake, among those on a word that were not chosen yet.
    Wake,
    /// A choice of the model's program.
    Model,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The end of the setup.
    Start,
    Read,
    Write,
    Fence,
    /// `heavy_fence`.
    Heavy,
    /// `light_fence`.
    Light,
    Choice(What),
    /// The deadline of a wait passed, because nothing else could happen.
    Timeout,
}

/// One visible operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) id: Id,
    pub(crate) kind: Kind,
    pub(crate) order: Ordering,
    pub(crate) location: u16,
    /// Reads: the source.
    pub(crate) from: Id,
    /// Reads: the value read. Writes: the value written. Choices: the choice.
    pub(crate) value: u64,
    /// Writes: the place in the modification order; 0 is that of the initial value.
    pub(crate) rank: u16,
    /// Whether this is a write that is the second half of a read-modify-write.
    pub(crate) exclusive: bool,
    /// Whether this is a half of a `store_unless`.
    pub(crate) section: bool,
    /// Whether this is a read that ended its spin because nothing else could happen, or a timeout
    /// for that reason. By then all earlier writes have become visible to the thread.
    pub(crate) forced: bool,
}

impl Event {
    pub(crate) fn new(id: Id, kind: Kind, order: Ordering) -> Self {
        Self {
            id,
            kind,
            order,
            location: 0,
            from: Id::INIT,
            value: 0,
            rank: 0,
            exclusive: false,
            section: false,
            forced: false,
        }
    }

    pub(crate) fn is_read(&self) -> bool {
        self.kind == Kind::Read
    }

    pub(crate) fn is_write(&self) -> bool {
        self.kind == Kind::Write
    }

    pub(crate) fn is_access(&self) -> bool {
        self.is_read() || self.is_write()
    }

    /// The event right before this one in its thread.
    pub(crate) fn before(&self) -> Id {
        Id { thread: self.id.thread, index: self.id.index - 1 }
    }
}

/// Events in the order in which they were added (an event's *stamp* is its index here).
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) events: Vec<Event>,
}

impl Graph {
    pub(crate) fn with(&self, event: Event) -> Self {
        let mut events = Vec::with_capacity(self.events.len() + 8);
        events.extend_from_slice(&self.events);
        events.push(event);
        Self { events }
    }

    /// Makes room at `rank` of `location` for a write to come.
    pub(crate) fn make_room(&mut self, location: u16, rank: u16) {
        for event in &mut self.events {
            if event.is_write() && event.location == location && event.rank >= rank {
                event.rank += 1;
            }
        }
    }
}

/// Stamps by event name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    stamps: [Vec<u32>; SLOTS],
}

impl Index {
    /// Rebuilds the index for `graph`, and keeps the memory.
    pub(crate) fn rebuild(&mut self, graph: &Graph) {
        self.stamps.iter_mut().for_each(Vec::clear);
        for (stamp, event) in graph.events.iter().enumerate() {
            self.insert(event.id, stamp);
        }
    }

    /// Events of a thread may come in any order while a graph is indexed.
    pub(crate) fn insert(&mut self, id: Id, stamp: usize) {
        let stamps = &mut self.stamps[usize::from(id.thread)];
        let place = usize::from(id.index) - 1;
        if stamps.len() <= place {
            stamps.resize(place + 1, u32::MAX);
        }
        stamps[place] = stamp as u32;
    }

    #[cfg(test)]
    pub(crate) fn remove(&mut self, id: Id) {
        self.stamps[usize::from(id.thread)][usize::from(id.index) - 1] = u32::MAX;
    }

    /// The stamp of `id`, if it is in the graph. Never of [`Id::INIT`].
    pub(crate) fn get(&self, id: Id) -> Option<usize> {
        let place = usize::from(id.index).checked_sub(1)?;
        let stamp = *self.stamps[usize::from(id.thread)].get(place)?;
        (stamp != u32::MAX).then_some(stamp as usize)
    }
}

/// The facts about an event that were derived by running along the graph.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meta {
    pub(crate) executed: bool,
    /// All events that happen before it, including itself.
    pub(crate) before: Clock,
    /// All events that lead to it by program order and reads-from, including itself.
    pub(crate) causes: Clock,
    /// Writes: the events that an acquiring reader learns.
    pub(crate) message: Clock,
    /// Writes with smaller stamps have become visible to the thread, because time has passed.
    pub(crate) settled: usize,
    /// Logical time.
    pub(crate) time: u64,
}

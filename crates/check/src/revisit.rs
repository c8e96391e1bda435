//! Revisits: graphs in which an earlier read reads from a later write.
//!
//! When a write is added, the reads of the same location that are already in the graph could not
//! read from it. For each of these that the write does not depend on, there is a graph in which the
//! read reads from the write. It has the events that were there when the read was added, the events
//! that the write depends on, the read, and the write. All other events in between are dropped, and
//! will be found again.
//!
//! Many graphs reduce to the same graph. So that each is visited once, only one of them does so:
//! the graph in which all dropped events, and the read itself, had taken the *canonical* way. That
//! is, reads had read the latest write and writes had become the latest, among the events that were
//! there before or that the new write depends on. (The idea is that of TruSt: Kokologiannakis,
//! Marmanis, Gladstein, Vafeiadis, "Truly stateless, optimal dynamic partial order reduction", POPL
//! 2022.)

use crate::clock::{Clock, Id};
use crate::execution::Execution;
use crate::graph::{Event, Graph, Kind, Meta};

impl Execution {
    /// Stores for later the graphs in which a read reads from `write`, the current thread's next
    /// event, or the one after `read`, its read half.
    pub(crate) fn revisit(&mut self, write: Event, read: Option<Event>) {
        let thread = &self.threads[self.current];
        let (mut causes, mut before) = (thread.causes, thread.before);
        if let Some(source) = read.and_then(|read| self.index.get(read.from)) {
            causes.join(&self.meta[source].causes);
        }
        causes.include(write.id);
        before.include(write.id);
        for at in 0..self.locations[write.location].accesses.len() {
            let access = self.locations[write.location].accesses[at];
            let stamp = access.stamp as usize;
            if !access.is_write() && !causes.covers(access.id) && self.canonical(stamp, &causes) {
                self.redirect(stamp, write, read, &causes, &before);
            }
        }
    }

    /// Returns whether the read at `from`, and the events dropped with it, had taken the canonical
    /// way.
    fn canonical(&self, from: usize, causes: &Clock) -> bool {
        (from..self.graph.events.len()).all(|stamp| {
            let dropped = stamp == from || !causes.covers(self.graph.events[stamp].id);
            !dropped || self.canonically_added(stamp, causes)
        })
    }

    fn canonically_added(&self, stamp: usize, causes: &Clock) -> bool {
        let event = &self.graph.events[stamp];
        match event.kind {
            Kind::Choice(_) => event.value == 0,
            Kind::Start | Kind::Fence | Kind::Heavy | Kind::Light | Kind::Timeout => true,
            Kind::Read | Kind::Write => {
                let source = if event.is_read() { event.from } else { event.id };
                // A missing source is itself dropped, and this reader makes it not canonical.
                let rank = self.rank(source);
                let accesses = &self.locations[event.location].accesses;
                !accesses.iter().any(|other| {
                    // Later writes; and for a write, its own readers.
                    let spoils = if other.is_write() {
                        other.rank() > rank
                    } else {
                        event.is_write() && other.rank() == rank
                    };
                    spoils && (other.stamp as usize <= stamp || causes.covers(other.id))
                })
            }
        }
    }

    /// Stores the graphs in which the read at `stamp` reads from `write`, one for each place that
    /// the write can take.
    fn redirect(
        &mut self,
        stamp: usize,
        write: Event,
        half: Option<Event>,
        causes: &Clock,
        before: &Clock,
    ) {
        let location = write.location;
        let mut writes: Vec<(u16, Id, Option<Id>)> = Vec::new();
        let mut bound = 0;
        let read = self.graph.events[stamp];
        let reader = if read.id.index == 1 {
            let start = self.threads[usize::from(read.id.thread)].start;
            Meta { before: start, ..Meta::default() }
        } else {
            let previous = self.index.get(read.before()).expect("a thread has no gaps");
            self.meta[previous]
        };
        let mut known = reader.before;
        known.join(before);
        let settled = reader.settled.max(self.threads[self.current].settled);
        for access in &self.locations[location].accesses {
            let other = access.stamp as usize;
            if other > stamp && !causes.covers(access.id) {
                continue;
            }
            if access.is_write() {
                let event = &self.graph.events[other];
                let source = event.exclusive.then(|| self.source(event));
                writes.push((access.rank(), access.id, source));
            }
            let seen = known.covers(access.id) || (other < settled && access.is_write());
            if other != stamp && seen {
                bound = bound.max(access.rank());
            }
        }
        writes.sort_unstable_by_key(|&(rank, ..)| rank);
        let source = write.exclusive.then(|| half.map_or_else(|| self.source(&write), |h| h.from));
        if source.is_some() && writes.iter().any(|&(_, _, theirs)| theirs == source) {
            return;
        }
        // Place p is after the p-th kept write; for 0, after the initial value.
        for place in 0..=writes.len() {
            let (rank, id) =
                place.checked_sub(1).map_or((0, Id::INIT), |p| (writes[p].0, writes[p].1));
            let splits = writes.get(place).is_some_and(|&(_, _, source)| source.is_some());
            let wanted = source.is_none_or(|source| source == id);
            if rank >= bound && !splits && wanted {
                let graph = self.redirected(stamp, write, half, causes, rank + 1);
                self.decider.later.push(graph);
            }
        }
    }

    fn redirected(
        &self,
        stamp: usize,
        write: Event,
        half: Option<Event>,
        causes: &Clock,
        rank: u16,
    ) -> Graph {
        let mut events = Vec::with_capacity(self.graph.events.len() + 2);
        for (other, event) in self.graph.events.iter().enumerate() {
            if other <= stamp || causes.covers(event.id) {
                events.push(*event);
            }
        }
        let mut graph = Graph { events };
        let read = &mut graph.events[stamp];
        read.from = write.id;
        read.value = write.value;
        read.forced = false;
        graph.make_room(write.location, rank);
        graph.events.extend(half);
        graph.events.push(Event { rank, ..write });
        graph
    }
}

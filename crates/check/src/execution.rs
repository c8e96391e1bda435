//! One execution: the graph, the part of it that the program has run so far, and the facts derived
//! from it.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use crate::clock::{Clock, Id, SLOTS};
use crate::decide::Decider;
use crate::fences::{Fences, Past};
use crate::graph::{Event, Graph, Index, Kind, Meta};
use crate::location::{Access, Addresses, Locations};
use crate::model::{Config, FailureKind};
use crate::step::Source;
use crate::thread::{Status, Thread};

/// The reason for a premature end of an execution.
pub(crate) enum Ending {
    /// The program is wrong.
    Failed(FailureKind),
    /// The graph is not an execution, or another graph stands for it.
    Discarded,
}

/// The state of a run. One serves all executions of a model, one after the other.
pub(crate) struct Execution {
    pub(crate) config: Config,
    /// The events that the run follows, and the events that it has added.
    pub(crate) graph: Graph,
    /// The stamps of the events in the graph, by event name.
    pub(crate) index: Index,
    /// Facts about the events, by stamp.
    pub(crate) meta: Vec<Meta>,
    /// Stamps in the order in which the events took place in this run.
    pub(crate) order: Vec<u32>,
    pub(crate) threads: Vec<Thread>,
    /// The thread that runs now.
    pub(crate) current: usize,
    /// The thread that may perform its next new event, where a scheduler decides.
    pub(crate) granted: Option<usize>,
    /// The thread whose wait is forced to end.
    pub(crate) force: Option<usize>,
    pub(crate) decider: Decider,
    /// Whether the run follows the graph in the order of its stamps.
    pub(crate) scripted: bool,
    /// The thread to continue with at the end of a script.
    pub(crate) last: Option<usize>,
    pub(crate) locations: Locations,
    /// The values of words that only one thread accesses, and of those that destructors write when
    /// all threads have ended.
    pub(crate) private: Addresses<u64>,
    pub(crate) probes: HashMap<&'static str, u64>,
    /// Reusable memory for [`sources`](Self::sources) and [`ranks`](Self::ranks).
    pub(crate) spare_sources: Vec<Source>,
    pub(crate) spare_ranks: Vec<u16>,
    pub(crate) ending: Option<Ending>,
    /// Whether all threads have ended or will never run again: only destructors run.
    pub(crate) over: bool,
    /// The order of the fences and sections that have taken place.
    pub(crate) fences: Fences,
    /// Scratch space: `fences` with one more event.
    tried: Fences,
    /// Whether the initial graph of the run was checked to be an execution.
    checked: bool,
}

impl Execution {
    pub(crate) fn new(config: Config, decider: Decider) -> Self {
        Self {
            config,
            graph: Graph::default(),
            index: Index::default(),
            meta: Vec::new(),
            order: Vec::new(),
            threads: Vec::new(),
            current: 0,
            granted: None,
            force: None,
            decider,
            scripted: false,
            last: None,
            locations: Locations::default(),
            private: HashMap::default(),
            probes: HashMap::new(),
            spare_sources: Vec::new(),
            spare_ranks: Vec::new(),
            ending: None,
            over: false,
            fences: Fences::default(),
            tried: Fences::default(),
            checked: false,
        }
    }

    /// Starts a run along `graph`.
    pub(crate) fn begin(&mut self, graph: Graph) {
        self.index.rebuild(&graph);
        self.meta.clear();
        self.meta.resize(graph.events.len(), Meta::default());
        self.graph = graph;
        self.order.clear();
        self.threads.clear();
        self.threads.push(Thread::new(Clock::default(), Clock::default(), 0, 0, 0));
        self.current = 0;
        self.granted = None;
        self.force = None;
        let used = self.graph.events.iter().filter(|event| event.is_access());
        let used = used.map(|event| usize::from(event.location) + 1).max().unwrap_or(0);
        self.locations.reset(used);
        self.private.clear();
        self.ending = None;
        self.over = false;
        self.fences.clear();
        self.checked = false;
    }

    /// Returns whether all events of the graph have taken place.
    pub(crate) fn caught_up(&self) -> bool {
        self.order.len() == self.graph.events.len()
    }

    /// The next event of the current thread.
    pub(crate) fn next_id(&self) -> Id {
        Id { thread: self.current as u16, index: self.threads[self.current].count + 1 }
    }

    pub(crate) fn fail(&mut self, kind: FailureKind, what: String) {
        if self.ending.is_none() {
            self.decider.failed(what);
            self.ending = Some(Ending::Failed(kind));
        }
    }

    /// The place of the write with that name in its modification order.
    pub(crate) fn rank(&self, write: Id) -> u16 {
        self.index.get(write).map_or(0, |stamp| self.graph.events[stamp].rank)
    }

    /// The value of the write with that name. Words start as zero.
    pub(crate) fn value(&self, write: Id) -> u64 {
        self.index.get(write).map_or(0, |stamp| self.graph.events[stamp].value)
    }

    /// The access of an event of the graph that takes place now; `None` if it is no access.
    fn access(&self, stamp: usize, event: &Event) -> Option<Access> {
        let place = match event.kind {
            Kind::Read => 2 * u32::from(self.rank(event.from)) + 1,
            Kind::Write => 2 * u32::from(event.rank),
            _ => return None,
        };
        Some(Access { id: event.id, stamp: stamp as u32, place })
    }

    /// The latest place in `location`'s modification order that a thread has seen if it knows the
    /// events in `known` and has waited until events before the stamp `settled` became visible.
    pub(crate) fn bound(&self, location: u16, known: &Clock, settled: usize) -> u16 {
        let location = &self.locations[location];
        let most = location.latest().map_or(0, Access::rank);
        let mut bound = 0;
        for access in location.accesses.iter().rev() {
            if bound == most {
                break;
            }
            let is_settled = (access.stamp as usize) < settled && access.is_write();
            if access.rank() > bound && (is_settled || known.covers(access.id)) {
                bound = access.rank();
            }
        }
        bound
    }

    /// The earliest place from which the current thread may still read.
    pub(crate) fn bound_now(&self, location: u16) -> u16 {
        let thread = &self.threads[self.current];
        self.bound(location, &thread.before, thread.settled)
    }

    /// The last write in modification order.
    pub(crate) fn latest(&self, location: u16) -> Id {
        self.locations[location].latest().map_or(Id::INIT, |access| access.id)
    }

    /// The exclusive write directly after `write`, if there is one.
    pub(crate) fn successor(&self, location: u16, write: Id) -> Option<Id> {
        let place = 2 * (u32::from(self.rank(write)) + 1);
        let next = self.locations[location].accesses.iter().find(|access| access.place == place)?;
        let event = &self.graph.events[next.stamp as usize];
        (event.exclusive && self.source(event) == write).then_some(event.id)
    }

    /// The write that the read half of an exclusive write read from.
    pub(crate) fn source(&self, exclusive: &Event) -> Id {
        let read = self.index.get(exclusive.before()).expect("a write half has a read half");
        self.graph.events[read].from
    }

    /// Adds an event of the current thread to the graph and makes it take place.
    pub(crate) fn append(&mut self, event: Event) -> usize {
        let stamp = self.graph.events.len();
        if event.is_write() {
            self.make_room(event.location, event.rank);
        }
        self.graph.events.push(event);
        self.index.insert(event.id, stamp);
        self.meta.push(Meta::default());
        self.commit(stamp);
        #[cfg(test)]
        self.compare_fences();
        stamp
    }

    /// Makes room at `rank` of `location` for a write to come, once all events have taken place.
    fn make_room(&mut self, location: u16, rank: u16) {
        let location = &mut self.locations[location];
        if location.latest().is_none_or(|latest| latest.rank() < rank) {
            return;
        }
        for access in location.accesses.iter_mut().filter(|access| access.rank() >= rank) {
            if access.is_write() {
                self.graph.events[access.stamp as usize].rank += 1;
            }
            access.place += 2;
        }
    }

    /// Makes an event of the graph, the current thread's next one, take place.
    pub(crate) fn commit(&mut self, stamp: usize) {
        let event = self.graph.events[stamp];
        let message = self.learn(&event);
        let thread = &mut self.threads[self.current];
        if event.forced {
            thread.settled = stamp;
        }
        self.meta[stamp] = Meta {
            executed: true,
            settled: thread.settled,
            before: thread.before,
            causes: thread.causes,
            message,
            time: thread.time,
        };
        self.order.push(stamp as u32);
        let access = self.access(stamp, &event);
        let before = &self.meta[stamp].before;
        let past = Past { locations: &self.locations, meta: &self.meta };
        self.fences.take(&event, access.as_ref(), before, past);
        if let Some(access) = access {
            let location = &mut self.locations[event.location];
            location.add(access);
            if let Some(by) = location.retired {
                let (me, label) = (event.id.thread, self.label(event.location));
                let what = format!("thread {me} touches {label} after thread {by} retired it");
                self.fail(FailureKind::UseAfterRetire, what);
            }
        }
    }

    /// Adds the knowledge that `event`, the current thread's next, brings to the thread. Returns
    /// what an acquiring reader will learn from the event.
    fn learn(&mut self, event: &Event) -> Clock {
        let source = match event.kind {
            Kind::Read => self.index.get(event.from),
            // A release sequence continues through read-modify-writes.
            Kind::Write if event.exclusive => self.index.get(self.source(event)),
            _ => None,
        };
        let source = source.map(|stamp| &self.meta[stamp]);
        let thread = &mut self.threads[self.current];
        thread.count = event.id.index;
        thread.before.include(event.id);
        thread.causes.include(event.id);
        thread.status = Status::Unknown;
        thread.time += 10;
        match event.kind {
            Kind::Read => {
                if let Some(source) = source {
                    thread.causes.join(&source.causes);
                    thread.time = thread.time.max(source.time);
                    thread.acquirable.join(&source.message);
                    if acquires(event.order) {
                        thread.before.join(&source.message);
                    }
                }
            }
            Kind::Write => {
                let released = releases(event.order);
                let mut message = if released { thread.before } else { thread.released };
                if let Some(source) = source {
                    message.join(&source.message);
                }
                return message;
            }
            Kind::Fence | Kind::Heavy => {
                if acquires(event.order) {
                    thread.before.join(&thread.acquirable);
                }
                if releases(event.order) {
                    thread.released = thread.before;
                }
            }
            Kind::Start | Kind::Light | Kind::Choice(_) | Kind::Timeout => {}
        }
        Clock::default()
    }

    /// Returns whether the current thread's next access could break the order of the fences: only
    /// if a fence happens before it.
    pub(crate) fn after_node(&self) -> bool {
        self.fences.len() >= 2 && self.fences.any_in(&self.threads[self.current].before)
    }

    /// Returns whether the fences stay in order with `event`, the current thread's next.
    pub(crate) fn fences_allow(&mut self, event: Event) -> bool {
        let mut before = self.threads[self.current].before;
        before.include(event.id);
        if event.is_read()
            && acquires(event.order)
            && let Some(source) = self.index.get(event.from)
        {
            before.join(&self.meta[source].message);
        }
        let access = self.access(self.graph.events.len(), &event).expect("it is an access");
        let allowed = if event.section {
            let past = Past { locations: &self.locations, meta: &self.meta };
            self.tried.copy(&self.fences);
            self.tried.take(&event, Some(&access), &before, past);
            !self.tried.is_broken()
        } else {
            self.fences.admit(&event, &access, &before, &self.locations)
        };
        #[cfg(test)]
        assert_eq!(allowed, self.axiom_allows(event, Meta { before, ..Meta::default() }));
        allowed
    }

    /// Called when the run has caught up with its graph; returns whether the graph is an execution.
    /// A read that was given another source may have learned too much for the fences to be in
    /// order.
    pub(crate) fn caught_up_well(&mut self) -> bool {
        if !self.checked {
            self.checked = true;
            #[cfg(test)]
            self.compare_fences();
            if self.fences.is_broken() {
                self.ending.get_or_insert(Ending::Discarded);
                return false;
            }
        }
        true
    }

    /// Adds the knowledge of all threads to the setup thread, for the final check.
    pub(crate) fn join_all(&mut self) {
        let (first, rest) = self.threads.split_first_mut().expect("there is a setup thread");
        for (number, thread) in rest.iter().enumerate() {
            first.before.join(&thread.before);
            first.causes.join(&thread.causes);
            let end = Id { thread: number as u16 + 1, index: thread.count + 1 };
            first.before.include(end);
            first.causes.include(end);
            first.time = first.time.max(thread.time);
        }
        self.current = 0;
    }

    pub(crate) fn add_thread(&mut self, socket: Option<u32>) {
        let number = self.threads.len();
        assert!(number < SLOTS, "a model has at most {} threads", SLOTS - 1);
        let first = &self.threads[0];
        let socket = socket.unwrap_or((number as u32 - 1) % self.config.sockets);
        let thread = Thread::new(first.before, first.causes, first.time, socket, number as u32);
        self.threads.push(thread);
    }
}

pub(crate) fn acquires(order: Ordering) -> bool {
    matches!(order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst)
}

pub(crate) fn releases(order: Ordering) -> bool {
    matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst)
}

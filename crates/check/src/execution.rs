//! One execution: the graph as far as the program has been run along it, and what follows from it.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use crate::clock::{Clock, Id, SLOTS};
use crate::decide::Decider;
use crate::graph::{Event, Graph, Index, Kind, Meta};
use crate::location::{Addresses, Locations};
use crate::model::{Config, FailureKind};
use crate::sc;
use crate::thread::{Status, Thread};

/// How an execution ended, if it was not by itself.
pub(crate) enum Ending {
    /// Something is wrong with the program.
    Failed(FailureKind),
    /// The graph is not an execution, or another one stands for it.
    Discarded,
}

/// The state of a run. One serves all executions of a model, one after the other.
pub(crate) struct Execution {
    pub(crate) config: Config,
    /// Events that the run follows, and those that it has added.
    pub(crate) graph: Graph,
    /// The places of the events in the graph.
    pub(crate) index: Index,
    /// Facts about the events, by stamp.
    pub(crate) meta: Vec<Meta>,
    /// Stamps in the order in which the events took place in this run.
    pub(crate) order: Vec<u32>,
    pub(crate) threads: Vec<Thread>,
    /// The thread that runs now.
    pub(crate) current: usize,
    /// The thread that may do its next new event, where a scheduler says so.
    pub(crate) granted: Option<usize>,
    /// The thread whose wait ends though nothing ends it.
    pub(crate) force: Option<usize>,
    pub(crate) decider: Decider,
    /// Follow the graph in the order of its stamps.
    pub(crate) scripted: bool,
    /// The thread to go on with at the end of a script.
    pub(crate) last: Option<usize>,
    pub(crate) locations: Locations,
    /// Words that only one thread touches, and what destructors do when all threads have ended.
    pub(crate) private: Addresses<u64>,
    pub(crate) probes: HashMap<&'static str, u64>,
    pub(crate) ending: Option<Ending>,
    /// All threads have ended or will never run again: destructors only.
    pub(crate) over: bool,
    /// How many fences and sections have taken place.
    nodes: usize,
    /// Whether the graph that the run was started with was found to be an execution.
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
            ending: None,
            over: false,
            nodes: 0,
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
        self.nodes = 0;
        self.checked = false;
    }

    /// Whether all events that the run was started with have taken place.
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

    /// The place of a write, given by its name, in its modification order.
    pub(crate) fn rank(&self, write: Id) -> u16 {
        self.index.get(write).map_or(0, |stamp| self.graph.events[stamp].rank)
    }

    /// The value that a write, given by its name, has written. Words start as zero.
    pub(crate) fn value(&self, write: Id) -> u64 {
        self.index.get(write).map_or(0, |stamp| self.graph.events[stamp].value)
    }

    /// The place in modification order of an access or of what it reads from.
    pub(crate) fn place(&self, event: &Event) -> u16 {
        if event.is_write() { event.rank } else { self.rank(event.from) }
    }

    /// The latest place in `location`'s modification order that a thread has seen if it knows the
    /// events of `known` and waited until those before the stamp `settled` had become visible.
    pub(crate) fn bound(&self, location: u16, known: &Clock, settled: usize) -> u16 {
        let accesses = &self.locations[location].accesses;
        let seen = accesses.iter().map(|&stamp| stamp as usize).filter_map(|stamp| {
            let event = &self.graph.events[stamp];
            let seen = known.covers(event.id) || (stamp < settled && event.is_write());
            seen.then(|| self.place(event))
        });
        seen.max().unwrap_or(0)
    }

    /// The place that the current thread must not go back behind.
    pub(crate) fn bound_now(&self, location: u16) -> u16 {
        let thread = &self.threads[self.current];
        self.bound(location, &thread.before, thread.settled)
    }

    /// The last write in modification order.
    pub(crate) fn latest(&self, location: u16) -> Id {
        let accesses = &self.locations[location].accesses;
        let events = accesses.iter().map(|&stamp| &self.graph.events[stamp as usize]);
        events
            .filter(|event| event.is_write())
            .max_by_key(|event| event.rank)
            .map_or(Id::INIT, |event| event.id)
    }

    /// The exclusive write that follows `write` at once, if there is one.
    pub(crate) fn successor(&self, location: u16, write: Id) -> Option<Id> {
        let accesses = &self.locations[location].accesses;
        accesses.iter().map(|&stamp| &self.graph.events[stamp as usize]).find_map(|event| {
            (event.is_write() && event.exclusive && self.source(event) == write).then_some(event.id)
        })
    }

    /// What the read half of an exclusive write read from.
    pub(crate) fn source(&self, exclusive: &Event) -> Id {
        let read = self.index.get(exclusive.before()).expect("a write half has a read half");
        self.graph.events[read].from
    }

    /// Adds an event of the current thread to the graph and makes it take place.
    pub(crate) fn append(&mut self, event: Event) -> usize {
        let stamp = self.graph.events.len();
        if event.is_write() {
            self.graph.make_room(event.location, event.rank);
        }
        self.graph.events.push(event);
        self.index.insert(event.id, stamp);
        self.meta.push(Meta::default());
        self.commit(stamp);
        stamp
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
        self.nodes += usize::from(sc::is_node(&event));
        if event.is_access() {
            let location = &mut self.locations[event.location];
            location.accesses.push(stamp as u32);
            if let Some(by) = location.retired {
                let (me, label) = (event.id.thread, self.label(event.location));
                let what = format!("thread {me} touches {label} after thread {by} retired it");
                self.fail(FailureKind::UseAfterRetire, what);
            }
        }
    }

    /// Takes into the current thread what `event`, its next, tells it. Returns what a reader that
    /// acquires will learn from the event.
    fn learn(&mut self, event: &Event) -> Clock {
        let source = match event.kind {
            Kind::Read => self.index.get(event.from),
            // A release sequence goes on through read-modify-writes.
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

    /// Whether the current thread's next access could break the order of the fences: only if a
    /// fence happens before it.
    pub(crate) fn after_node(&self) -> bool {
        self.nodes >= 2 && {
            let known = &self.threads[self.current].before;
            self.graph.events.iter().any(|event| sc::is_node(event) && known.covers(event.id))
        }
    }

    /// Whether `event`, the current thread's next, leaves the fences in order.
    pub(crate) fn fences_allow(&mut self, event: Event) -> bool {
        let mut before = self.threads[self.current].before;
        before.include(event.id);
        if event.is_read()
            && acquires(event.order)
            && let Some(source) = self.index.get(event.from)
        {
            before.join(&self.meta[source].message);
        }
        if event.is_write() {
            self.graph.make_room(event.location, event.rank);
        }
        self.index.insert(event.id, self.graph.events.len());
        self.graph.events.push(event);
        self.meta.push(Meta { before, ..Meta::default() });
        let allowed = sc::admits(&self.graph, &self.index, &self.meta);
        self.meta.pop();
        self.graph.events.pop();
        self.index.remove(event.id);
        if event.is_write() {
            self.graph.close_room(event.location, event.rank);
        }
        allowed
    }

    /// Once the run has caught up with its graph: returns whether that is an execution at all. A
    /// read that was given another source may have learned too much for the fences to be in order.
    pub(crate) fn caught_up_well(&mut self) -> bool {
        if !self.checked {
            self.checked = true;
            if self.nodes >= 2 && !sc::consistent(&self.graph, &self.index, &self.meta) {
                self.ending.get_or_insert(Ending::Discarded);
                return false;
            }
        }
        true
    }

    /// All threads' knowledge becomes the setup thread's, for the final check.
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

//! One visible operation: along the graph, or beyond its end.
//!
//! Until the run has caught up with its graph, an operation takes the event that the graph has for
//! it. After that it adds an event; if several events are possible, the decider picks one and the
//! others are stored for later executions.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::clock::Id;
use crate::execution::{Ending, Execution};
use crate::graph::{Event, Kind};
use crate::model::FailureKind;
use crate::op::{Op, Outcome};
use crate::thread::Status;

pub(crate) enum Step {
    Done(Outcome),
    /// The operation must wait.
    Wait,
    /// The execution has ended.
    Stop,
}

/// A write that an operation could read from.
#[derive(Clone, Copy)]
pub(crate) struct Source {
    rank: u16,
    from: Id,
    value: u64,
}

impl Execution {
    /// Performs `op`, as far as possible now.
    pub(crate) fn step(&mut self, op: &Op) -> Step {
        if self.over || (self.ending.is_some() && std::thread::panicking()) {
            return Step::Done(self.afterwards(op));
        }
        if self.ending.is_some() {
            return Step::Stop;
        }
        if let Status::Blocked { stamp, .. } = self.threads[self.current].status {
            if self.force != Some(self.current) {
                return Step::Wait;
            }
            self.graph.events[stamp].forced = true;
            self.threads[self.current].settled = stamp;
            self.meta[stamp].settled = stamp;
            return self.proceed(op, stamp);
        }
        if let Some(stamp) = self.index.get(self.next_id()) {
            return self.follow(op, stamp);
        }
        if !self.caught_up() {
            return Step::Wait;
        }
        if !self.caught_up_well() {
            return Step::Stop;
        }
        if self.graph.events.len() >= self.config.steps {
            let what = format!("no end after {} steps", self.config.steps);
            self.fail(FailureKind::StepLimit, what);
            return Step::Stop;
        }
        let half = self.threads[self.current].half.is_some();
        let forced = self.force == Some(self.current);
        let scheduled = self.decider.schedules() && self.current != 0 && !half && !forced;
        if scheduled && self.granted != Some(self.current) {
            self.threads[self.current].status = self.outlook(op);
            return Step::Wait;
        }
        self.extend(op)
    }

    /// Takes the event that the graph has for the operation.
    fn follow(&mut self, op: &Op, stamp: usize) -> Step {
        if self.scripted && stamp != self.order.len() {
            return Step::Wait;
        }
        let mut event = self.graph.events[stamp];
        let half = self.threads[self.current].half;
        assert!(op.fits(&event, half), "{NOT_THE_SAME}");
        if event.is_read() {
            if self.index.get(event.from).is_some_and(|from| !self.meta[from].executed) {
                return Step::Wait;
            }
            self.locations.bind(op.read_address().expect(NOT_THE_SAME), event.location);
            event.value = self.value(event.from);
            event.order = op.read_order(event.value);
        } else if event.is_write() {
            let (address, value, order) = op.write_part(half).expect(NOT_THE_SAME);
            self.locations.bind(address, event.location);
            (event.value, event.order) = (value, order);
        }
        self.graph.events[stamp] = event;
        self.commit(stamp);
        self.proceed(op, stamp)
    }

    /// Continues after the event at `stamp` has taken place.
    fn proceed(&mut self, op: &Op, stamp: usize) -> Step {
        if self.ending.is_some() {
            return Step::Stop;
        }
        let event = self.graph.events[stamp];
        let me = self.current;
        if event.kind == Kind::Timeout {
            if let Op::Take { deadline: Some(deadline), .. } = *op {
                self.threads[me].time = self.threads[me].time.max(deadline);
            }
            return self.done(0, false);
        }
        if event.is_write() {
            let value = self.threads[me].half.take().unwrap_or(event.value);
            return self.done(value, true);
        }
        if !event.is_read() {
            return self.done(event.value, true);
        }
        if op.keeps(event.value) {
            return self.keep_waiting(op, stamp);
        }
        if op.modifies(event.value) || (op.is_section() && event.value == 0) {
            self.threads[me].half = Some(event.value);
            return self.step(op);
        }
        let ok = matches!(op, Op::Load { .. } | Op::Await { .. } | Op::Spin { .. });
        self.done(event.value, ok)
    }

    fn done(&mut self, value: u64, ok: bool) -> Step {
        self.granted = None;
        self.force = None;
        Step::Done(Outcome { value, ok })
    }

    /// Handles an unsuccessful check of a wait: its budget is spent, or it goes on waiting.
    fn keep_waiting(&mut self, op: &Op, stamp: usize) -> Step {
        let event = self.graph.events[stamp];
        let free = self.may_expire(op);
        let forced = event.forced || self.force == Some(self.current);
        let thread = &mut self.threads[self.current];
        let end = match *op {
            Op::Spin { budget_ns, .. } if free || forced => thread.time + u64::from(budget_ns),
            Op::Take { deadline: Some(deadline), .. } if forced => deadline,
            _ => {
                thread.status = Status::Blocked { stamp, timed: op.is_timed() };
                self.granted = None;
                return Step::Wait;
            }
        };
        if forced {
            thread.forced += 1;
        } else if end > thread.time {
            thread.expired += 1;
        }
        thread.time = thread.time.max(end);
        thread.status = Status::Unknown;
        self.done(event.value, false)
    }

    /// Returns whether a spin may give up after one check.
    fn may_expire(&self, op: &Op) -> bool {
        match *op {
            Op::Spin { budget_ns, .. } => {
                budget_ns == 0 || self.threads[self.current].expired < self.config.expiries
            }
            _ => false,
        }
    }

    /// The state of the thread before its operation.
    fn outlook(&mut self, op: &Op) -> Status {
        match op {
            Op::Await { .. } | Op::Spin { .. } | Op::Take { .. } => {
                let sources = self.sources(op);
                let has_none = sources.is_empty();
                self.spare_sources = sources;
                if has_none { self.waiting(op) } else { Status::Ready }
            }
            _ => Status::Ready,
        }
    }

    fn waiting(&self, op: &Op) -> Status {
        let address = op.read_address().unwrap_or(0);
        Status::Waiting {
            address,
            seen: self.locations.touched(address),
            timed: op.is_timed(),
            parked: matches!(op, Op::Take { .. }),
        }
    }

    /// Adds an event for the operation, or returns that it must wait.
    fn extend(&mut self, op: &Op) -> Step {
        if self.threads[self.current].half.is_some() {
            return self.extend_write(op);
        }
        let id = self.next_id();
        let event = match *op {
            Op::Store { .. } => return self.extend_write(op),
            Op::Fence(order) => Event::new(id, Kind::Fence, order),
            Op::Heavy => Event::new(id, Kind::Heavy, SeqCst),
            Op::Light => Event::new(id, Kind::Light, Relaxed),
            Op::Start => Event::new(id, Kind::Start, Relaxed),
            Op::Choice { what, options } => {
                let picked = self.decider.pick(options as usize) as u64;
                let choice = |value| Event { value, ..Event::new(id, Kind::Choice(what), Relaxed) };
                if self.decider.explores() {
                    for value in (1..options).rev() {
                        self.decider.later.push(self.graph.with(choice(value)));
                    }
                }
                choice(picked)
            }
            _ => return self.extend_read(op),
        };
        let stamp = self.append(event);
        self.proceed(op, stamp)
    }

    fn extend_read(&mut self, op: &Op) -> Step {
        let id = self.next_id();
        let forced = self.force == Some(self.current);
        if forced && matches!(op, Op::Take { .. }) {
            self.threads[self.current].forced += 1;
            let timeout = Event::new(id, Kind::Timeout, Relaxed);
            let stamp = self.append(Event { forced, ..timeout });
            return self.proceed(op, stamp);
        }
        let address = op.read_address().expect("the operation reads");
        let mut sources = if forced {
            let latest = self.locations.located(address).map_or(Id::INIT, |at| self.latest(at));
            vec![Source { rank: self.rank(latest), from: latest, value: self.value(latest) }]
        } else {
            self.sources(op)
        };
        if sources.is_empty() {
            self.spare_sources = sources;
            self.threads[self.current].status = self.waiting(op);
            return Step::Wait;
        }
        let location = self.locations.locate(address);
        let event = |&Source { from, value, .. }: &Source| {
            let read = Event::new(id, Kind::Read, op.read_order(value));
            Event { location, from, value, section: op.is_section(), forced, ..read }
        };
        sources.retain(|source| {
            let is_taken =
                op.modifies(source.value) && self.successor(location, source.from).is_some();
            if is_taken && self.decider.explores() {
                // Another read-modify-write has already read that value. The two can't be in one
                // graph; but after this one, the other might have read another value.
                self.revisit_from_conflict(op, event(source));
            }
            !is_taken
        });
        if sources.is_empty() {
            self.spare_sources = sources;
            self.ending.get_or_insert(Ending::Discarded);
            return Step::Stop;
        }
        let picked = self.decider.pick(sources.len());
        if self.decider.explores() {
            for source in sources[1..].iter().rev() {
                self.decider.later.push(self.graph.with(event(source)));
            }
        }
        let picked = event(&sources[picked]);
        self.spare_sources = sources;
        let stamp = self.append(picked);
        self.proceed(op, stamp)
    }

    fn revisit_from_conflict(&mut self, op: &Op, read: Event) {
        let Some((_, value, order)) = op.write_part(Some(read.value)) else { return };
        let id = Id { index: read.id.index + 1, ..read.id };
        let write = Event {
            location: read.location,
            value,
            exclusive: true,
            ..Event::new(id, Kind::Write, order)
        };
        self.revisit(write, Some(read));
    }

    /// The writes that a read may read from, latest first. Empty if no write can end a wait. The
    /// caller returns the memory to `spare_sources`.
    fn sources(&mut self, op: &Op) -> Vec<Source> {
        let address = op.read_address().expect("the operation reads");
        let waits = matches!(op, Op::Await { .. } | Op::Spin { .. } | Op::Take { .. })
            && !self.may_expire(op);
        let mut found = std::mem::take(&mut self.spare_sources);
        found.clear();
        let initial = Source { rank: 0, from: Id::INIT, value: 0 };
        let Some(location) = self.locations.located(address) else {
            if !waits || !op.keeps(0) {
                found.push(initial);
            }
            return found;
        };
        let bound = self.bound_now(location);
        for access in self.locations[location].writes().filter(|write| write.rank() >= bound) {
            let value = self.graph.events[access.stamp as usize].value;
            found.push(Source { rank: access.rank(), from: access.id, value });
        }
        if bound == 0 {
            found.push(initial);
        }
        found.sort_unstable_by_key(|source| std::cmp::Reverse(source.rank));
        let latest = found[0];
        if waits {
            found.retain(|source| !op.keeps(source.value));
        }
        // The latest write can't break the order of the fences; a wait may have only other sources
        // left.
        let others = found.iter().any(|source| source.from != latest.from);
        if others && (self.after_node() || op.is_section()) {
            let read = Event {
                location,
                section: op.is_section(),
                ..Event::new(self.next_id(), Kind::Read, Relaxed)
            };
            found.retain(|&Source { from, value, .. }| {
                let order = op.read_order(value);
                from == latest.from || self.fences_allow(Event { from, value, order, ..read })
            });
        }
        // The wait may have missed the values that end it: then it has seen the latest value and
        // goes on waiting.
        if waits && !found.is_empty() && op.keeps(latest.value) {
            found.push(latest);
        }
        found
    }

    fn extend_write(&mut self, op: &Op) -> Step {
        let half = self.threads[self.current].half;
        let (address, value, order) = op.write_part(half).expect("the operation writes");
        let location = self.locations.locate(address);
        let exclusive = half.is_some() && !op.is_section();
        let write = Event {
            location,
            value,
            exclusive,
            section: op.is_section(),
            ..Event::new(self.next_id(), Kind::Write, order)
        };
        if self.decider.explores() {
            self.revisit(write, None);
        }
        let ranks = self.ranks(write);
        if ranks.is_empty() {
            self.spare_ranks = ranks;
            self.ending.get_or_insert(Ending::Discarded);
            return Step::Stop;
        }
        let picked = self.decider.pick(ranks.len());
        if self.decider.explores() {
            for &rank in ranks[1..].iter().rev() {
                let mut graph = self.graph.clone();
                graph.make_room(location, rank);
                graph.events.push(Event { rank, ..write });
                self.decider.later.push(graph);
            }
        }
        let rank = ranks[picked];
        self.spare_ranks = ranks;
        let stamp = self.append(Event { rank, ..write });
        self.proceed(op, stamp)
    }

    /// The places that a write may take in its modification order, latest first. The caller returns
    /// the memory to `spare_ranks`.
    fn ranks(&mut self, write: Event) -> Vec<u16> {
        let location = write.location;
        let last = self.rank(self.latest(location)) + 1;
        let mut ranks = std::mem::take(&mut self.spare_ranks);
        ranks.clear();
        if write.exclusive {
            let source = self.source(&write);
            let taken = self.successor(location, source).is_some();
            ranks.extend((!taken).then(|| self.rank(source) + 1));
        } else {
            let bound = self.bound_now(location);
            ranks.extend((bound + 1..=last).rev());
        }
        if ranks.len() > 1 {
            for access in self.locations[location].writes() {
                if self.graph.events[access.stamp as usize].exclusive {
                    // There is no place between a read-modify-write and its source.
                    ranks.retain(|&rank| rank != access.rank());
                }
            }
        }
        // The latest place can't break the order of the fences, except in a section: it is one node
        // with its test, which may have been too early.
        let safe = |rank: u16| rank == last && !write.section;
        if !ranks.iter().copied().all(safe) && self.after_node() {
            ranks.retain(|&rank| safe(rank) || self.fences_allow(Event { rank, ..write }));
        }
        ranks
    }

    /// Executes an operation after all threads have ended: for destructors, which run in sequence.
    fn afterwards(&mut self, op: &Op) -> Outcome {
        let done = |value, ok| Outcome { value, ok };
        let Some(address) = op.read_address().or(match *op {
            Op::Store { address, .. } => Some(address),
            _ => None,
        }) else {
            return done(0, true);
        };
        let last = self.locations.located(address).map_or(0, |at| self.value(self.latest(at)));
        let old = self.private.get(&address).copied().unwrap_or(last);
        match *op {
            Op::Store { value, .. } => {
                self.private.insert(address, value);
                done(old, true)
            }
            Op::Modify { new, .. } => match new(old) {
                Some(new) => {
                    self.private.insert(address, new);
                    done(old, true)
                }
                None => done(old, false),
            },
            _ => done(old, !op.keeps(old) && !op.is_section()),
        }
    }
}

const NOT_THE_SAME: &str = "the model is not deterministic: it does something else this time";

//! The queues of events to be called, and their order.
//!
//! | queue | by | first is |
//! |---|---|---|
//! | `timers` | release, then turn | the one that is due the longest |
//! | `work` | user virtual time, then turn | the most important |
//!
//! An event is in neither (it waits to be woken), in one, or in both: a task that sleeps until a
//! given time and was woken earlier.
//!
//! - LOOP-1 (order): a timer that is due goes before all work, the earliest release first; among
//!   events with the same release or importance, the one submitted first.
//! - LOOP-2 (no timer is dropped): a timer leaves its queue only to be called, or because its event
//!   was cancelled.
//! - LOOP-3: each entry of a queue names an event that exists, which knows its place there.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use super::context::Callback;
use super::step::{Due, Step};
use super::wait::Wait;

/// The place of an event: its release or importance, and the turn at which it was put there.
type Place = (u64, u64);

/// The events of a loop.
pub(super) struct Agenda<W: Wait> {
    events: BTreeMap<u64, Box<Entry<W>>>,
    timers: BTreeMap<Place, u64>,
    work: BTreeMap<Place, u64>,
    turn: u64,
}

/// An event that is not being called: one allocation, which includes its callback.
pub(super) struct Entry<W: Wait, C: ?Sized = dyn Callback<W>> {
    /// The place of the event's name, under which it counts.
    pub(super) kind: usize,
    /// The latest user virtual time of the event.
    pub(super) importance: u64,
    /// The reports of its source since the event was last called.
    pub(super) ready: W::Ready,
    /// Whether the event has a source.
    pub(super) has_source: bool,
    timer: Option<Place>,
    work: Option<Place>,
    pub(super) callback: C,
}

/// An event that must be called next.
pub(super) struct Taken<W: Wait> {
    pub(super) id: u64,
    pub(super) entry: Box<Entry<W>>,
    /// The release, if the event is called because that has passed.
    pub(super) release_ns: Option<u64>,
}

impl<W: Wait, C> Entry<W, C> {
    /// Creates an entry that is in no queue.
    pub(super) fn new(callback: C) -> Box<Self> {
        Box::new(Self {
            kind: 0,
            importance: 0,
            ready: W::Ready::default(),
            has_source: false,
            timer: None,
            work: None,
            callback,
        })
    }
}

impl<W: Wait> Agenda<W> {
    pub(super) fn new() -> Self {
        let (events, timers, work) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { events, timers, work, turn: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns the number of events.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// Adds a new event.
    pub(super) fn insert(&mut self, id: u64, mut entry: Box<Entry<W>>, due: Due) {
        let step = match due {
            Due::Release(at) => Step::At(at),
            Due::Importance(importance) => Step::More(importance),
            Due::Woken(importance) => {
                entry.importance = importance;
                Step::Asleep
            }
        };
        self.put_back(id, entry, step);
    }

    /// Puts back an event that was called and must be called again.
    pub(super) fn put_back(&mut self, id: u64, entry: Box<Entry<W>>, step: Step) {
        self.events.insert(id, entry);
        self.stand(id, step);
    }

    /// Puts an existing event into the queue that `step` names.
    fn stand(&mut self, id: u64, step: Step) {
        let Some(entry) = self.events.get_mut(&id) else { return };
        self.turn += 1;
        match step {
            Step::At(release_ns) => {
                let place = (release_ns, self.turn);
                entry.timer = Some(place);
                self.timers.insert(place, id);
            }
            Step::More(importance) => {
                let place = (importance, self.turn);
                entry.importance = importance;
                entry.work = Some(place);
                self.work.insert(place, id);
            }
            Step::Asleep | Step::Done => {}
        }
    }

    /// Puts an event into the work queue, with the given importance or its last one. If it is there
    /// already, it moves forward to that importance, or stays. Returns whether the event exists.
    pub(super) fn wake(&mut self, id: u64, importance: Option<u64>) -> bool {
        let Some(entry) = self.events.get_mut(&id) else { return false };
        let importance = importance.unwrap_or(entry.importance);
        if let Some(place) = entry.work.take_if(|(stands, _)| importance < *stands) {
            self.work.remove(&place);
        }
        if entry.work.is_none() {
            self.stand(id, Step::More(importance));
        }
        true
    }

    /// Returns whether the event exists and is not being called.
    pub(super) fn is_there(&self, id: u64) -> bool {
        self.events.contains_key(&id)
    }

    /// Returns whether an event is in the work queue.
    pub(super) fn is_ready(&self, id: u64) -> bool {
        self.events.get(&id).is_some_and(|entry| entry.work.is_some())
    }

    /// Records the report of a source, and wakes its event.
    pub(super) fn tell(&mut self, id: u64, ready: W::Ready) {
        if let Some(entry) = self.events.get_mut(&id) {
            entry.ready = entry.ready | ready;
            self.wake(id, None);
        }
    }

    /// Records that the event has a source from now on.
    pub(super) fn give_source(&mut self, id: u64) {
        if let Some(entry) = self.events.get_mut(&id) {
            entry.has_source = true;
        }
    }

    /// Requests that an event be cancelled; returns whether it may be dropped now. `None`: there is
    /// no such event.
    pub(super) fn cancel(&mut self, id: u64) -> Option<bool> {
        self.events.get_mut(&id).map(|entry| entry.callback.cancel())
    }

    /// Requests that all events be cancelled, up to the first that may not be dropped yet; returns
    /// whether all may.
    pub(super) fn cancel_all(&mut self) -> bool {
        self.events.values_mut().all(|entry| entry.callback.cancel())
    }

    /// Returns the numbers of all events.
    pub(super) fn ids(&self) -> impl Iterator<Item = u64> {
        self.events.keys().copied()
    }

    /// Removes an event.
    pub(super) fn remove(&mut self, id: u64) -> Option<Box<Entry<W>>> {
        let mut entry = self.events.remove(&id)?;
        // LOOP-3.
        if let Some(place) = entry.timer.take() {
            self.timers.remove(&place);
        }
        if let Some(place) = entry.work.take() {
            self.work.remove(&place);
        }
        Some(entry)
    }

    /// Returns the earliest release.
    pub(super) fn release_ns(&self) -> Option<u64> {
        self.timers.first_key_value().map(|((release_ns, _), _)| *release_ns)
    }

    /// Returns the least user virtual time.
    pub(super) fn importance(&self) -> Option<u64> {
        self.work.first_key_value().map(|((importance, _), _)| *importance)
    }

    /// Returns the turn of the latest placement.
    pub(super) fn turn(&self) -> u64 {
        self.turn
    }

    /// LOOP-1: takes the timer that must be called next, if it is due at `by_ns`, and was queued by
    /// turn `by_turn`.
    pub(super) fn take_due(&mut self, by_ns: u64, by_turn: u64) -> Option<Taken<W>> {
        let (&(release_ns, turn), &id) = self.timers.first_key_value()?;
        if release_ns > by_ns || turn > by_turn {
            return None;
        }
        self.remove(id).map(|entry| Taken { id, entry, release_ns: Some(release_ns) })
    }

    /// LOOP-1: takes the work that must be called next.
    pub(super) fn take_work(&mut self) -> Option<Taken<W>> {
        let id = *self.work.first_key_value()?.1;
        self.remove(id).map(|entry| Taken { id, entry, release_ns: None })
    }
}

//! Submitting, waking and cancelling events.

use alloc::boxed::Box;

use super::agenda::Entry;
use super::context::{Callback, Context};
use super::event::Event;
use super::name::Name;
use super::step::{Due, EventId};
use super::{EventLoop, Wait};

impl<W: Wait> EventLoop<W> {
    /// Submits an event, which is called once or in steps. Allocates once, also for several steps.
    pub fn submit<C: Callback<W>>(&mut self, event: Event<W, C>) -> EventId {
        let Event { due, name, callback, .. } = event;
        let id = self.shared.number();
        self.put_in(id, due, name, Entry::new(callback));
        self.arm();
        EventId(id)
    }

    /// Submits an event that is called when a source reports something, until it is
    /// [done](super::Step::Done) or cancelled. The event is [woken](Self::wake) each time.
    ///
    /// # Errors
    ///
    /// If the source can't be waited for; the event is then dropped.
    pub fn watch<C: Callback<W>>(
        &mut self,
        source: W::Source,
        event: Event<W, C>,
    ) -> Result<EventId, W::Error> {
        let id = self.shared.number();
        self.wait.add(source, id)?;
        self.sources += 1;
        let Event { due, name, callback, .. } = event;
        self.put_in(id, due, name, Entry::new(callback));
        self.agenda.give_source(id);
        self.arm();
        Ok(EventId(id))
    }

    /// Adds a new event.
    pub(super) fn put_in(&mut self, id: u64, due: Due, name: Name, mut entry: Box<Entry<W>>) {
        let (kind, is_new) = self.kinds.place(name);
        if is_new {
            self.shared.add_name(name);
        }
        entry.kind = kind;
        self.agenda.insert(id, entry, due);
        self.publish();
    }

    /// Cancels an event; returns whether it existed. An event that is being called ends with this
    /// call.
    pub fn cancel(&mut self, id: EventId) -> bool {
        if let Some(current) = &mut self.current
            && current.id == id.0
        {
            return !core::mem::replace(&mut current.cancelled, true);
        }
        // The event may still be in the inbox.
        self.take_in();
        self.forget(id.0)
    }

    /// Cancels an event that is not being called; returns whether it existed.
    pub(super) fn forget(&mut self, id: u64) -> bool {
        match self.agenda.cancel(id) {
            None => return false,
            Some(false) => return true,
            Some(true) => {}
        }
        let Some(entry) = self.agenda.remove(id) else { return false };
        if entry.has_source {
            self.end_source(id);
        }
        self.publish();
        // Last: the drop may run any code.
        drop(entry);
        true
    }

    /// Removes the source of an event that has ended.
    pub(super) fn end_source(&mut self, id: u64) {
        self.wait.remove(id);
        self.sources -= 1;
    }

    /// Queues an event as work, with its last importance, unless it is queued already; returns
    /// whether it existed. An event that also has a release time is called once, for whichever is
    /// first.
    pub fn wake(&mut self, id: EventId) -> bool {
        if let Some(current) = &mut self.current
            && current.id == id.0
        {
            current.woken = true;
            return true;
        }
        let mut there = self.agenda.wake(id.0, None);
        if !there {
            // The event may still be in the inbox.
            self.take_in();
            there = self.agenda.wake(id.0, None);
        }
        self.arm();
        there
    }
}

impl<W: Wait> Context<'_, W> {
    /// Like [`EventLoop::submit`].
    pub fn submit<C: Callback<W>>(&mut self, event: Event<W, C>) -> EventId {
        self.events.submit(event)
    }

    /// Like [`EventLoop::watch`].
    ///
    /// # Errors
    ///
    /// If the source can't be waited for.
    pub fn watch<C: Callback<W>>(
        &mut self,
        source: W::Source,
        event: Event<W, C>,
    ) -> Result<EventId, W::Error> {
        self.events.watch(source, event)
    }
}

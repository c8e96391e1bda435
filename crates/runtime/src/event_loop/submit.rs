//! How events come into a loop, and out of it again.

use alloc::boxed::Box;

use super::agenda::Entry;
use super::context::{Callback, Context};
use super::event::Event;
use super::name::Name;
use super::step::{Due, EventId};
use super::{EventLoop, Wait};

impl<W: Wait> EventLoop<W> {
    /// Submits an event, which is called once or in steps. It allocates, once for all steps.
    pub fn submit<C: Callback<W>>(&mut self, event: Event<W, C>) -> EventId {
        let Event { due, name, callback, .. } = event;
        let id = self.shared.number();
        self.put_in(id, due, name, Entry::new(callback));
        self.arm();
        EventId(id)
    }

    /// Submits an event that is called when a source says so, until it is [done](super::Step::Done)
    /// or cancelled. The event is [woken](Self::wake) each time.
    ///
    /// # Errors
    ///
    /// If the source can't be waited for; then there is no such event.
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

    /// Puts a new event in.
    pub(super) fn put_in(&mut self, id: u64, due: Due, name: Name, mut entry: Box<Entry<W>>) {
        let (kind, is_new) = self.kinds.place(name);
        if is_new {
            self.shared.add_name(name);
        }
        entry.kind = kind;
        self.agenda.insert(id, entry, due);
        self.publish();
    }

    /// Forgets about an event; returns whether it was there. An event that is being called ends
    /// with this call.
    pub fn cancel(&mut self, id: EventId) -> bool {
        if let Some(current) = &mut self.current
            && current.id == id.0
        {
            return !core::mem::replace(&mut current.cancelled, true);
        }
        // The event may be on its way.
        self.take_in();
        self.forget(id.0)
    }

    /// Forgets about an event that is not being called; returns whether it was there.
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
        // Last: the drop may do anything.
        drop(entry);
        true
    }

    /// The event of a source is over.
    pub(super) fn end_source(&mut self, id: u64) {
        self.wait.remove(id);
        self.sources -= 1;
    }

    /// Calls an event as work, by the importance that it has had last, unless it is to be called
    /// already; returns whether it was there. An event that is also due at a time is called once,
    /// for whatever is first.
    pub fn wake(&mut self, id: EventId) -> bool {
        if let Some(current) = &mut self.current
            && current.id == id.0
        {
            current.woken = true;
            return true;
        }
        let mut there = self.agenda.wake(id.0, None);
        if !there {
            // The event may be on its way.
            self.take_in();
            there = self.agenda.wake(id.0, None);
        }
        self.arm();
        there
    }
}

impl<W: Wait> Context<'_, W> {
    /// As [`EventLoop::submit`].
    pub fn submit<C: Callback<W>>(&mut self, event: Event<W, C>) -> EventId {
        self.events.submit(event)
    }

    /// As [`EventLoop::watch`].
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

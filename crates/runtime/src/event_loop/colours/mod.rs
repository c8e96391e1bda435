//! Colours: one application's events on several loops, each of a thread of its own.
//!
//! Events of one colour are never called at the same time, and in the order in which they would be
//! on one loop; those of other colours may be. So events that have always run on one loop go on as
//! one colour, and independent ones get another. Each loop has its timers and its own work, as
//! before; coloured events are best effort among that work, and may go to any loop. A loop that has
//! nothing else to do, or fewer colours, takes a whole one from another.
//!
//! - COLOUR-1: of a colour, one event is called at a time.
//! - COLOUR-2 (order): of a colour, the most important is called first, and of those as important
//!   the one that was submitted first.
//! - COLOUR-3 (none is lost or stranded): an event that waits is of a colour that runs, or is ready
//!   on a loop; and while one is ready, some loop is awake and looks for it. A loop is idle only
//!   when it has found that none is. A thread that makes one ready under the same lock wakes an
//!   idle loop, and the next one too where that loop has other work of its own; and so does a loop
//!   that goes on with something else, or stops. Where all loops have something to do, events that
//!   one of them has left for long, or for good, are called by the others, if they go before their
//!   own.
//! - COLOUR-4: where colours that always have events neither come nor go, loops that take some have
//!   as many ready as others, to one.
//! - COLOUR-5: among a loop's own work, the first event that it is to take stands where its
//!   importance has it.
//!
//! *Turned down:* queues without locks (each event is a callback, beside which a lock that is held
//! for a look at two trees is little; a colour that moves would be a second protocol); threads that
//! share one agenda (its timers would belong to no thread); coloured timers (one that is due would
//! wait for an event of its colour on another loop: a timer submits coloured events).
//!
//! After Zeldovich, Yip, Dabek, Morris, Mazières and Kaashoek, "Multiprocessor Support for
//! Event-Driven Programs" (USENIX 2003), §3.

mod palette;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use super::EventLoop;
use super::context::Context;
use super::event::Event;
use super::handle::Handle;
use super::step::{EventId, Step};
use super::wait::Wait;

pub use palette::{Call, Next, Palette, Taken};

/// The code of an event: it returns the importance with which it is to be called again, if it is.
type Work<W> = Box<dyn FnMut(&mut Context<'_, W>) -> Option<u64> + Send>;

/// The coloured events of several loops. A clone is of the same loops.
pub struct Colours<W: Wait>(Arc<Shared<W>>);

struct Shared<W: Wait> {
    loops: usize,
    palette: Palette<W::Platform, Work<W>, Bell<W>>,
}

/// The means to tell a loop that there is something.
struct Bell<W: Wait> {
    handle: Handle<W>,
    id: EventId,
}

impl<W: Wait> Clone for Bell<W> {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), id: self.id }
    }
}

impl<W: Wait> Colours<W> {
    /// Creates the colours for `loops` loops, which are to [join](Self::join).
    ///
    /// # Panics
    ///
    /// If `loops` is 0.
    #[must_use]
    pub fn new(loops: usize) -> Self {
        Self(Arc::new(Shared { loops, palette: Palette::new(loops) }))
    }

    /// Makes a loop take part, as number `number`, until it is dropped; call it before the loop is
    /// run. From then on the loop waits for events until it is [stopped](Self::stop).
    ///
    /// # Panics
    ///
    /// If there is no such number.
    pub fn join(&self, number: usize, events: &mut EventLoop<W>) {
        let loops = self.0.loops;
        assert!(number < loops, "loop {number} of {loops}: they are numbered from 0");
        let mut seat = Seat { shared: self.0.clone(), number };
        let id = events.submit(
            Event::best_effort_in_steps(0, move |context| seat.step(context)).named("coloured"),
        );
        let bell = Bell { handle: events.handle(), id };
        let shared = self.0.clone();
        // Events that are there may be taken by another loop before this one.
        events.on_passed_over(id, move || shared.wake(shared.palette.idler()));
        // Outside of the lock.
        drop(self.0.palette.join(number, bell));
    }

    /// Submits an event of a colour, which is called once, as best effort, on any of the loops.
    /// Blocks no longer than other threads put in or take out an event; makes a system call if it
    /// wakes a loop.
    ///
    /// What the caller did before happens before the event, and so does what earlier events of the
    /// colour did.
    pub fn submit<F>(&self, colour: u64, importance: u64, event: F)
    where
        F: FnOnce(&mut Context<'_, W>) + Send + 'static,
    {
        let mut event = Some(event);
        self.submit_in_steps(colour, importance, move |context| {
            if let Some(event) = event.take() {
                event(context);
            }
            None
        });
    }

    /// Like [`submit`](Self::submit), for an event that is called again with the importance that it
    /// returns, until it returns none; others of its colour that are as important are called
    /// before. Long work should stop at [`Context::is_over`].
    pub fn submit_in_steps<F>(&self, colour: u64, importance: u64, event: F)
    where
        F: FnMut(&mut Context<'_, W>) -> Option<u64> + Send + 'static,
    {
        self.0.wake(self.0.palette.put(colour, importance, Box::new(event)));
    }

    /// Stops all loops that have joined, each after the callback that it is in. Events that wait
    /// are kept for loops that join later.
    pub fn stop(&self) {
        for bell in self.0.palette.bells() {
            // A loop that is gone has stopped.
            let _ = bell.handle.stop();
        }
    }
}

impl<W: Wait> Shared<W> {
    /// Tells that loop, and others if it has something else to do, which may be more important and
    /// go on for ever: the first loop that comes takes what there is.
    fn wake(&self, mut call: Option<Call<Bell<W>>>) {
        while let Some(Call { bell, importance, was_idle }) = call {
            // A loop that is gone leaves, and makes others look then.
            let slept = bell.handle.raise(bell.id, importance).unwrap_or(true);
            call = if slept && was_idle { None } else { self.palette.idler() };
        }
    }
}

/// The event of a loop that calls coloured ones.
struct Seat<W: Wait> {
    shared: Arc<Shared<W>>,
    number: usize,
}

impl<W: Wait> Seat<W> {
    fn step(&mut self, context: &mut Context<'_, W>) -> Step {
        let Some(Taken { colour, mut event, .. }) = self.shared.palette.take(self.number) else {
            return Step::Asleep;
        };
        let called = Called { seat: self, colour };
        let again = event(context);
        let next = called.end(again.map(|importance| (importance, event)));
        next.map_or(Step::Asleep, Step::More)
    }

    fn done(&self, colour: u64, again: Option<(u64, Work<W>)>) -> Option<u64> {
        let Next { wake, importance } = self.shared.palette.done(self.number, colour, again);
        self.shared.wake(wake);
        importance
    }
}

/// The loop is gone, or no longer takes part because an event has panicked: others go on.
impl<W: Wait> Drop for Seat<W> {
    fn drop(&mut self) {
        let (bell, wake) = self.shared.palette.leave(self.number);
        self.shared.wake(wake);
        drop(bell);
    }
}

/// A colour runs, until its event has returned or panicked.
struct Called<'a, W: Wait> {
    seat: &'a Seat<W>,
    colour: u64,
}

impl<W: Wait> Called<'_, W> {
    fn end(self, again: Option<(u64, Work<W>)>) -> Option<u64> {
        let (seat, colour) = (self.seat, self.colour);
        core::mem::forget(self);
        seat.done(colour, again)
    }
}

impl<W: Wait> Drop for Called<'_, W> {
    fn drop(&mut self) {
        // COLOUR-3: what its loop would take is another's, when the loop leaves.
        let _ = self.seat.done(self.colour, None);
    }
}

impl<W: Wait> Clone for Colours<W> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<W: Wait> fmt::Debug for Colours<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Colours")
    }
}

//! Colours: events of one application on several loops, each on its own thread.
//!
//! Events of one colour are never called at the same time, and are called in the order in which
//! they would be on one loop; events of different colours may run in parallel. So events that have
//! always run on one loop become one colour, and independent ones get another. Each loop keeps its
//! timers and its own work; coloured events are best-effort work, and may run on any loop. A loop
//! that has nothing else to do, or fewer colours, takes a whole colour from another.
//!
//! - COLOUR-1: of a colour, one event is called at a time.
//! - COLOUR-2 (order): of a colour, the most important event is called first, and of those with the
//!   same importance the one that was submitted first.
//! - COLOUR-3 (none is lost or stranded): an event that waits is of a colour that runs, or is ready
//!   on a loop; and while one is ready, some loop is awake and looks for it. A loop is idle only
//!   when it has found that none is ready. A thread that makes one ready under the same lock wakes
//!   an idle loop, and the next one too if that loop has other work of its own; and so does a loop
//!   that goes on with something else, or stops. If all loops are busy, events that one of them has
//!   left for long, or for good, are called by the others, if they go before their own.
//! - COLOUR-4: while colours that always have events neither come nor go, the numbers of ready
//!   colours on loops that take some differ by at most one.
//! - COLOUR-5: among a loop's own work, the next coloured event of the loop is queued with its own
//!   importance.
//!
//! *Turned down:* queues without locks (each event is a callback, compared with which a lock held
//! for two tree lookups costs little; a colour that moves would need a second protocol); threads
//! that share one agenda (its timers would belong to no thread); coloured timers (one that is due
//! would wait for an event of its colour on another loop: a timer submits coloured events instead).
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

/// The code of an event: it returns the importance with which it must be called again, if any.
type Work<W> = Box<dyn FnMut(&mut Context<'_, W>) -> Option<u64> + Send>;

/// The coloured events of several loops. A clone refers to the same loops.
pub struct Colours<W: Wait>(Arc<Shared<W>>);

struct Shared<W: Wait> {
    loops: usize,
    palette: Palette<W::Platform, Work<W>, Bell<W>>,
}

/// The means to notify a loop of events.
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
    /// Creates the colours for `loops` loops, each of which must [join](Self::join).
    ///
    /// # Panics
    ///
    /// If `loops` is 0.
    #[must_use]
    pub fn new(loops: usize) -> Self {
        Self(Arc::new(Shared { loops, palette: Palette::new(loops) }))
    }

    /// Makes a loop take part, as number `number`, until it is dropped; must be called before the
    /// loop is run. From then on the loop waits for events until it is [stopped](Self::stop).
    ///
    /// # Panics
    ///
    /// If `number` is not less than the number of loops.
    pub fn join(&self, number: usize, events: &mut EventLoop<W>) {
        let loops = self.0.loops;
        assert!(number < loops, "loop {number} of {loops}: they are numbered from 0");
        let mut seat = Seat { shared: self.0.clone(), number };
        let id = events.submit(
            Event::best_effort_in_steps(0, move |context| seat.step(context)).named("coloured"),
        );
        let bell = Bell { handle: events.handle(), id };
        let shared = self.0.clone();
        // Another loop may take waiting events before this one.
        events.on_passed_over(id, move || shared.wake(shared.palette.idler()));
        // Dropped outside of the lock.
        drop(self.0.palette.join(number, bell));
    }

    /// Submits an event of a colour, which is called once, as best effort, on any of the loops.
    /// Blocks at most while other threads add or remove an event; makes a system call if it wakes a
    /// loop.
    ///
    /// The caller's earlier writes, and those of earlier events of the colour, happen before the
    /// event.
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
    /// returns, until it returns `None`; other events of its colour with the same importance are
    /// called before. Long work should stop at [`Context::is_over`].
    pub fn submit_in_steps<F>(&self, colour: u64, importance: u64, event: F)
    where
        F: FnMut(&mut Context<'_, W>) -> Option<u64> + Send + 'static,
    {
        self.0.wake(self.0.palette.put(colour, importance, Box::new(event)));
    }

    /// Stops all loops that have joined, each after its present callback. Waiting events are kept
    /// for loops that join later.
    pub fn stop(&self) {
        for bell in self.0.palette.bells() {
            // A loop that is gone has stopped already.
            let _ = bell.handle.stop();
        }
    }
}

impl<W: Wait> Shared<W> {
    /// Notifies the loop, and others if it has other work, which may be more important and endless:
    /// the first loop that looks takes the event.
    fn wake(&self, mut call: Option<Call<Bell<W>>>) {
        while let Some(Call { bell, importance, was_idle }) = call {
            // A loop that is gone leaves, and then wakes others.
            let slept = bell.handle.raise(bell.id, importance).unwrap_or(true);
            call = if slept && was_idle { None } else { self.palette.idler() };
        }
    }
}

/// The event of a loop that calls coloured events.
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

/// Runs when the loop is dropped, or no longer takes part because an event has panicked: others go
/// on.
impl<W: Wait> Drop for Seat<W> {
    fn drop(&mut self) {
        let (bell, wake) = self.shared.palette.leave(self.number);
        self.shared.wake(wake);
        drop(bell);
    }
}

/// A colour that runs, until its event has returned or panicked.
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
        // COLOUR-3: when the loop leaves, another one gets the events that it would take.
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

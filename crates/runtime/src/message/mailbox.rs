//! The end of a mailbox that its owner has: it delivers, at the owner's safe points.
//!
//! | line | what | written by |
//! |---|---|---|
//! | | the [`Ring`] | posters, and the owner |
//! | 0 | `signals`: bit `i` is that of action `i`, bit 63 is `CLOSED` | who signals, the owner |
//! | 1 | `bell` | the owner before and after it sleeps, who wakes it |
//! | 2 | `room`: who waits for room | those |
//!
//! - ROOM (no lost wake): who waits for room is on the list, and then tries once more; the owner
//!   makes room, and then looks at the list, when it polls next. For each slot it makes free it
//!   notifies one.
//!
//! The look at the list is left to the next poll, found empty or not, because each batch begins
//! with a fence anyway.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use antiphon_platform::{
    Atomic, AtomicInteger, Budget, Deadline, Hint, Notify, Parked, Platform, Ticket,
};
use antiphon_sync::nap;
use antiphon_sync::wait::Condvar;

use super::bell::Bell;
use super::pulse::Pulse;
use super::ring::{Cursor, Ring};
use super::{Actions, Line, Message, Park, Sender};

/// How many messages a [`Mailbox::poll`] delivers at most.
pub const BATCH: u32 = 64;

/// In `signals`.
pub(super) const CLOSED: u64 = 1 << 63;

/// What both ends share.
pub(super) struct Shared<P: Platform, N: Notify> {
    pub(super) ring: Ring<P>,
    pub(super) signals: Line<P::U64>,
    pub(super) bell: Line<Bell<P>>,
    pub(super) room: Condvar<P>,
    pub(super) notify: N,
    pub(super) actions: Actions<P>,
}

/// The owner's end: whoever has it runs what is posted. It may be sent to another thread.
///
/// When it is dropped it is closed, and what was not delivered is gone: see
/// [`close`](Self::close).
pub struct Mailbox<P: Platform, N: Notify = Park<P>> {
    shared: Arc<Shared<P, N>>,
    pulse: Arc<Pulse<P>>,
    cursor: Cursor,
    /// How many slots were freed since waiting posters were told.
    freed: u64,
    spin_ns: u32,
}

/// What a poll has delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Delivered {
    /// How many messages ran their actions.
    pub messages: u32,
    /// How many actions were run for signals.
    pub signals: u32,
    /// How many messages and signals were for actions that are not registered, and ran nothing.
    pub strays: u32,
}

impl Delivered {
    /// Whether there was nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.messages == 0 && self.signals == 0 && self.strays == 0
    }

    fn count(&mut self, ran: bool, kind: impl FnOnce(&mut Self) -> &mut u32) {
        *(if ran { kind(self) } else { &mut self.strays }) += 1;
    }
}

impl<P: Platform, N: Notify> Mailbox<P, N> {
    /// How long [`wait`](Self::wait) spins before it sleeps, in nanoseconds, if nothing else is
    /// said: about what it costs to sleep and be woken.
    pub const SPIN_NS: u32 = 20_000;
    /// How long signals may go unseen while the owner spins for messages, in nanoseconds.
    const SLICE_NS: u32 = 200;

    /// A mailbox for at least `capacity` messages (the next power of two), which run actions of
    /// `actions`.
    #[must_use]
    pub fn new(actions: &Actions<P>, capacity: usize) -> Self
    where
        N: Default,
    {
        Self::with_notify(actions, capacity, N::default())
    }

    /// As [`new`](Self::new), with an owner that sleeps in its own way.
    #[must_use]
    pub fn with_notify(actions: &Actions<P>, capacity: usize, notify: N) -> Self {
        let shared = Shared {
            ring: Ring::new(capacity),
            signals: Line(P::U64::ZERO),
            bell: Line(Bell::NEW),
            room: Condvar::NEW,
            notify,
            actions: actions.clone(),
        };
        let (pulse, cursor) = (actions.join(), Cursor::default());
        Self { shared: Arc::new(shared), pulse, cursor, freed: 0, spin_ns: Self::SPIN_NS }
    }

    /// Has [`wait`](Self::wait) spin for so many nanoseconds before it sleeps; 0 is not at all.
    /// Where threads outnumber CPUs it does not spin in any case.
    #[must_use]
    pub fn spinning(mut self, ns: u32) -> Self {
        self.spin_ns = ns;
        self
    }

    /// What posts to this mailbox.
    #[must_use]
    pub fn sender(&self) -> Sender<P, N> {
        Sender(self.shared.clone())
    }

    /// How the owner sleeps, for event loops that do so by themselves.
    #[must_use]
    pub fn notifier(&self) -> &N {
        &self.shared.notify
    }

    /// Delivers what is there: signals, and [`BATCH`] messages at most. Does not block, but for
    /// what the actions do.
    pub fn poll(&mut self) -> Delivered {
        let mut delivered = Delivered::default();
        if !self.is_pending() && self.freed == 0 {
            return delivered;
        }
        let Self { shared, pulse, cursor, freed, .. } = self;
        // ROOM: the fence of a beat pairs with the one in `Sender::post_wait`.
        let beat = pulse.begin();
        let mut owed = core::mem::take(freed);
        while owed > 0 && shared.room.notify_one() {
            owed -= 1;
        }
        let read = Reading { ring: &shared.ring, cursor, freed };
        // SAFETY: in a batch, until the beat is dropped.
        unsafe { shared.run_signals(&mut delivered) };
        for _ in 0..BATCH {
            let Some(message) = read.ring.pop(read.cursor) else { break };
            // SAFETY: as above.
            let ran = unsafe { shared.actions.run(message.action, message.payload) };
            delivered.count(ran, |delivered| &mut delivered.messages);
        }
        drop(read);
        drop(beat);
        delivered
    }

    /// Delivers what is there, or waits until something is: spins for a while, and then sleeps.
    /// Returns nothing delivered if the deadline has passed.
    pub fn wait(&mut self, deadline: Option<Deadline>) -> Delivered {
        let mut last = false;
        loop {
            let delivered = self.poll();
            if last || !delivered.is_empty() {
                return delivered;
            }
            last = !self.spin(deadline) && self.sleep(deadline) == Parked::TimedOut
                || nap::passed::<P>(deadline);
        }
    }

    /// Whether a [`poll`](Self::poll) would deliver something.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        // Relaxed: `run_signals` acquires.
        self.shared.ring.ready(&self.cursor) || self.shared.signals.0.load(Relaxed) != 0
    }

    /// Spins until something is there, or for no longer than is worth it: then `false`.
    fn spin(&self, deadline: Option<Deadline>) -> bool {
        let mut left = if P::crowded() { 0 } else { self.spin_ns };
        if let Some(deadline) = deadline {
            let until = deadline.ns.saturating_sub(P::now(deadline.clock));
            left = left.min(u32::try_from(until).unwrap_or(u32::MAX));
        }
        P::hint(Hint::SpinBegin);
        while left > 0 && self.shared.signals.0.load(Relaxed) == 0 {
            let slice = left.min(Self::SLICE_NS);
            if self.shared.ring.spin(&self.cursor, Budget::ns(slice)) {
                break;
            }
            left -= slice;
        }
        P::hint(Hint::SpinEnd);
        left > 0
    }

    /// Sleeps, unless something is there, until something may be.
    fn sleep(&self, deadline: Option<Deadline>) -> Parked {
        self.doze().map_or(Parked::Woken, |doze| doze.sleep(deadline))
    }

    /// For owners that sleep in a call of their own, such as the `epoll_wait` of an event loop:
    /// until what this returns is dropped, the [notifier](Self::notifier) is told of what is put
    /// in. `None` if something is there already: poll, and do not sleep.
    #[must_use]
    pub fn doze(&self) -> Option<Doze<'_, P, N>> {
        let ticket = self.shared.notify.begin();
        self.shared.bell.0.arm(ticket);
        let doze = Doze { shared: &self.shared, ticket };
        // Only now: BELL-1.
        (!self.is_pending()).then_some(doze)
    }

    /// Closes the mailbox, and returns the messages that were not delivered, in their order. Posts
    /// are refused from now on, and those who wait for room are told. Pending signals are dropped.
    ///
    /// Waits for posters that are in the middle of a post, which is a few instructions.
    #[must_use = "these messages were posted and not delivered"]
    pub fn close(mut self) -> Vec<Message> {
        self.shut()
    }

    fn shut(&mut self) -> Vec<Message> {
        let Shared { ring, signals, room, .. } = &*self.shared;
        let end = ring.close();
        // Relaxed: nobody acts on what it drops.
        signals.0.fetch_or(CLOSED, Relaxed);
        // ROOM: pairs with the fence in `Sender::post_wait`.
        P::fence(SeqCst);
        room.notify_all();
        self.shared.actions.leave(&self.pulse);
        core::iter::from_fn(|| ring.pop_claimed(&mut self.cursor, end)).collect()
    }
}

impl<P: Platform, N: Notify> Shared<P, N> {
    /// Runs the actions that were signalled.
    ///
    /// # Safety
    ///
    /// The caller is the owner, in a batch.
    unsafe fn run_signals(&self, delivered: &mut Delivered) {
        // Relaxed: whether there are any.
        if self.signals.0.load(Relaxed) == 0 {
            return;
        }
        // Acquire: what came before each of them; pairs with the releases in `Sender::signal`, each
        // of which carries on those before it.
        let mut pending = self.signals.0.swap(0, Acquire);
        while pending != 0 {
            // SAFETY: the caller's promise.
            let ran = unsafe { self.actions.run_signal(pending.trailing_zeros() as usize) };
            delivered.count(ran, |delivered| &mut delivered.signals);
            pending &= pending - 1;
        }
    }
}

/// An owner that sleeps, or is about to; it is awake when this is dropped.
#[must_use]
pub struct Doze<'a, P: Platform, N: Notify> {
    shared: &'a Shared<P, N>,
    ticket: Ticket,
}

impl<P: Platform, N: Notify> Doze<'_, P, N> {
    /// Sleeps as the notifier does; see [`Notify::sleep`].
    fn sleep(&self, deadline: Option<Deadline>) -> Parked {
        self.shared.notify.sleep(self.ticket, deadline)
    }
}

impl<P: Platform, N: Notify> Drop for Doze<'_, P, N> {
    fn drop(&mut self) {
        self.shared.bell.0.disarm();
        self.shared.notify.end(self.ticket);
    }
}

/// The owner takes messages out; when this is dropped, also by a panic, their slots are free.
struct Reading<'a, P: Platform> {
    ring: &'a Ring<P>,
    cursor: &'a mut Cursor,
    freed: &'a mut u64,
}

impl<P: Platform> Drop for Reading<'_, P> {
    fn drop(&mut self) {
        *self.freed += self.ring.free(self.cursor);
    }
}

impl<P: Platform, N: Notify> Drop for Mailbox<P, N> {
    fn drop(&mut self) {
        // Dropped with its owner, who did not ask for them.
        drop(self.shut());
    }
}

impl<P: Platform, N: Notify> fmt::Debug for Mailbox<P, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").field("is_pending", &self.is_pending()).finish_non_exhaustive()
    }
}

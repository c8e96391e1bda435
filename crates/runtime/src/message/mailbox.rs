//! The owner's end of a mailbox: it delivers, at the owner's safe points.
//!
//! | line | what | written by |
//! |---|---|---|
//! | | the [`Ring`] | posters, and the owner |
//! | 0 | `signals`: bit `i` stands for action `i`, bit 63 is `CLOSED` | signallers, the owner |
//! | 1 | `bell` | the owner before and after it sleeps, and its waker |
//! | 2 | `room`: the posters that wait for room | these posters |
//! | 3 | the [`Mailbox`] itself: how far it has read | the owner |
//!
//! Each takes two lines, because prefetchers fetch lines in pairs, and the first two are written
//! while another thread polls next to them. When the owner's cursor lay next to another mailbox, as
//! in an array, a message took 2.3 times a bare hand-off instead of 1.4 ([`ring`](super::ring)).
//!
//! - ROOM (no lost wake): a poster that waits for room is on the list, and then tries once more;
//!   the owner makes room, and then checks the list, when it polls next or is about to sleep. It
//!   notifies one poster for each slot that it frees.
//!
//! The check is deferred until then because a batch, and a sleep, begin with a fence anyway.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use antiphon_platform::{Atomic, AtomicInteger, Notify, Platform};
use antiphon_sync::wait::Condvar;

use super::pulse::Pulse;
use super::ring::{Cursor, Ring};
use super::{Actions, Message, Sender};
use crate::lines::Lines;
use crate::sleep::{Bell, Park};

/// The maximum number of messages that a [`Mailbox::poll`] delivers.
pub const BATCH: u32 = 64;

/// The bit of `signals` that marks a closed mailbox.
pub(super) const CLOSED: u64 = 1 << 63;

/// The state that both ends share.
pub(super) struct Shared<P: Platform, N: Notify> {
    pub(super) ring: Ring<P>,
    pub(super) signals: Lines<P::U64>,
    pub(super) bell: Lines<Bell<P>>,
    pub(super) room: Condvar<P>,
    pub(super) notify: N,
    pub(super) actions: Actions<P>,
    pub(super) pulse: Arc<Pulse<P>>,
}

/// The owner's end: the thread that has it runs the actions of posted messages. It may be sent to
/// another thread.
///
/// Dropping it closes the mailbox and drops undelivered messages: see [`close`](Self::close).
#[repr(align(128))]
pub struct Mailbox<P: Platform, N: Notify = Park<P>> {
    pub(super) shared: Arc<Shared<P, N>>,
    pub(super) cursor: Cursor,
    /// Number of slots that were freed after waiting posters were last notified.
    pub(super) freed: u64,
    /// The signals that were taken and not yet run: those after one whose action has panicked.
    signalled: u64,
    pub(super) spin_ns: u32,
}

/// Counts of what a poll has delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Delivered {
    /// Number of messages that ran their actions.
    pub messages: u32,
    /// Number of actions that were run for signals.
    pub signals: u32,
    /// Number of messages and signals for actions that are not registered, which ran nothing.
    pub strays: u32,
}

impl Delivered {
    /// Returns whether nothing was delivered.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.messages == 0 && self.signals == 0 && self.strays == 0
    }

    fn count(&mut self, ran: bool, kind: impl FnOnce(&mut Self) -> &mut u32) {
        *(if ran { kind(self) } else { &mut self.strays }) += 1;
    }
}

impl<P: Platform, N: Notify> Mailbox<P, N> {
    /// Creates a mailbox for at least `capacity` messages (rounded up to a power of two), which run
    /// actions of `actions`.
    ///
    /// # Panics
    ///
    /// If `capacity` is more than 2^31.
    #[must_use]
    pub fn new(actions: &Actions<P>, capacity: usize) -> Self
    where
        N: Default,
    {
        Self::with_notify(actions, capacity, N::default())
    }

    /// Like [`new`](Self::new), with a notifier by which the owner sleeps.
    ///
    /// # Panics
    ///
    /// See `new`.
    #[must_use]
    pub fn with_notify(actions: &Actions<P>, capacity: usize, notify: N) -> Self {
        let shared = Shared {
            ring: Ring::new(capacity),
            signals: Lines(P::U64::ZERO),
            bell: Lines(Bell::NEW),
            room: Condvar::NEW,
            notify,
            actions: actions.clone(),
            pulse: actions.join(),
        };
        let (shared, cursor) = (Arc::new(shared), Cursor::default());
        Self { shared, cursor, freed: 0, signalled: 0, spin_ns: Self::SPIN_NS }
    }

    /// Sets how long [`wait`](Self::wait) spins before it sleeps, in nanoseconds; 0: not at all. If
    /// threads outnumber CPUs it spins for at most a microsecond.
    #[must_use]
    pub fn spinning(mut self, ns: u32) -> Self {
        self.spin_ns = ns;
        self
    }

    /// Returns a sender that posts to this mailbox.
    #[must_use]
    pub fn sender(&self) -> Sender<P, N> {
        Sender(self.shared.clone())
    }

    /// Returns the notifier, for event loops with their own way of sleeping: see
    /// [`doze`](Self::doze).
    #[must_use]
    pub fn notifier(&self) -> &N {
        &self.shared.notify
    }

    /// Delivers what has arrived: signals, and at most [`BATCH`] messages. Does not block, unless
    /// an action does.
    pub fn poll(&mut self) -> Delivered {
        let mut delivered = Delivered::default();
        if !self.is_pending() && self.freed == 0 {
            return delivered;
        }
        let Self { shared, cursor, freed, signalled, .. } = self;
        // ROOM: its fence pairs with the one in `Sender::post_wait`.
        let beat = shared.pulse.begin();
        shared.tell_of_room(freed);
        let read = Reading { ring: &shared.ring, cursor, freed };
        // SAFETY: in a batch, until the beat is dropped.
        unsafe { shared.run_signals(signalled, &mut delivered) };
        for _ in 0..BATCH {
            let Some(message) = read.ring.pop(read.cursor) else { break };
            // SAFETY: in a batch, until the beat is dropped.
            let ran = unsafe { shared.actions.run(message.action, message.payload) };
            delivered.count(ran, |delivered| &mut delivered.messages);
        }
        drop(read);
        drop(beat);
        delivered
    }

    /// Returns whether a [`poll`](Self::poll) would deliver something.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        // Relaxed: `run_signals` acquires.
        self.shared.ring.ready(&self.cursor)
            || self.signalled != 0
            || self.shared.signals.0.load(Relaxed) != 0
    }

    /// Closes the mailbox, and returns the messages that were not delivered, in their order. Posts
    /// are refused from now on, and posters that wait for room are notified. Pending signals are
    /// dropped.
    ///
    /// Waits for posters that are in the middle of a post, which is a few instructions.
    #[must_use = "these messages were posted and not delivered"]
    pub fn close(mut self) -> Vec<Message> {
        self.shut()
    }

    fn shut(&mut self) -> Vec<Message> {
        let Shared { ring, signals, room, .. } = &*self.shared;
        let end = ring.close();
        // Relaxed: no thread acts on what it drops.
        signals.0.fetch_or(CLOSED, Relaxed);
        // ROOM: pairs with the fence in `Sender::post_wait`.
        P::fence(SeqCst);
        room.notify_all();
        self.shared.actions.leave(&self.shared.pulse);
        core::iter::from_fn(|| ring.pop_claimed(&mut self.cursor, end)).collect()
    }
}

impl<P: Platform, N: Notify> Shared<P, N> {
    /// Notifies one waiting poster for each slot that was `freed`, before a fence.
    pub(super) fn tell_of_room(&self, freed: &mut u64) {
        while *freed > 0 && self.room.notify_one() {
            *freed -= 1;
        }
        *freed = 0;
    }

    /// Runs the actions that were signalled; `left` are the signals that are still to be run.
    ///
    /// # Safety
    ///
    /// The caller is the owner, in a batch.
    unsafe fn run_signals(&self, left: &mut u64, delivered: &mut Delivered) {
        // Relaxed: it only shows whether there are any.
        if self.signals.0.load(Relaxed) != 0 {
            // Acquire: the accesses before each of them; pairs with the releases in
            // `Sender::signal`, each of which continues the release sequence of those before it.
            *left |= self.signals.0.swap(0, Acquire);
        }
        while *left != 0 {
            let index = left.trailing_zeros() as usize;
            // Cleared before the action is run: if it panics, this signal has had its turn.
            *left &= *left - 1;
            // SAFETY: the caller's contract.
            let ran = unsafe { self.actions.run_signal(index) };
            delivered.count(ran, |delivered| &mut delivered.signals);
        }
    }
}

/// Takes messages out; when this is dropped, even by a panic, their slots are freed.
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
        // The messages are dropped: the owner did not ask for them.
        drop(self.shut());
    }
}

impl<P: Platform, N: Notify> fmt::Debug for Mailbox<P, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").field("is_pending", &self.is_pending()).finish_non_exhaustive()
    }
}

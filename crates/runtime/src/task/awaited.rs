//! An event that a thread waits for: a word shows that it is over, and a bell is rung then.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{
    Atomic, AtomicInteger, Budget, Deadline, Notify, Parked, Platform, Ticket,
};

use super::countdown::{SETTLED, lacks};
use crate::sleep::{Bell, Park};

/// An event that the caller, and no other thread, waits for: by [`wait`](Self::wait), or as a
/// worker that runs other tasks meanwhile, by
/// [`Worker::next_until`](crate::sched::Worker::next_until).
pub struct Awaited<'a, P: Platform> {
    pub(crate) word: &'a P::U32,
    /// Returns whether the event is not over, given the word.
    pub(crate) lasts: fn(u32) -> bool,
    pub(crate) bell: &'a Bell<P>,
    /// The bits that a waiter adds to the word when it is about to sleep.
    pub(crate) watched: u32,
    /// Only for a countdown: the amount that `word` lacks, in a word of the waiter's thread
    /// (COUNT-3).
    pub(crate) own: Option<&'a P::U32>,
}

impl<P: Platform> Awaited<'_, P> {
    /// Returns whether the event is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        // Acquire: the accesses before the end; pairs with the releases of threads that change the
        // word. Relaxed: only this thread uses it.
        let lacks = self.own.map_or(0, |own| lacks(own.load(Relaxed)));
        !(self.lasts)(self.word.load(Acquire).wrapping_add(lacks))
    }

    /// Adds to the word the amount that it lacks, if the event is not over: the word alone then
    /// shows the end.
    #[inline]
    fn settle(&self) {
        if let Some(own) = self.own {
            self.settle_by(own);
        }
    }

    #[cold]
    fn settle_by(&self, own: &P::U32) {
        // Relaxed: only this thread uses it.
        let lacks = lacks(own.load(Relaxed));
        if lacks == 0 {
            return;
        }
        // Relaxed: a number.
        let mut word = self.word.load(Relaxed);
        while (self.lasts)(word.wrapping_add(lacks)) {
            // Relaxed: no data is published by it; and it continues the release sequences of
            // others.
            match self.word.compare_exchange(word, word.wrapping_add(lacks), Relaxed, Relaxed) {
                Ok(_) => return own.store(SETTLED, Relaxed),
                Err(now) => word = now,
            }
        }
    }

    /// Called when the caller is about to sleep with this ticket, unless the event is over now.
    pub(crate) fn arm(&self, ticket: Ticket) {
        self.settle();
        self.bell.arm(ticket);
        if self.watched != 0 {
            // Relaxed: TASK-3, it is about one word.
            self.word.fetch_or(self.watched, Relaxed);
        }
    }

    /// Called when the caller is awake.
    pub(crate) fn disarm(&self) {
        self.bell.disarm();
    }

    /// Blocks until the event is over: spins, and then sleeps.
    pub fn wait(&self) {
        self.wait_until(None);
    }

    /// Like [`wait`](Self::wait), but no longer than until `deadline`.
    pub fn wait_until(&self, deadline: Option<Deadline>) {
        if self.is_over() {
            return;
        }
        self.settle();
        if self.is_over() {
            return;
        }
        let spin = if P::crowded() { Budget::NONE } else { Budget::ns(P::sleep_cost_ns()) };
        // Acquire: as in `is_over`.
        if self.word.spin_while(Acquire, spin, self.lasts).is_ok() {
            return;
        }
        let notify = Park::<P>::NEW;
        let ticket = notify.begin();
        loop {
            self.arm(ticket);
            // Relaxed: acquired below. The word was settled above.
            if !(self.lasts)(self.word.load(Relaxed)) {
                break;
            }
            // SAFETY: the ticket is the caller's, until `end` below.
            if unsafe { notify.sleep(ticket, deadline) } == Parked::TimedOut {
                break;
            }
        }
        self.disarm();
        // SAFETY: the ticket is the caller's, and is not used after this.
        unsafe { notify.end(ticket) };
        // Acquire: as in `is_over`; once over, it stays over.
        self.word.load(Acquire);
    }
}

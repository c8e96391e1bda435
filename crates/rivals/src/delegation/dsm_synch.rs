//! DSM-Synch: an MCS queue of critical sections; the thread whose section is first also runs those
//! behind it.
//!
//! Source: P. Fatourou, N. Kallimanis, "Revisiting the Combining Synchronization Technique", PPoPP
//! 2012, DSM-Synch: its queue replaces the publication list and the lock of "Flat Combining and the
//! Synchronization-Parallelism Tradeoff" by D. Hendler, I. Incze, N. Shavit and M. Tzafrir, SPAA
//! 2010.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–3 | `tail` | name of the last in the queue; 0 is free |
//! | | `data` | the value that the sections work on |
//!
//! | of a node | meaning |
//! |---|---|
//! | `next` | name of the node behind it |
//! | `status` | one of the words below |
//! | `queue` | the name of its section |
//!
//! ```text
//!   lock.tail ─────────────────────────┐
//!                                      ▼
//!   combiner ──next──► waiter ──► waiter       the combiner runs along the links
//!
//!   WAITING ── a while ──► PARKED               of a waiter
//!      └───────────┬──────────┘
//!                  ├──► SERVED                  its section was run
//!                  └──► LEADS                   it is the combiner
//! ```
//!
//! - DSM-1: there is one combiner: the thread that has found the queue empty, until it closes the
//!   queue or tells another that it leads.
//! - DSM-2: sections are run in the order in which their nodes joined, each once. A waiter is
//!   notified after the combiner has read its link, because its node then changes hands.
//! - DSM-3: a combiner runs `BOUND` sections, its own among them, and then makes the next waiter
//!   the combiner.
//! - DSM-4: after that, and after the closing of the queue, the combiner touches only nodes, not
//!   the lock.
//! - DSM-5: a waiter that is notified and sleeps is woken.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::forget;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use super::section::{Finally, Name, Section};
use super::spin;
use crate::arena;
use crate::classic::node::Node;

/// The waiter waits and is not asleep.
const WAITING: u32 = 1;
/// The waiter sleeps, or is about to.
const PARKED: u32 = 2;
/// The waiter's section was run.
const SERVED: u32 = 3;
/// The waiter is the combiner.
const LEADS: u32 = 4;

/// A value whose critical sections are run, in order, by the thread that came first: 4 bytes beside
/// the value, and a node of 64 bytes for each thread inside.
///
/// A combiner runs at most `BOUND` sections. A waiter spins for `SPIN_NS` nanoseconds, less if
/// another thread wants its CPU, and then sleeps.
#[repr(C)]
pub struct DsmSynch<T, P: Platform, const BOUND: u32 = 64, const SPIN_NS: u32 = 1_000_000> {
    tail: P::U32,
    data: UnsafeCell<T>,
    platform: PhantomData<P>,
}

// SAFETY: sections use the value one at a time (DSM-1), on whichever thread, and each section
// happens before the next. A section and its result are `Send`.
unsafe impl<T: Send, P: Platform, const BOUND: u32, const SPIN_NS: u32> Sync
    for DsmSynch<T, P, BOUND, SPIN_NS>
{
}

impl<T, P: Platform, const BOUND: u32, const SPIN_NS: u32> DsmSynch<T, P, BOUND, SPIN_NS> {
    /// Creates an unused lock with the value `data`.
    pub const fn new(data: T) -> Self {
        Self { tail: P::U32::ZERO, data: UnsafeCell::new(data), platform: PhantomData }
    }

    /// Runs `section` on the value while no other section uses it, on this thread or on another,
    /// and returns its result. Blocks until then, and may run other threads' sections, `BOUND` in
    /// all; spins and then sleeps. Naps first while no node is free for the caller.
    ///
    /// # Panics
    ///
    /// If the section panics, both the thread that submitted it and the thread that ran it panic:
    /// the latter loses the result of its own section. The sections behind it still run, and the
    /// value stays as the panic left it.
    pub fn with<F, R>(&self, section: F) -> R
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
    {
        let section = Section::<T, P, F, R>::new(section);
        let me = Node::take();
        Self::begin(&me, section.name());
        // Release: our node, to the arriving waiter that finds its name here. Acquire: pairs with
        // that, because we write to the node that we find; if there is none, with the release in
        // `behind`.
        let previous = Node::<P>::at(self.tail.swap(me.bits(), AcqRel));
        let status = previous.map_or(LEADS, |previous| {
            // Release: our node and our section; pairs with the acquire in `behind`.
            previous.waiter.next.store(me.bits(), Release);
            Self::wait(&me)
        });
        if status == LEADS {
            self.combine(&me);
        }
        me.give();
        section.result()
    }

    /// Does what [`with`](Self::with) does if the value is free and a node is free for the caller.
    /// Does not wait for others, but may run their sections.
    ///
    /// # Errors
    ///
    /// The section, if another thread has the value.
    ///
    /// # Panics
    ///
    /// The same as for [`with`](Self::with).
    pub fn try_with<F, R>(&self, section: F) -> Result<R, F>
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
    {
        let section = Section::<T, P, F, R>::new(section);
        let me = Node::alone_in(&self.tail, |me| Self::begin(me, section.name()));
        let Some(me) = me else { return Err(section.refused()) };
        self.combine(&me);
        me.give();
        Ok(section.result())
    }

    /// Returns the value; `&mut self` excludes other threads.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// Consumes the lock and returns the value.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }

    fn begin(me: &Node<P>, section: Name) {
        // Relaxed, all: published with the node's name.
        me.waiter.next.store(0, Relaxed);
        me.waiter.status.store(WAITING, Relaxed);
        me.waiter.queue.store(section.bits(), Relaxed);
    }

    /// Waits until the combiner has changed the caller's status, and returns it.
    fn wait(me: &Node<P>) -> u32 {
        let status = &me.waiter.status;
        let spun = spin::<P, u32>(status, SPIN_NS, |seen| seen == WAITING);
        // Relaxed where it succeeds: it only announces that we sleep. Acquire where it fails: pairs
        // with the release of the combiner, as in `sleep_while`.
        let parked = || status.compare_exchange(WAITING, PARKED, Relaxed, Acquire).err();
        match spun.ok().or_else(parked) {
            Some(told) => told,
            None => {
                me.sleep_while(PARKED);
                // Relaxed: `sleep_while` has acquired it.
                status.load(Relaxed)
            }
        }
    }

    /// Runs the caller's section and those behind it, at most `BOUND` in all.
    fn combine(&self, me: &Node<P>) {
        let mut ran = 1;
        let mut next = self.run(me, me, ran >= BOUND);
        while let Some(node) = next {
            ran += 1;
            next = self.run(me, &node, ran >= BOUND);
        }
    }

    /// Runs the section of `node`; returns the next node if the caller `me` stays the combiner.
    fn run(&self, me: &Node<P>, node: &Node<P>, last: bool) -> Option<Node<P>> {
        let panics = Finally(|| {
            let _ = self.finish(me, node, true);
            arena::<P>().give(me.id);
        });
        // Relaxed: acquired with the node's name.
        let section = Name::from_bits(node.waiter.queue.load(Relaxed));
        // SAFETY: by DSM-1 the value is ours; by DSM-2 the section's owner waits, and the section
        // runs only this once.
        unsafe { section.run::<T, P>(&mut *self.data.get()) };
        forget(panics);
        self.finish(me, node, last)
    }

    /// Ends the section of `node`. If it was the `last` that the caller `me` may run, the next
    /// node's thread becomes the combiner; otherwise returns the next node.
    fn finish(&self, me: &Node<P>, node: &Node<P>, last: bool) -> Option<Node<P>> {
        let next = self.behind(node);
        let next = next.filter(|next| {
            if last {
                Self::tell(next, LEADS);
            }
            !last
        });
        if node.id != me.id {
            Self::tell(node, SERVED);
        }
        next
    }

    /// Returns the node behind `node`. If there is none, closes the queue. Spins for a moment if a
    /// thread is just joining.
    fn behind(&self, node: &Node<P>) -> Option<Node<P>> {
        let next = &node.waiter.next;
        // Relaxed: only whether it is zero matters here. Release: what was done to the value, to
        // the arriving waiter that finds the queue empty; pairs with the acquires in `with` and
        // `Node::alone_in`.
        let alone = next.load(Relaxed) == 0
            && self.tail.compare_exchange(node.bits(), 0, Release, Relaxed).is_ok();
        if alone {
            return None;
        }
        // Acquire: pairs with the release of the link.
        Node::at(next.wait_while(Acquire, |next| next == 0))
    }

    fn tell(node: &Node<P>, what: u32) {
        let sleeper = node.reference();
        // Release: what its section has done and returned, or what was done to the value; pairs
        // with the acquires in `wait`.
        let was = node.waiter.status.swap(what, Release);
        if let Some(sleeper) = sleeper.filter(|_| was == PARKED) {
            P::unpark(sleeper);
        }
    }
}

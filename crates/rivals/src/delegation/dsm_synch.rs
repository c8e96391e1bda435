//! DSM-Synch: an MCS queue of critical sections; the thread with the first also runs those behind
//! it.
//!
//! Source: P. Fatourou, N. Kallimanis, "Revisiting the Combining Synchronization Technique", PPoPP
//! 2012, DSM-Synch: its queue is what D. Hendler's, I. Incze's, N. Shavit's and M. Tzafrir's "Flat
//! Combining and the Synchronization-Parallelism Tradeoff", SPAA 2010, has a list of publications
//! and a lock for.
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
//!   notified after the combiner has looked at its link: its node changes hands then.
//! - DSM-3: a combiner runs `BOUND` sections, its own among them, and then tells the next to lead.
//! - DSM-4: after that, and after the closing of the queue, the combiner touches nodes and not the
//!   lock.
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

/// The waiter waits, and has a CPU or is not asleep.
const WAITING: u32 = 1;
/// The waiter sleeps, or is about to.
const PARKED: u32 = 2;
/// The waiter's section was run.
const SERVED: u32 = 3;
/// The waiter is the combiner.
const LEADS: u32 = 4;

/// A value whose critical sections are run, in order, by the thread that has come first: 4 bytes
/// beside the value, and a node of 64 for each thread inside.
///
/// A combiner runs at most `BOUND` sections. A waiter spins for `SPIN_NS` nanoseconds, less if
/// another thread wants its CPU, and then sleeps.
/// another thread wants its CPU, and then sleeps.
#[repr(C)]
pub struct DsmSynch<T, P: Platform, const BOUND: u32 = 64, const SPIN_NS: u32 = 1_000_000> {
    tail: P::U32,
    data: UnsafeCell<T>,
    platform: PhantomData<P>,
}

// SAFETY: sections have the value one at a time (DSM-1), whatever thread they run on, and what one
// did happens before what the next does. A section and its result are `Send`.
unsafe impl<T: Send, P: Platform, const BOUND: u32, const SPIN_NS: u32> Sync
    for DsmSynch<T, P, BOUND, SPIN_NS>
{
}

impl<T, P: Platform, const BOUND: u32, const SPIN_NS: u32> DsmSynch<T, P, BOUND, SPIN_NS> {
    /// A lock with the value `data`, which no thread uses.
    pub const fn new(data: T) -> Self {
        Self { tail: P::U32::ZERO, data: UnsafeCell::new(data), platform: PhantomData }
    }

    /// Runs `section` on the value while no other section has it, on this thread or on another one,
    /// and returns its result. Blocks until then, and may run other threads' sections, `BOUND` in
    /// all; spins and then sleeps. Naps first if there is no node for the caller.
    ///
    /// # Panics
    ///
    /// If the section panics, on the thread that has come with it and on the thread that ran it:
    /// the latter gives up the result of its own section. The sections behind are run as ever, and
    /// the value is as the panic left it.
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

    /// Does what [`with`](Self::with) does if the value is free and there is a node for the caller.
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

    /// The value: no other thread has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// The value, without the lock.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }

    fn begin(me: &Node<P>, section: Name) {
        // Relaxed, all: published with the node's name.
        me.waiter.next.store(0, Relaxed);
        me.waiter.status.store(WAITING, Relaxed);
        me.waiter.queue.store(section.bits(), Relaxed);
    }

    /// Waits until the combiner has answered, and returns the answer.
    fn wait(me: &Node<P>) -> u32 {
        let status = &me.waiter.status;
        let spun = spin::<P, u32>(status, SPIN_NS, |seen| seen == WAITING);
        // Relaxed where it succeeds: it says nothing but that we sleep. Acquire where it fails: as
        // below.
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

    /// Runs the caller's section and those behind it, as many as it may.
    fn combine(&self, me: &Node<P>) {
        let mut ran = 1;
        let mut next = self.run(me, me, ran >= BOUND);
        while let Some(node) = next {
            ran += 1;
            next = self.run(me, &node, ran >= BOUND);
        }
    }

    /// Runs the section of `node`; returns the next node, if the caller `me` still leads.
    fn run(&self, me: &Node<P>, node: &Node<P>, last: bool) -> Option<Node<P>> {
        let panics = Finally(|| {
            let _ = self.finish(me, node, true);
            arena::<P>().give(me.id);
        });
        // Relaxed: acquired with the node's name.
        let section = Name::from_bits(node.waiter.queue.load(Relaxed));
        // SAFETY: DSM-1, so the value is ours; DSM-2, so the section's owner waits, and this is the
        // only time that its section is run.
        unsafe { section.run::<T, P>(&mut *self.data.get()) };
        forget(panics);
        self.finish(me, node, last)
    }

    /// Ends the section of `node`. If it was the `last` of the caller `me`, the next node's thread
    /// leads; otherwise returns the next node.
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

    /// The node behind `node`. If there is none, closes the queue. Spins for a moment if a thread
    /// is just about to join.
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

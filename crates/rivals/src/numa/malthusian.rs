//! The Malthusian lock (MCSCR): an MCS queue that is kept short, so that fewer threads take turns.
//!
//! Source: D. Dice, "Malthusian Locks", EuroSys 2017: MCSCR, with waiters that spin and then park;
//! `000_…`, "Current blocking locks".
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–3 | `tail` | name of the last in the queue; 0 is free |
//! | 4–7 | `owner` | name of the owner's node; means nothing while the lock is free |
//! | 8–11 | `newest` | name of the waiter that was made passive last; 0 is none |
//! | 12–15 | `eldest` | name of the waiter that was made passive first |
//!
//! ```text
//!            culled, if another is behind it
//!   queue ───────────────────────────────────► passive      newest ──next──► … ──► eldest
//!         ◄───────────────────────────────────                     ◄─resume─
//!     the newest, if the queue is at its end; the eldest, by lot
//! ```
//!
//! If more threads want the lock than can make use of it, the surplus sleeps: at each hand-over one
//! waiter moves from the queue to the passive list, until the owner and one waiter are left. The
//! lock is not aware of sockets; it saves caches and CPUs, because few threads are awake. The
//! eldest comes back once in `LOT` unlocks on average, which is the only fairness.
//!
//! - MCSCR-1: a waiter is in the queue or in the passive list, once, and only the owner moves it.
//! - MCSCR-2: the tail is never culled.
//! - MCSCR-3: the lock becomes free only if no waiter is passive.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Budget, Platform};

use crate::classic::node::Node;

/// The status of the owner.
const GRANTED: u32 = 0;
/// The status of a waiter.
const WAITING: u32 = 1;
/// The status of a waiter that sleeps, or is about to.
const PARKED: u32 = 2;

/// A Malthusian lock of 16 bytes, and a node of 64 bytes for the owner and for each waiter. A
/// waiter spins for `SPIN_NS` nanoseconds and then sleeps. The eldest passive waiter is called once
/// in `LOT` unlocks.
#[repr(C)]
pub struct Malthusian<P: Platform, const SPIN_NS: u32 = 9_000, const LOT: u32 = 1000> {
    tail: P::U32,
    owner: P::U32,
    newest: P::U32,
    eldest: P::U32,
}

impl<P: Platform, const SPIN_NS: u32, const LOT: u32> Malthusian<P, SPIN_NS, LOT> {
    /// A free lock.
    pub const NEW: Self = {
        assert!(LOT > 0, "one unlock in none");
        Self { tail: P::U32::ZERO, owner: P::U32::ZERO, newest: P::U32::ZERO, eldest: P::U32::ZERO }
    };

    /// Joins the queue, spins for a while, and sleeps until the lock is granted. Naps first while
    /// no node is free for the caller.
    pub fn lock(&self) {
        let me = Node::take();
        Self::begin(&me);
        // Release: our node, to the arriving waiter that finds its name here. Acquire: pairs with
        // that, because we write to the node that we find; if there is none, with the release in
        // `end_queue`.
        if let Some(previous) = Node::<P>::at(self.tail.swap(me.bits(), AcqRel)) {
            // Release: our node, to the owner; pairs with the acquires of the link.
            previous.waiter.next.store(me.bits(), Release);
            Self::wait(&me);
        }
        self.own(&me);
    }

    /// Acquires the lock if it is free and there is a node for the caller; never blocks.
    pub fn try_lock(&self) -> bool {
        let me = Node::alone_in(&self.tail, Self::begin);
        me.inspect(|me| self.own(me)).is_some()
    }

    /// Releases the lock, to a waiter if there is any; wakes it if it sleeps. Spins for a moment if
    /// a waiter is just joining.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    pub unsafe fn unlock(&self) {
        let me = Node::<P>::of_owner(&self.owner);
        if let Some(next) = self.successor(&me) {
            Self::grant(&next);
        }
        me.give();
    }

    /// Returns the waiter that gets the lock next; `None` if the lock is free now.
    fn successor(&self, me: &Node<P>) -> Option<Node<P>> {
        // Relaxed, here and below: only the owner accesses the passive list, and it is handed on
        // with the lock.
        let eldest = self.eldest.load(Relaxed) != 0 && P::random().is_multiple_of(LOT);
        if let Some(eldest) = eldest.then(|| self.take_eldest()).flatten() {
            self.put_behind(me, &eldest);
            return Some(eldest);
        }
        // Relaxed: only whether it is zero matters here.
        if me.waiter.next.load(Relaxed) == 0 {
            let newest = self.take_newest();
            if self.end_queue(me, newest.as_ref()) {
                return newest;
            }
            if let Some(newest) = newest {
                self.make_passive(&newest);
            }
        }
        let next = Node::<P>::at(Self::link_of(me))?;
        // Acquire: pairs with the release of the link. MCSCR-2.
        let Some(behind) = Node::at(next.waiter.next.load(Acquire)) else { return Some(next) };
        self.make_passive(&next);
        Some(behind)
    }

    /// Ends the queue, in which the caller is alone, or makes `next` its only node; returns `false`
    /// if a waiter has joined.
    fn end_queue(&self, me: &Node<P>, next: Option<&Node<P>>) -> bool {
        if let Some(next) = next {
            next.waiter.next.store(0, Relaxed);
        }
        // Release: what we have done, to the arriving waiter that finds the queue empty; and what
        // we know of the node of `next`, to the arriving waiter that links itself behind it. Pairs
        // with `lock`.
        let tail = next.map_or(0, Node::bits);
        self.tail.compare_exchange(me.bits(), tail, Release, Relaxed).is_ok()
    }

    /// Puts `next` right behind the owner.
    fn put_behind(&self, me: &Node<P>, next: &Node<P>) {
        if me.waiter.next.load(Relaxed) != 0 || !self.end_queue(me, Some(next)) {
            // Relaxed: handed on with the lock.
            next.waiter.next.store(Self::link_of(me), Relaxed);
        }
    }

    /// Returns the waiter that is behind `me`, after waiting until that has linked itself.
    fn link_of(me: &Node<P>) -> u32 {
        // Acquire: pairs with the release of the link.
        me.waiter.next.wait_while(Acquire, |next| next == 0)
    }

    fn make_passive(&self, waiter: &Node<P>) {
        let newest = self.newest.load(Relaxed);
        waiter.waiter.next.store(newest, Relaxed);
        waiter.waiter.resume.store(0, Relaxed);
        match Node::<P>::at(newest) {
            Some(newest) => newest.waiter.resume.store(waiter.bits(), Relaxed),
            None => self.eldest.store(waiter.bits(), Relaxed),
        }
        self.newest.store(waiter.bits(), Relaxed);
    }

    fn take_newest(&self) -> Option<Node<P>> {
        let newest = Node::<P>::at(self.newest.load(Relaxed))?;
        let older = newest.waiter.next.load(Relaxed);
        self.newest.store(older, Relaxed);
        match Node::<P>::at(older) {
            Some(older) => older.waiter.resume.store(0, Relaxed),
            None => self.eldest.store(0, Relaxed),
        }
        Some(newest)
    }

    fn take_eldest(&self) -> Option<Node<P>> {
        let eldest = Node::<P>::at(self.eldest.load(Relaxed))?;
        let newer = eldest.waiter.resume.load(Relaxed);
        self.eldest.store(newer, Relaxed);
        match Node::<P>::at(newer) {
            Some(newer) => newer.waiter.next.store(0, Relaxed),
            None => self.newest.store(0, Relaxed),
        }
        Some(eldest)
    }

    fn wait(me: &Node<P>) {
        let status = &me.waiter.status;
        // Acquire: pairs with the release in `grant`.
        let spun = status.spin_while(Acquire, Budget::ns(SPIN_NS), |seen| seen == WAITING);
        // Relaxed where it succeeds: it only announces that we sleep. Acquire where it fails: pairs
        // with the release in `grant`.
        if spun.is_err() && status.compare_exchange(WAITING, PARKED, Relaxed, Acquire).is_ok() {
            me.sleep_while(PARKED);
        }
    }

    fn grant(next: &Node<P>) {
        let sleeper = next.reference();
        // Release: what we have done, and both lists; pairs with the acquires in `wait`.
        let was = next.waiter.status.swap(GRANTED, Release);
        if let Some(sleeper) = sleeper.filter(|_| was == PARKED) {
            P::unpark(sleeper);
        }
    }

    fn begin(me: &Node<P>) {
        // Relaxed: published with the node's name.
        me.waiter.next.store(0, Relaxed);
        me.waiter.status.store(WAITING, Relaxed);
    }

    fn own(&self, me: &Node<P>) {
        // Relaxed: only the owner uses it; the next owner writes it after us.
        self.owner.store(me.bits(), Relaxed);
    }
}

antiphon_sync::impl_lock!(
    unsafe [P: Platform, const SPIN_NS: u32, const LOT: u32] Malthusian<P, SPIN_NS, LOT>
);

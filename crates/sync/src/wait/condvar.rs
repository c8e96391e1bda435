//! The condition variable: a list of waiters, in the order in which they came.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–7 | `list` | the lock of the two words behind it |
//! | 8–11 | `first` | name of the waiter to be notified next, 0 if nobody waits |
//! | 12–15 | `last` | name of the waiter that came last |
//!
//! A wait is three steps, so that a C function can sleep in the middle and be cancelled there:
//!
//! ```text
//!   prepare ──► (caller unlocks its mutex) ──► sleep … ──► finish ──► (locks it) ──► next.wake
//! ```
//!
//! - CV-1: each notification goes to one waiter that had prepared before it, the first that waits.
//!   A waiter is on the list or notified, never both; the list's lock decides which.
//! - CV-2: a waiter that gives up while it is notified has been notified: `finish` says so, and a
//!   caller that can't use it (it was cancelled) passes it on with [`Condvar::notify_one`].
//! - CV-3: a broadcast takes all waiters off the list at once but wakes the first only; each wakes
//!   the next once it has the mutex ([`Next::wake`]). So no herd runs into a held mutex. A waiter
//!   that woke by itself still wakes its next, so the chain never breaks.
//!
//! CV-1 is what glibc's condition variable lost in BZ#25847 (a waiter could take a notification
//! that was meant for an earlier group). Models: `tests/model_condvar.rs`.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Clock, Deadline, Parked, Platform, Waiter, WaiterId, WaiterRef};

use crate::lock::ShflMutex;
use crate::policy;

/// `Waiter::status`: on the list.
const LISTED: u32 = 0;
/// `Waiter::status`: off the list, notified.
const NOTIFIED: u32 = 1;

/// A condition variable, 16 bytes, all zero when nobody waits. It doesn't know a mutex: any kind
/// will do, one at a time.
#[repr(C)]
pub struct Condvar<P: Platform> {
    list: ShflMutex<P, policy::None>,
    first: P::U32,
    last: P::U32,
}

/// A wait that was begun by [`Condvar::prepare`] and must be ended by [`Condvar::finish`].
#[must_use]
#[repr(transparent)]
pub struct Entry(u32);

/// How a wait ended.
#[must_use]
pub struct Notified {
    /// Whether it was by a notification; else the caller gave up before one came.
    pub notified: bool,
    /// Who is to be woken once the caller has its mutex again.
    pub next: Next,
}

/// The next waiter of a broadcast. Waking it is the duty of who gets it (CV-3).
#[must_use]
#[derive(Clone, Copy)]
pub struct Next(Option<WaiterRef>);

impl Next {
    /// Wakes it. To be called with the mutex held.
    pub fn wake<P: Platform>(self) {
        if let Some(target) = self.0 {
            P::unpark(target);
        }
    }
}

impl<P: Platform> Condvar<P> {
    /// A condition variable that nobody waits for.
    pub const NEW: Self = Self { list: ShflMutex::NEW, first: P::U32::ZERO, last: P::U32::ZERO };

    /// Waits until notified, or `deadline`, or (seldom) for no reason. `unlock` and `lock` are the
    /// caller's mutex, which is held before and after. Returns whether it was notified before the
    /// deadline.
    pub fn wait(
        &self,
        deadline: Option<Deadline>,
        mutex: usize,
        unlock: impl FnOnce(),
        lock: impl FnOnce(),
    ) -> bool {
        let entry = self.prepare(mutex);
        unlock();
        while !entry.sleep::<P>(deadline) {}
        let Notified { notified, next } = self.finish(entry);
        lock();
        next.wake::<P>();
        notified
    }

    /// Puts the caller on the list. To be called with the mutex held; `mutex` tells it from others
    /// (its address will do).
    pub fn prepare(&self, mutex: usize) -> Entry {
        let arena = P::arena();
        let Some((id, node)) = arena.take().and_then(|id| Some((id, arena.resolve(id)?))) else {
            return Entry(0);
        };
        // Relaxed: published by the list's lock.
        node.next.store(0, Relaxed);
        node.status.store(LISTED, Relaxed);
        node.data.store(mutex as u32 ^ (mutex as u64 >> 32) as u32, Relaxed);
        self.with_list(|| {
            let last = self.last.load(Relaxed);
            node.resume.store(last, Relaxed);
            self.last.store(id.bits(), Relaxed);
            match Self::node(last) {
                Some(last) => last.next.store(id.bits(), Relaxed),
                // Relaxed: a notifier that must see it has had the mutex after us.
                None => self.first.store(id.bits(), Relaxed),
            }
        });
        Entry(id.bits())
    }

    /// Ends a wait: takes the caller off the list if it is still there.
    pub fn finish(&self, entry: Entry) -> Notified {
        let Some((id, node)) = WaiterId::from_bits(entry.0).zip(Self::node(entry.0)) else {
            // No node was to be had: the wait was a nap, and its end is a spurious wake.
            return Notified { notified: true, next: Next(None) };
        };
        // Acquire: pairs with the release in `notify`; the notifier is done with our node.
        let mut notified = node.status.load(Acquire) == NOTIFIED;
        if !notified {
            notified = self.with_list(|| {
                let notified = node.status.load(Acquire) == NOTIFIED;
                if !notified {
                    self.unlink(node);
                }
                notified
            });
        }
        // Relaxed: written before the status that we have acquired, or by us.
        let next = WaiterId::from_bits(node.next.load(Relaxed)).filter(|_| notified);
        let next = Next(next.and_then(|id| P::arena().reference(id.index())));
        P::arena().give(id);
        Notified { notified, next }
    }

    /// Notifies the waiter that has waited longest, if any. Returns whether there was one.
    pub fn notify_one(&self) -> bool {
        // Relaxed: see `prepare`.
        if self.first.load(Relaxed) == 0 {
            return false;
        }
        let target = self.with_list(|| {
            let first = self.first.load(Relaxed);
            let node = Self::node(first)?;
            self.unlink(node);
            // A single notification begins no chain.
            node.next.store(0, Relaxed);
            Self::notify(first, node)
        });
        target.inspect(|&target| P::unpark(target)).is_some()
    }

    /// Notifies all that wait now.
    pub fn notify_all(&self) {
        // Relaxed: see `prepare`.
        if self.first.load(Relaxed) == 0 {
            return;
        }
        let first = self.with_list(|| {
            let chained = self.one_mutex();
            let mut at = self.last.load(Relaxed);
            let mut first = None;
            self.first.store(0, Relaxed);
            self.last.store(0, Relaxed);
            // From the last to the first: whoever is marked may wake its next at once, so that one
            // must be marked already.
            while let Some(node) = Self::node(at) {
                let before = node.resume.load(Relaxed);
                if let Some(behind) = first.take_if(|_| !chained) {
                    P::unpark(behind);
                }
                first = Self::notify(at, node);
                at = before;
            }
            first
        });
        if let Some(first) = first {
            P::unpark(first);
        }
    }

    /// Whether anybody is on the list; may be stale at once.
    pub fn has_waiters(&self) -> bool {
        self.first.load(Relaxed) != 0
    }

    /// Whether all on the list wait with the same mutex, so that they can wake each other.
    fn one_mutex(&self) -> bool {
        let mut at = Self::node(self.first.load(Relaxed));
        let Some(key) = at.map(|node| node.data.load(Relaxed)) else { return true };
        while let Some(node) = at {
            if node.data.load(Relaxed) != key {
                return false;
            }
            at = Self::node(node.next.load(Relaxed));
        }
        true
    }

    /// Marks a node that is off the list; its waiter may be gone as soon as that is seen.
    fn notify(bits: u32, node: &Waiter<P>) -> Option<WaiterRef> {
        let target = P::arena().reference(WaiterId::from_bits(bits)?.index());
        // Release: pairs with the acquire in `finish` and `sleep`.
        node.status.store(NOTIFIED, Release);
        target
    }

    fn unlink(&self, node: &Waiter<P>) {
        let (before, behind) = (node.resume.load(Relaxed), node.next.load(Relaxed));
        match Self::node(before) {
            Some(node) => node.next.store(behind, Relaxed),
            None => self.first.store(behind, Relaxed),
        }
        match Self::node(behind) {
            Some(node) => node.resume.store(before, Relaxed),
            None => self.last.store(before, Relaxed),
        }
    }

    fn node(bits: u32) -> Option<&'static Waiter<P>> {
        P::arena().resolve(WaiterId::from_bits(bits)?)
    }

    fn with_list<R>(&self, f: impl FnOnce() -> R) -> R {
        self.list.lock();
        let result = f();
        // SAFETY: locked above.
        unsafe { self.list.unlock() };
        result
    }
}

impl Entry {
    /// Sleeps until notified, the deadline, or for no reason; returns whether the wait is over.
    pub fn sleep<P: Platform>(&self, deadline: Option<Deadline>) -> bool {
        const NAP_NS: u64 = 1_000_000;
        let Some(node) = self.node::<P>() else {
            let nap = Deadline {
                clock: Clock::Monotonic,
                ns: P::now(Clock::Monotonic).saturating_add(NAP_NS),
            };
            let _ = P::park(&Waiter::<P>::NEW, Some(nap));
            return true;
        };
        self.is_notified::<P>()
            || P::park(node, deadline) == Parked::TimedOut
            || self.is_notified::<P>()
    }

    /// Whether a notification has come.
    pub fn is_notified<P: Platform>(&self) -> bool {
        // Acquire: pairs with the release in `Condvar::notify`.
        self.node::<P>().is_none_or(|node| node.status.load(Acquire) == NOTIFIED)
    }

    /// The node that the wait sleeps on; `None` if none was to be had.
    pub fn node<P: Platform>(&self) -> Option<&'static Waiter<P>> {
        Condvar::<P>::node(self.0)
    }
}

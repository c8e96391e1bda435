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
//!   prepare ──► (caller unlocks its mutex) ──► sleep … ──► finish ──► (caller locks it)
//! ```
//!
//! - CV-1: each notification goes to one waiter that had prepared before it, the first that waits.
//!   A waiter is on the list or notified, never both; the list's lock decides which.
//! - CV-2: a waiter that gives up while it is notified has been notified: `finish` says so, and a
//!   caller that can't use it (it was cancelled) passes it on with [`Condvar::notify_one`].
//! - CV-3: a broadcast notifies all that are on the list. Those that have named one [`ShflMutex`]
//!   are moved into its queue, asleep, and woken one after the other by its owners: no rush. All
//!   others are woken at once. `lock/shfl/moved.rs` has the move, and what happens when one whose
//!   turn it is sits in a signal handler.
//! - CV-4: a waiter that was moved in its sleep touches the condition variable no more; one that
//!   had begun to look at the list is told apart by the mover (`LOOKING`).
//!
//! CV-1 is what glibc's condition variable lost in BZ#25847 (a waiter could take a notification
//! that was meant for an earlier group).

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Relaxed, Release};

use antiphon_platform::{Atomic, Budget, Deadline, Parked, Platform, Waiter, WaiterId, WaiterRef};

use crate::lock::shfl::moved::{self, Chain, Look};
use crate::lock::shfl::status::{LISTED, NOTIFIED};
use crate::lock::{Form, Moved, ShflMutex, Standard};
use crate::policy::Policy;
use crate::{arena, nap, policy};

/// A condition variable, 16 bytes, all zero when nobody waits. It doesn't know a mutex: any kind
/// will do, one at a time.
#[repr(C)]
pub struct Condvar<P: Platform> {
    list: ShflMutex<P, policy::None, Brief>,
    first: P::U32,
    last: P::U32,
}

/// The form of the list's lock: as the standard one, but patient without end. It is held for a few
/// instructions, so whoever overtakes a waiter is gone before fairness could be had.
struct Brief;

impl Form for Brief {
    const HEAD_SLEEPS: bool = Standard::HEAD_SLEEPS;
    const GROUP: u32 = Standard::GROUP;
    const PATIENCE_NS: u32 = u32::MAX;
    const LOOK: u32 = u32::MAX;
    const SPIN: Budget = Standard::SPIN;
    const QUEUE_SPIN: Budget = Standard::QUEUE_SPIN;
    const HEAD_SPIN: Budget = Standard::HEAD_SPIN;
    const LINGER: Budget = Standard::LINGER;
    const BACKSTOP_NS: u64 = Standard::BACKSTOP_NS;
}

/// A wait that was begun by [`Condvar::prepare`] and must be ended by [`Condvar::finish`].
#[must_use]
#[repr(transparent)]
pub struct Entry<P: Platform>(u32, PhantomData<fn() -> P>);

/// How a wait ended.
#[must_use]
pub enum End {
    /// Nobody has notified the waiter.
    GaveUp,
    /// Notified, or it had no node (see [`Entry::naps`]): the caller locks its mutex.
    Notified,
    /// Notified by a broadcast, which has put the waiter into the queue of its mutex: the caller
    /// acquires that by [`ShflMutex::lock_moved`].
    Moved(Moved),
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
        unlock: impl FnOnce(),
        lock: impl FnOnce(),
    ) -> bool {
        let (_, notified) = self.outlast(self.prepare(), deadline, unlock);
        lock();
        notified
    }

    /// As [`wait`](Self::wait), with a mutex into whose queue a broadcast may move the caller.
    ///
    /// # Safety
    ///
    /// The caller owns the mutex.
    pub unsafe fn wait_with<Q: Policy, F: Form>(
        &self,
        mutex: &ShflMutex<P, Q, F>,
        deadline: Option<Deadline>,
    ) -> bool {
        // SAFETY: the caller's promise.
        let unlock = || unsafe { mutex.unlock() };
        // SAFETY: the caller holds the mutex, which is borrowed until it was locked again; the
        // entry is finished below.
        let entry = unsafe { self.prepare_with(mutex) };
        let (end, notified) = self.outlast(entry, deadline, unlock);
        match end {
            End::Moved(moved) => mutex.lock_moved(moved),
            End::GaveUp | End::Notified => mutex.lock(),
        }
        notified
    }

    /// The wait from the unlocking to the locking: how it ended, and whether the caller was
    /// notified before the deadline.
    fn outlast(
        &self,
        entry: Entry<P>,
        deadline: Option<Deadline>,
        unlock: impl FnOnce(),
    ) -> (End, bool) {
        let napping = entry.naps();
        unlock();
        while !entry.sleep(deadline) {}
        // SAFETY: both callers have prepared it here.
        let end = unsafe { self.finish(entry) };
        let in_time = !(napping && nap::passed::<P>(deadline));
        let notified = in_time && !matches!(end, End::GaveUp);
        (end, notified)
    }

    /// Puts the caller on the list. To be called with the mutex held.
    pub fn prepare(&self) -> Entry<P> {
        self.enlist(|_| {})
    }

    /// As [`prepare`](Self::prepare), of a caller that holds `mutex`, and lets a broadcast move it
    /// into the queue of that.
    ///
    /// ```compile_fail,E0133
    /// # use antiphon_linux::Linux;
    /// # use antiphon_sync::{lock::ShflMutex, wait::Condvar};
    /// // Whoever notifies would write to a mutex that is gone.
    /// static CONDVAR: Condvar<Linux> = Condvar::NEW;
    /// std::mem::forget(CONDVAR.prepare_with(&Box::new(ShflMutex::<Linux>::NEW)));
    /// ```
    ///
    /// # Safety
    ///
    /// - The wait is ended, by [`finish`](Self::finish) of this condition variable or
    ///   [`Entry::moved`]; until then the mutex stays where it is, and is not dropped: a broadcast
    ///   writes to it.
    /// - If the caller was moved, it acquires that mutex by [`ShflMutex::lock_moved`] before it
    ///   does anything else to it, and it stays where it is until then.
    pub unsafe fn prepare_with<Q: Policy, F: Form>(&self, mutex: &ShflMutex<P, Q, F>) -> Entry<P> {
        self.enlist(|bits| mutex.invite(bits))
    }

    fn enlist(&self, invite: impl FnOnce(u32)) -> Entry<P> {
        let arena = arena::<P>();
        let Some((id, node)) = arena.take().and_then(|id| Some((id, arena.resolve(id)?))) else {
            return Entry(0, PhantomData);
        };
        // Relaxed: published by the list's lock.
        node.next.store(0, Relaxed);
        node.status.store(LISTED, Relaxed);
        node.queue.store(0, Relaxed);
        invite(id.bits());
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
        Entry(id.bits(), PhantomData)
    }

    /// Ends a wait: takes the caller off the list if it is still there.
    ///
    /// ```compile_fail,E0133
    /// # use antiphon_linux::Linux;
    /// # use antiphon_sync::wait::Condvar;
    /// // The first would keep a waiter that has left.
    /// static ONE: Condvar<Linux> = Condvar::NEW;
    /// static OTHER: Condvar<Linux> = Condvar::NEW;
    /// let _ = OTHER.finish(ONE.prepare());
    /// ```
    ///
    /// # Safety
    ///
    /// It is this condition variable that has prepared the wait.
    pub unsafe fn finish(&self, entry: Entry<P>) -> End {
        let Some((id, node)) = WaiterId::from_bits(entry.0).zip(Self::node(entry.0)) else {
            return End::Notified;
        };
        let mut look = moved::look(id, node);
        if let Look::Listed = look {
            look = self.with_list(|| {
                let look = moved::look(id, node);
                if let Look::Listed = look {
                    self.unlink(node);
                }
                look
            });
        }
        let end = match look {
            Look::Moved(moved) => return End::Moved(moved),
            Look::Notified => End::Notified,
            Look::Listed => End::GaveUp,
        };
        arena::<P>().give(id);
        end
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
            Self::notify(first, node)
        });
        target.inspect(|&target| P::unpark(target)).is_some()
    }

    /// Notifies all that wait now. Returns how many of them will not touch the condition variable
    /// any more, though they have not returned: they were moved in their sleep (CV-4).
    pub fn notify_all(&self) -> u32 {
        // Relaxed: see `prepare`.
        if self.first.load(Relaxed) == 0 {
            return 0;
        }
        self.with_list(|| {
            let mut chain = Chain::<P>::NEW;
            let mut at = self.first.load(Relaxed);
            // One alone makes no herd, and may find the mutex free.
            let alone = at == self.last.load(Relaxed);
            self.first.store(0, Relaxed);
            self.last.store(0, Relaxed);
            while let Some(node) = Self::node(at) {
                // Before the waiter may go on and give its node back.
                let next = node.next.load(Relaxed);
                if (alone || !chain.push(at))
                    && let Some(target) = Self::notify(at, node)
                {
                    P::unpark(target);
                }
                at = next;
            }
            // SAFETY: whoever is LISTED gets off the list with the list's lock alone, and we hold
            // it.
            unsafe { chain.join() }
        })
    }

    /// Whether anybody is on the list; may be stale at once.
    pub fn has_waiters(&self) -> bool {
        self.first.load(Relaxed) != 0
    }

    /// Marks a node that is off the list; its waiter may be gone as soon as that is seen.
    fn notify(bits: u32, node: &Waiter<P>) -> Option<WaiterRef> {
        let target = arena::<P>().reference(WaiterId::from_bits(bits)?.index());
        // Release: pairs with the acquire in `look`.
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
        arena::<P>().resolve(WaiterId::from_bits(bits)?)
    }

    fn with_list<R>(&self, f: impl FnOnce() -> R) -> R {
        self.list.lock();
        let result = f();
        // SAFETY: locked above.
        unsafe { self.list.unlock() };
        result
    }
}

impl<P: Platform> Entry<P> {
    /// Sleeps until notified, the deadline, or for no reason; returns whether the wait is over.
    pub fn sleep(&self, deadline: Option<Deadline>) -> bool {
        const NAP_NS: u64 = 1_000_000;
        let Some(node) = self.listed() else {
            let _ = P::park(&Waiter::<P>::NEW, Some(nap::earlier::<P>(deadline, NAP_NS)));
            return true;
        };
        self.is_notified() || P::park(node, deadline) == Parked::TimedOut || self.is_notified()
    }

    /// Whether a notification has come.
    pub fn is_notified(&self) -> bool {
        // Relaxed inside: `finish`, which must come yet, acquires it.
        self.listed().is_none_or(moved::is_notified)
    }

    /// Whether the waiter was moved in its sleep. If so the wait is over, without
    /// [`Condvar::finish`]: it is not to touch the condition variable any more, which may be
    /// destroyed already. If not, [`Condvar::notify_all`] won't count it.
    ///
    /// # Errors
    ///
    /// The entry, to be finished.
    pub fn moved(self) -> Result<Moved, Self> {
        match WaiterId::from_bits(self.0).zip(self.listed()).map(|(id, node)| moved::look(id, node))
        {
            Some(Look::Moved(moved)) => Ok(moved),
            _ => Err(self),
        }
    }

    /// Whether no node was to be had: then [`sleep`](Self::sleep) is a nap, and ends for no reason.
    pub fn naps(&self) -> bool {
        self.listed().is_none()
    }

    /// The node that the wait sleeps on; `None` if none was to be had.
    ///
    /// # Safety
    ///
    /// The caller does no more with it than to have the platform park on it, before the wait ends.
    pub unsafe fn node(&self) -> Option<&'static Waiter<P>> {
        self.listed()
    }

    fn listed(&self) -> Option<&'static Waiter<P>> {
        Condvar::<P>::node(self.0)
    }
}

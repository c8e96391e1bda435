//! The condition variable: a list of waiters (`list.rs`). Waiters of real-time priority come first,
//! by priority; all others stand in the order in which they came.
//!
//! A wait is three steps, so that a C function can sleep in the middle and be cancelled there:
//!
//! ```text
//!   prepare ──► (caller unlocks its mutex) ──► sleep … ──► finish ──► (caller locks it)
//! ```
//!
//! - CV-1: each notification goes to the first waiter that had prepared before it. A waiter is on
//!   the list or notified, never both; the list's lock decides which.
//! - CV-2: a waiter that gives up while it is notified has been notified: `finish` says so, and a
//!   caller that can't use it (it was cancelled) passes it on with [`Condvar::notify_one`].
//! - CV-3: a broadcast notifies all waiters on the list. Waiters that have named one [`ShflMutex`]
//!   are moved into its queue, asleep, and woken one after the other by its owners, which avoids a
//!   thundering herd. All others are woken at once. `lock/shfl/moved.rs` describes the move, and
//!   what happens when a waiter whose turn it is sits in a signal handler.
//! - CV-4: a waiter that was moved in its sleep no longer touches the condition variable; the mover
//!   can recognise a waiter that had begun to look at the list (`LOOKING`).
//!
//! - CV-5: a waiter of real-time priority
//!   ([`Urgency::urgency`](antiphon_platform::Urgency::urgency)) goes before all waiters of lower
//!   priority. A broadcast does not move it: it is woken at once, before all others, and its
//!   priority decides its place among the waiters of the mutex. So behind the waiters that sleep on
//!   there is always a waiter that need not be moved (`lock/shfl/moved.rs`, MOVE-2).
//!
//! glibc's condition variable lost CV-1 in BZ#25847 (a waiter could take a notification that was
//! meant for an earlier group).

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, Parked, Platform, Waiter, WaiterId, WaiterRef};

use super::list::{List, named};
use crate::lock::shfl::moved::{self, Chain, Look};
use crate::lock::shfl::status::{NOTIFIED, listed};
use crate::lock::{Form, Moved, ShflMutex};
use crate::policy::Policy;
use crate::{arena, nap};

/// A condition variable, 16 bytes, all zero when no thread waits. It does not store a mutex: any
/// kind may be used, one at a time.
#[repr(transparent)]
pub struct Condvar<P: Platform>(List<P>);

/// A wait that was begun by [`Condvar::prepare`] and must be ended by [`Condvar::finish`].
#[must_use]
#[repr(transparent)]
pub struct Entry<P: Platform>(u32, PhantomData<fn() -> P>);

/// How a wait ended.
#[must_use]
pub enum End {
    /// The waiter was not notified.
    GaveUp,
    /// The waiter was notified, or had no node (see [`Entry::naps`]): the caller must lock its
    /// mutex.
    Notified,
    /// A broadcast has notified the waiter, and put it into the queue of its mutex: the caller must
    /// acquire that mutex by [`ShflMutex::lock_moved`].
    Moved(Moved),
}

impl<P: Platform> Condvar<P> {
    /// A condition variable that no thread waits for.
    pub const NEW: Self = Self(List::NEW);

    /// Waits until notified, or until `deadline`, or (seldom) wakes spuriously. `unlock` and `lock`
    /// release and acquire the caller's mutex, which is held before and after. Returns whether the
    /// caller was notified before the deadline.
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

    /// Does what [`wait`](Self::wait) does, with a mutex into whose queue a broadcast may move the
    /// caller.
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
        // SAFETY: the caller holds the mutex, which is borrowed until it is locked again; the entry
        // is finished below.
        let entry = unsafe { self.prepare_with(mutex) };
        let (end, notified) = self.outlast(entry, deadline, unlock);
        match end {
            End::Moved(moved) => mutex.lock_moved(moved),
            End::GaveUp | End::Notified => mutex.lock(),
        }
        notified
    }

    /// Waits from after `prepare` until before the mutex is locked again; returns how the wait
    /// ended, and whether the caller was notified before the deadline.
    fn outlast(
        &self,
        entry: Entry<P>,
        deadline: Option<Deadline>,
        unlock: impl FnOnce(),
    ) -> (End, bool) {
        let napping = entry.naps();
        unlock();
        while !entry.sleep(deadline) {}
        // SAFETY: both callers have prepared the entry here.
        let end = unsafe { self.finish(entry) };
        let in_time = !(napping && nap::passed::<P>(deadline));
        let notified = in_time && !matches!(end, End::GaveUp);
        (end, notified)
    }

    /// Puts the caller on the list. The caller holds the mutex.
    pub fn prepare(&self) -> Entry<P> {
        self.enlist(|_| {})
    }

    /// Does what [`prepare`](Self::prepare) does, for a caller that holds `mutex`, and lets a
    /// broadcast move it into the queue of that mutex.
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
    /// - The wait is ended by [`finish`](Self::finish) of this condition variable or
    ///   [`Entry::moved`]; until then the mutex must neither move nor be dropped, because a
    ///   broadcast writes to it.
    /// - If the caller was moved, it acquires that mutex by [`ShflMutex::lock_moved`] before it
    ///   does anything else to it, and the mutex does not move until then.
    pub unsafe fn prepare_with<Q: Policy, F: Form>(&self, mutex: &ShflMutex<P, Q, F>) -> Entry<P> {
        self.enlist(|bits| mutex.invite(bits))
    }

    fn enlist(&self, invite: impl FnOnce(u32)) -> Entry<P> {
        let arena = arena::<P>();
        let Some((id, node)) = arena.take().and_then(|id| Some((id, arena.resolve(id)?))) else {
            return Entry(0, PhantomData);
        };
        let urgency = P::urgency();
        // Relaxed: published by the list's lock.
        node.status.store(listed(urgency), Relaxed);
        node.queue.store(0, Relaxed);
        if urgency == 0 {
            invite(id.bits());
        }
        // A notifier that must see this waiter has had the mutex after us.
        self.0.with(|list| list.insert(id, node, urgency));
        Entry(id.bits(), PhantomData)
    }

    /// Ends a wait: removes the caller from the list if it is still there.
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
    /// This condition variable has prepared the wait.
    pub unsafe fn finish(&self, entry: Entry<P>) -> End {
        let Some((id, node)) = named::<P>(entry.0) else {
            return End::Notified;
        };
        let mut look = moved::look(id, node);
        if let Look::Listed = look {
            look = self.0.with(|list| {
                let look = moved::look(id, node);
                if let Look::Listed = look {
                    list.remove(id, node);
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

    /// Notifies a waiter, if any: the waiter of the highest real-time priority, otherwise the one
    /// that has waited longest. Returns whether a thread waited.
    pub fn notify_one(&self) -> bool {
        // It orders nothing: see `enlist`.
        if self.0.seems_empty() {
            return false;
        }
        let target = self.0.with(|list| {
            let (id, node) = list.first()?;
            list.remove(id, node);
            Self::notify(id, node)
        });
        target.inspect(|&target| P::unpark(target)).is_some()
    }

    /// Notifies all present waiters. Returns how many of them will no longer touch the condition
    /// variable although they have not returned, because they were moved in their sleep (CV-4).
    pub fn notify_all(&self) -> u32 {
        // It orders nothing: see `enlist`.
        if self.0.seems_empty() {
            return 0;
        }
        self.0.with(|list| {
            let mut chain = Chain::<P>::NEW;
            // A single waiter makes no herd, and may find the mutex free.
            let alone = list.is_short();
            let mut at = list.empty();
            P::unpark_all(core::iter::from_fn(|| {
                while let Some((id, node)) = named::<P>(at) {
                    let mine = at;
                    // Loaded before the waiter may go on and give its node back.
                    at = node.next.load(Relaxed);
                    if (alone || !chain.push(mine))
                        && let Some(target) = Self::notify(id, node)
                    {
                        return Some(target);
                    }
                }
                None
            }));
            // SAFETY: a waiter that is LISTED leaves the list only under the list's lock, and we
            // hold it.
            unsafe { chain.join() }
        })
    }

    /// Returns whether a waiter is on the list; may be stale at once.
    pub fn has_waiters(&self) -> bool {
        !self.0.seems_empty()
    }

    /// Marks a node that is off the list; its waiter may be gone as soon as it sees the mark.
    fn notify(id: WaiterId, node: &Waiter<P>) -> Option<WaiterRef> {
        let target = arena::<P>().reference(id.index());
        // Release: pairs with the acquire in `look`.
        node.status.store(NOTIFIED, Release);
        target
    }
}

impl<P: Platform> Entry<P> {
    /// Sleeps until notified, or until the deadline, or wakes spuriously; returns whether the wait
    /// is over.
    pub fn sleep(&self, deadline: Option<Deadline>) -> bool {
        const NAP_NS: u64 = 1_000_000;
        let Some(node) = self.listed() else {
            let _ = P::park(&Waiter::<P>::NEW, Some(nap::earlier::<P>(deadline, NAP_NS)));
            return true;
        };
        self.is_notified() || P::park(node, deadline) == Parked::TimedOut || self.is_notified()
    }

    /// Returns whether a notification has come.
    pub fn is_notified(&self) -> bool {
        // Relaxed inside: `finish`, which comes later, acquires it.
        self.listed().is_none_or(moved::is_notified)
    }

    /// Returns whether the waiter was moved in its sleep. If so the wait is over, without
    /// [`Condvar::finish`]: the waiter must no longer touch the condition variable, which may be
    /// destroyed already. If not, [`Condvar::notify_all`] will not count this waiter.
    ///
    /// # Errors
    ///
    /// The entry, which must be finished.
    pub fn moved(self) -> Result<Moved, Self> {
        match named::<P>(self.0).map(|(id, node)| moved::look(id, node)) {
            Some(Look::Moved(moved)) => Ok(moved),
            _ => Err(self),
        }
    }

    /// Returns whether no node was free: then [`sleep`](Self::sleep) is a nap, and ends without a
    /// notification.
    pub fn naps(&self) -> bool {
        self.listed().is_none()
    }

    /// Returns the node that the wait sleeps on; `None` if no node was free.
    ///
    /// # Safety
    ///
    /// The caller only lets the platform park on it, and only before the wait ends.
    pub unsafe fn node(&self) -> Option<&'static Waiter<P>> {
        self.listed()
    }

    fn listed(&self) -> Option<&'static Waiter<P>> {
        named(self.0).map(|(_, node)| node)
    }
}

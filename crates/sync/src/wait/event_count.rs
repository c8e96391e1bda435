//! The event count: waiting for a condition on other words, such as those of a lock-free queue.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–15 | `list` | the threads that have prepared to wait, in the order in which they did |
//!
//! ```text
//!   waiter:    prepare ──► fence ──► look at the condition ──► wait, or cancel
//!   notifier:  make it true ──► fence ──► look at the list ──► let some go
//! ```
//!
//! - EC-1 (no lost wake): each side announces what it does, and then checks the other. With a
//!   sequentially consistent fence between the two on both sides, one of them sees the other. No
//!   weaker fence keeps a store before a later load; a heavy fence, which would make the notifier's
//!   side free, would interrupt all CPUs for each wait.
//! - EC-2: each notification reaches as many waiters as it names, if that many had prepared, and
//!   each waiter at most once. The list's lock decides.
//! - EC-3: a waiter that cancels and was notified already passes the notification on: the
//!   notification may have been meant for something that the waiter has not found.
//! - EC-4: a notifier lets waiters go after it has unlocked the list, and touches nothing
//!   afterwards.
//!
//! Waiters are nodes from the start, and no waiter is let go by a count that changes: a
//! notification for one would let go all waiters that spin, and could be used up by a waiter that
//! it was not for.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::SeqCst;

use antiphon_platform::{Deadline, Platform};

use super::list::{List, note};
use super::several::{Place, Several, Stands};
use super::together::{CrowdForm, Member, Told, let_go};
use crate::lock::Standard;
use crate::nap;
use crate::policy::{Distance, Policy};

/// An event count, 16 bytes. All zero bytes: no thread waits.
#[repr(C)]
pub struct EventCount<P: Platform, Q: Policy = Distance, F: CrowdForm = Standard> {
    list: List<P>,
    marker: PhantomData<(Q, F)>,
}

/// A wait that was prepared; cancels it when dropped. A wait that is forgotten stays on the list,
/// and takes a notification from others.
#[must_use = "a prepared wait takes notifications: wait by it, or cancel it"]
pub struct Key<'a, P: Platform, Q: Policy = Distance, F: CrowdForm = Standard> {
    count: &'a EventCount<P, Q, F>,
    /// `None` if no node was free, or the wait is over.
    me: Option<Member<P>>,
}

/// How long a waiter without a node sleeps before its caller looks again.
const NAP_NS: u64 = 200_000;

impl<P: Platform, Q: Policy, F: CrowdForm> EventCount<P, Q, F> {
    /// An event count for which no thread waits.
    pub const NEW: Self = Self { list: List::NEW, marker: PhantomData };

    /// Begins a wait: notifications from now on may be for the caller, which checks its condition
    /// once more and then [waits](Key::wait), or [cancels](Key::cancel) if the condition is true.
    pub fn prepare(&self) -> Key<'_, P, Q, F> {
        let me = Member::<P>::take();
        self.enlist(me.as_ref());
        Key { count: self, me }
    }

    /// Does what [`prepare`](Self::prepare) does, for one of several objects that the caller waits
    /// for.
    pub fn stand<'a>(&'a self, several: &'a Several<P>) -> Place<'a, P> {
        let me = several.member();
        self.enlist(me.as_ref());
        Place::new(self, me)
    }

    fn enlist(&self, me: Option<&Member<P>>) {
        if let Some(me) = me {
            note::<P, Q>(me);
            self.list.with(|list| list.push(me.id(), me.node));
            // EC-1: pairs with the fence in `notify`.
            P::fence(SeqCst);
        }
    }

    /// Notifies one waiter that has prepared, if any: of the first few, the waiter that the policy
    /// prefers.
    #[inline]
    pub fn notify_one(&self) {
        self.notify(1);
    }

    /// Notifies all waiters that have prepared.
    #[inline]
    pub fn notify_all(&self) {
        self.notify(u32::MAX);
    }

    /// Notifies up to `count` waiters that have prepared, in the order in which they did. Must be
    /// called after the condition was made true. Blocks at most while other threads hold the list;
    /// where no thread waits, it costs a fence and a load.
    #[inline]
    pub fn notify(&self, count: u32) {
        // EC-1: pairs with the fence in `enlist`.
        P::fence(SeqCst);
        if !self.list.seems_empty() {
            self.let_go(count);
        }
    }

    /// Returns whether a thread has prepared, and was not notified; may be stale at once.
    pub fn has_waiters(&self) -> bool {
        !self.list.seems_empty()
    }

    #[cold]
    fn let_go(&self, count: u32) {
        let some = self.list.with(|list| list.take::<Q, F>(count));
        let_go::<P, F>(some, 0);
    }

    /// Removes a waiter from the list; returns whether it was there.
    fn leave(&self, me: &Member<P>) -> bool {
        self.list.with(|list| {
            let there = list.holds(me.id(), me.node);
            if there {
                list.remove(me.id(), me.node);
            }
            there
        })
    }
}

impl<P: Platform, Q: Policy, F: CrowdForm> Stands<P> for EventCount<P, Q, F> {
    fn withdraw(&self, me: Member<P>) -> bool {
        me.withdraw::<F>(|me| self.leave(me))
    }

    /// EC-3: notifies another waiter.
    fn pass_on(&self) {
        self.notify_one();
    }
}

impl<P: Platform, Q: Policy, F: CrowdForm> Key<'_, P, Q, F> {
    /// Waits until notified, or until the deadline, or (seldom) wakes spuriously; returns whether
    /// it ended before the deadline. The caller must check its condition in either case.
    pub fn wait(mut self, deadline: Option<Deadline>) -> bool {
        let Some(me) = self.me.take() else {
            nap::nap_until::<P>(nap::earlier::<P>(deadline, NAP_NS));
            return !nap::passed::<P>(deadline);
        };
        me.spin::<F>(deadline);
        if !me.outlast_unless::<F>(deadline, || self.count.leave(&me)) {
            me.give();
            return false;
        }
        // The waiter was let go, or is in the child of a fork: in both cases the caller checks its
        // condition.
        let (Told::Gone(_) | Told::Lost) = me.end();
        true
    }

    /// Ends the wait before it has begun, because the condition is true. A notification that has
    /// come goes to another waiter (EC-3).
    pub fn cancel(self) {}
}

impl<P: Platform, Q: Policy, F: CrowdForm> Drop for Key<'_, P, Q, F> {
    fn drop(&mut self) {
        let Some(me) = self.me.take() else { return };
        if self.count.leave(&me) {
            return me.give();
        }
        // The thread that has removed it from the list lets it go at once.
        let _ = me.outlast::<F>(None);
        if let Told::Gone(_) = me.end() {
            self.count.notify_one();
        }
    }
}

//! A list of waiters, in the order in which they came, with its own lock.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–7 | `lock` | guards the next two words, and the links in the nodes |
//! | 8–11 | `first` | name of the waiter that came first, 0 if no thread waits |
//! | 12–15 | `last` | name of the waiter that came last |
//!
//! - LIST-1: a node is on one list at most. Its `resume` names the node before it, is 0 if it is
//!   the first, or names the node itself when it was removed: under the lock a waiter can tell
//!   which.
//! - LIST-2: a thread that removes waiters lets them go after it has unlocked, and from then on
//!   touches only nodes ([`let_go`](super::together::let_go)). So the object that contains the list
//!   may be gone as soon as one of them has returned.
//! - LIST-3: a waiter is passed over in favour of others at most as often as the policy and the
//!   form allow; then it goes first.

use core::cmp::Ordering::Less;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform, Waiter, WaiterId};

use super::together::Member;
use crate::arena;
use crate::lock::shfl::status;
use crate::lock::{Form, ShflMutex};
use crate::policy::{self, Policy, Waiting};

/// The waiters, 16 bytes; all zero when no thread waits.
#[repr(C)]
pub(super) struct List<P: Platform> {
    lock: ShflMutex<P, policy::None, Brief>,
    first: P::U32,
    last: P::U32,
}

/// The form of the list's lock: the standard form, but with endless patience. The lock is held for
/// a few instructions, so a thread that overtakes a waiter is gone before fairness could take
/// effect.
struct Brief;

impl Form for Brief {
    const PATIENCE_NS: u32 = u32::MAX;
    const LOOK: u32 = u32::MAX;
}

/// A list whose lock the caller holds.
pub(super) struct Locked<'a, P: Platform>(&'a List<P>);

/// A waiter.
pub(super) type Named<P> = (WaiterId, &'static Waiter<P>);

/// How many waiters are searched for one that the policy prefers.
const REACH: usize = 8;

impl<P: Platform> List<P> {
    pub(super) const NEW: Self =
        Self { lock: ShflMutex::NEW, first: P::U32::ZERO, last: P::U32::ZERO };

    /// Returns whether no waiter is on the list; may be stale at once, and orders nothing.
    pub(super) fn seems_empty(&self) -> bool {
        self.first.load(Relaxed) == 0
    }

    /// Returns whether a parent process has left the list; may be stale at once.
    pub(super) fn is_inherited(&self) -> bool {
        let first = self.first.load(Relaxed);
        first != 0 && named::<P>(first).is_none()
    }

    /// Runs `f` with the list locked.
    pub(super) fn with<R>(&self, f: impl FnOnce(&Locked<'_, P>) -> R) -> R {
        self.lock.lock();
        let result = f(&Locked(self));
        // SAFETY: locked above.
        unsafe { self.lock.unlock() };
        result
    }
}

// Relaxed, all: the lock orders what its holders do.
impl<P: Platform> Locked<'_, P> {
    /// Returns the waiter that came first; `None` if the list is empty, or was left by a parent
    /// process.
    pub(super) fn first(&self) -> Option<Named<P>> {
        named(self.0.first.load(Relaxed))
    }

    /// Returns whether the waiter, which was put on this list, is still there.
    pub(super) fn holds(&self, id: WaiterId, node: &Waiter<P>) -> bool {
        node.resume.load(Relaxed) != id.bits()
    }

    /// Returns whether the list has at most one waiter.
    pub(super) fn is_short(&self) -> bool {
        self.0.first.load(Relaxed) == self.0.last.load(Relaxed)
    }

    /// Puts a waiter behind all others.
    pub(super) fn push(&self, id: WaiterId, me: &Waiter<P>) {
        let last = self.0.last.load(Relaxed);
        me.next.store(0, Relaxed);
        me.passed.store(0, Relaxed);
        self.0.last.store(id.bits(), Relaxed);
        match named::<P>(last) {
            Some((_, before)) => {
                before.next.store(id.bits(), Relaxed);
                me.resume.store(last, Relaxed);
            }
            None => {
                self.0.first.store(id.bits(), Relaxed);
                me.resume.store(0, Relaxed);
            }
        }
    }

    /// Puts a waiter behind all that are at least as urgent, and before the others. Only for lists
    /// whose waiters have their urgency in their status.
    pub(super) fn insert(&self, id: WaiterId, me: &Waiter<P>, urgency: u8) {
        if urgency == 0 {
            return self.push(id, me);
        }
        let mut at = self.0.first.load(Relaxed);
        let mut before = 0;
        while let Some((_, other)) = named::<P>(at).filter(|at| status::urgency(at.1) >= urgency) {
            before = at;
            at = other.next.load(Relaxed);
        }
        let Some((_, behind)) = named::<P>(at) else { return self.push(id, me) };
        me.next.store(at, Relaxed);
        me.resume.store(before, Relaxed);
        me.passed.store(0, Relaxed);
        behind.resume.store(id.bits(), Relaxed);
        match named::<P>(before) {
            Some((_, node)) => node.next.store(id.bits(), Relaxed),
            None => self.0.first.store(id.bits(), Relaxed),
        }
    }

    /// Removes a waiter that is on the list.
    pub(super) fn remove(&self, id: WaiterId, me: &Waiter<P>) {
        let (before, behind) = (me.resume.load(Relaxed), me.next.load(Relaxed));
        match named::<P>(before) {
            Some((_, node)) => node.next.store(behind, Relaxed),
            None => self.0.first.store(behind, Relaxed),
        }
        match named::<P>(behind) {
            Some((_, node)) => node.resume.store(before, Relaxed),
            None => self.0.last.store(before, Relaxed),
        }
        me.resume.store(id.bits(), Relaxed);
    }

    /// Forgets all waiters; those of this process are still linked. Returns the name of the first.
    pub(super) fn empty(&self) -> u32 {
        self.0.last.store(0, Relaxed);
        let first = self.0.first.load(Relaxed);
        self.0.first.store(0, Relaxed);
        first
    }

    /// Removes the first `count` waiters, or all; if `count` is 1, the policy chooses the waiter.
    /// Returns the name of the list that they form.
    pub(super) fn take<Q: Policy, F: Form>(&self, count: u32) -> u32 {
        let policy = Q::of(|| 0);
        let sorts = count == 1 && !self.is_short() && policy.shuffles::<P>();
        let all = self.take_each(count, || {
            let first = self.first()?;
            Some(if sorts { self.preferred::<Q, F>(policy, first) } else { first })
        });
        if self.first().is_none() {
            // The list has no waiters, or only those that a parent process has left.
            self.empty();
        }
        all
    }

    /// Removes the first waiters that want `wanted`, at most `count`. Waiters that want the same
    /// stand in a row. Returns the name of the list that they form.
    pub(super) fn take_who_want(&self, wanted: u32, count: u32) -> u32 {
        let wants = |of: &Named<P>| of.1.wants.load(Relaxed) == wanted;
        let mut at = self.first();
        while let Some(other) = at.filter(|other| !wants(other)) {
            at = named(other.1.next.load(Relaxed));
        }
        self.take_each(count, || {
            let found = at.filter(wants)?;
            at = named(found.1.next.load(Relaxed));
            Some(found)
        })
    }

    /// Removes the waiters that `next` finds, one after the other, at most `count`. Returns the
    /// name of the list that they form.
    fn take_each(&self, count: u32, mut next: impl FnMut() -> Option<Named<P>>) -> u32 {
        let (mut all, mut last) = (0, None::<&Waiter<P>>);
        for _ in 0..count {
            let Some((id, taken)) = next() else { break };
            self.remove(id, taken);
            taken.next.store(0, Relaxed);
            match last {
                Some(last) => last.next.store(id.bits(), Relaxed),
                None => all = id.bits(),
            }
            last = Some(taken);
        }
        all
    }

    /// Returns whether no other waiter wants what `me`, which is on the list, wants.
    pub(super) fn wants_alone(&self, me: &Waiter<P>) -> bool {
        let wants = |of: &Waiter<P>| of.wants.load(Relaxed);
        let beside = [&me.resume, &me.next].map(|name| named::<P>(name.load(Relaxed)));
        beside.into_iter().flatten().all(|(_, other)| wants(other) != wants(me))
    }

    /// Returns the waiter that the policy prefers, seen from the caller: one of the first few, or
    /// `first` if it was passed over often enough (LIST-3).
    fn preferred<Q: Policy, F: Form>(&self, policy: Q, first: Named<P>) -> Named<P> {
        let passed = first.1.passed.load(Relaxed);
        if u32::from(passed) >= F::GROUP.min(policy.bypass().into()) {
            return first;
        }
        let caller = Waiter::<P>::NEW;
        let caller = Waiting::of(&caller);
        policy.on_wait(caller);
        let mut best = first;
        let mut at = first;
        for _ in 1..REACH {
            let Some(other) = named::<P>(at.1.next.load(Relaxed)) else { break };
            if policy.compare(caller, Waiting::of(other.1), Waiting::of(best.1)) == Less {
                best = other;
            }
            at = other;
        }
        if best.0 != first.0 {
            first.1.passed.store(passed + 1, Relaxed);
        }
        best
    }
}

/// Returns the waiter of a name that this process has written.
pub(super) fn named<P: Platform>(name: u32) -> Option<Named<P>> {
    let id = WaiterId::from_bits(name)?;
    Some((id, arena::<P>().resolve(id)?))
}

/// Notes in a waiter's node what the policy will sort it by.
pub(super) fn note<P: Platform, Q: Policy>(me: &Member<P>) {
    let policy = Q::of(|| 0);
    if policy.notes::<P>() {
        policy.on_wait(Waiting::of(me.node));
    }
}

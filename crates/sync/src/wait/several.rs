//! Waiting for several objects at once: a place on the list of each, and one node on which the
//! waiter parks.
//!
//! ```text
//!   place ── on the list of one thing    ──┐  its node's `queue` names the lead
//!   place ── on the list of another thing ─┼────────────────────────────────────► lead: parked on
//!   ticket ── in the bell of a third     ──┘
//! ```
//!
//! The first place's node is the lead itself: a wait for two objects takes two nodes.
//!
//! - SEVERAL-1 (no lost wake): the node of a place is marked asleep from the start, so that a
//!   thread that lets it go wakes the lead after it has told the place (TOGETHER-4). The waiter
//!   checks all places before it parks; and a park does not begin if a wake came first.
//! - SEVERAL-2: a place that was notified and not used passes the notification on when it is
//!   dropped, as its primitive defines (EC-3, EVENT-5).
//! - SEVERAL-3: the lead's node is given back after all places are gone, which borrow it. A wake
//!   that comes after that is a spurious wake for the node's next user.
//!
//! Rejected alternatives: a word on the waiter's stack to which all threads that let it go write.
//! They may be late, and the word would have to outlive them; a node always does. And an exchange
//! by which one of the threads that let go wins: each of the others would have to hand back what it
//! has, under its own lock; here the waiter does so, and may check everything first.

use core::cell::Cell;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;
use core::task::Waker;

use antiphon_platform::{
    Atomic, Budget, Deadline, Hint, Parked, Platform, PolledWait, Ticket, Waiter,
};

use super::together::{CrowdForm, Member};
use crate::lock::Standard;
use crate::nap;

/// A wait of the caller for several objects, which notify it by their [places](Place), or by the
/// [ticket](Self::ticket). May be used once: another wait needs another `Several`.
pub struct Several<P: Platform> {
    /// `None` if no node was free.
    lead: Option<Member<P>>,
    lent: Cell<bool>,
    /// Whether a place has no node, so that no thread notifies it.
    short: Cell<bool>,
}

/// A place on the list of one of [several](Several) objects.
#[must_use = "a place takes notifications away from others: end it"]
pub struct Place<'a, P: Platform> {
    of: &'a dyn Stands<P>,
    /// `None` if no node was free, or the place was notified.
    me: Option<Member<P>>,
    told: bool,
}

/// An object that has a list with places of waiters.
pub(super) trait Stands<P: Platform>: Sync {
    /// Ends the wait of a member; returns whether it was notified.
    fn withdraw(&self, me: Member<P>) -> bool;

    /// SEVERAL-2: passes a member's notification on to another waiter.
    fn pass_on(&self);
}

/// A waker that a future has left in place of a wait; taken back when this is dropped. Must be
/// dropped before the places: while those are dropped, the caller may park on the lead.
#[must_use = "the waker is taken back"]
pub struct Left<'a, P: PolledWait> {
    /// `None` if no thread will wake it.
    lead: Option<&'static Waiter<P>>,
    of: PhantomData<&'a ()>,
}

/// How long a waiter without a node sleeps before it checks again, in nanoseconds.
const NAP_NS: u64 = 200_000;
/// Length of the spin between two checks of all places.
const PIECE: Budget = Budget::ns(200);

impl<P: Platform> Several<P> {
    /// Creates a wait without places. Does not block.
    #[must_use]
    pub fn new() -> Self {
        Self { lead: Member::take(), lent: Cell::new(false), short: Cell::new(false) }
    }

    /// Returns the name of the caller, for a thread that will wake it by [`Platform::unpark`]: the
    /// bits of a [`WaiterRef`](antiphon_platform::WaiterRef). Returns `None` if no node was free;
    /// then the caller must check by itself from time to time.
    pub fn ticket(&self) -> Option<Ticket> {
        self.lead.as_ref().and_then(|lead| Ticket::new(lead.reference().bits()))
    }

    /// Returns a node for a place.
    pub(super) fn member(&self) -> Option<Member<P>> {
        let member = self.lead.as_ref().and_then(|lead| {
            if self.lent.replace(true) { lead.take_beside() } else { Some(lead.lend()) }
        });
        self.short.set(self.short.get() || member.is_none());
        member
    }

    /// Leaves a waker, which is woken when a [wait](Self::wait) would end. Returns `None` if it
    /// would end already; then the caller must check all places. If no node was free, or in the
    /// child of a fork, the waker is woken at once: the caller must check by itself. Does not
    /// block.
    pub fn leave_waker<'a>(&'a self, waker: Waker) -> Option<Left<'a, P>>
    where
        P: PolledWait,
    {
        let lead = self.lead.as_ref().filter(|lead| !self.short.get() && !lead.is_lost());
        let Some(lead) = lead.map(|lead| lead.node) else {
            waker.wake();
            return Some(Left { lead: None, of: PhantomData });
        };
        // SAFETY: the node is ours until we are dropped; the holder of the `Left` does not wait.
        let left = unsafe { P::leave_waker(lead, waker) };
        left.then_some(Left { lead: Some(lead), of: PhantomData })
    }

    /// Waits until `is_over` returns true, or until the deadline, or returns spuriously. `is_over`
    /// must check all places, and all else that has the ticket. Blocks: spins, and then sleeps.
    pub fn wait(&self, deadline: Option<Deadline>, is_over: impl FnMut() -> bool) {
        self.wait_as::<Standard>(deadline, is_over);
    }

    /// Does what [`wait`](Self::wait) does, with the constants of `F`.
    pub fn wait_as<F: CrowdForm>(
        &self,
        deadline: Option<Deadline>,
        mut is_over: impl FnMut() -> bool,
    ) {
        let Some(lead) = &self.lead else {
            return nap::nap_until::<P>(nap::earlier::<P>(deadline, NAP_NS));
        };
        let until =
            if self.short.get() { Some(nap::earlier::<P>(deadline, NAP_NS)) } else { deadline };
        spin::<P, F>(lead, until, &mut is_over);
        // SEVERAL-1. In the child of a fork no thread knows of the lead.
        while !is_over() && !lead.is_lost() {
            if P::park(lead.node, until) == Parked::TimedOut {
                return;
            }
        }
    }
}

/// Spins for as long as a sleep costs, and checks all places meanwhile, if the machine is not
/// crowded.
fn spin<P: Platform, F: CrowdForm>(
    lead: &Member<P>,
    deadline: Option<Deadline>,
    is_over: &mut impl FnMut() -> bool,
) {
    let pieces = F::event_spin_ns::<P>() / PIECE.ns;
    if pieces == 0 || P::crowded() {
        return;
    }
    P::hint(Hint::SpinBegin);
    let status = &lead.node.status;
    for _ in 0..pieces {
        // Relaxed: all places are checked again, each of which acquires.
        let told = || status.spin_while(Relaxed, PIECE, Member::<P>::waits).is_ok();
        if is_over() || nap::passed::<P>(deadline) || told() {
            break;
        }
    }
    P::hint(Hint::SpinEnd);
}

impl<P: PolledWait> Left<'_, P> {
    /// Returns whether the thread that lets the caller go will wake it: if so, the caller need not
    /// check before that.
    pub fn is_told(&self) -> bool {
        self.lead.is_some()
    }
}

impl<P: PolledWait> Drop for Left<'_, P> {
    fn drop(&mut self) {
        if let Some(lead) = self.lead {
            // SAFETY: `leave_waker` left the waker in this node, which is still ours; the holder of
            // the `Left` does not wait.
            unsafe { P::take_waker(lead) };
        }
    }
}

impl<P: Platform> Drop for Several<P> {
    fn drop(&mut self) {
        if let Some(lead) = self.lead.take() {
            lead.give_lead();
        }
    }
}

impl<P: Platform> Default for Several<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, P: Platform> Place<'a, P> {
    pub(super) fn new(of: &'a dyn Stands<P>, me: Option<Member<P>>) -> Self {
        Self { of, me, told: false }
    }

    /// Gives back a place that is on no list. Returns `None`, for the caller to return.
    pub(super) fn give(mut self) -> Option<Self> {
        if let Some(me) = self.me.take() {
            me.give();
        }
        None
    }

    /// Returns whether the place has an unused notification. If so, what was done before the
    /// notification happens before the return.
    pub fn look(&mut self) -> bool {
        if let Some(me) = self.me.take_if(|me| me.is_over()) {
            self.told = self.of.withdraw(me);
        }
        self.told
    }

    /// Uses up the notification of the place, which is then not passed on; returns whether the last
    /// [look](Self::look) had found one. For an event count, the caller must check its condition
    /// after this.
    pub fn use_up(&mut self) -> bool {
        core::mem::take(&mut self.told)
    }
}

impl<P: Platform> Drop for Place<'_, P> {
    fn drop(&mut self) {
        let told = self.me.take().is_some_and(|me| self.of.withdraw(me));
        if told || self.told {
            self.of.pass_on();
        }
    }
}

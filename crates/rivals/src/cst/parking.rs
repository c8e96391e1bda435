//! How a waiter spins for its own quantum, sleeps, and is woken.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Platform, Word};

use super::CstForm;
use crate::classic::node::Node;
use crate::slice::{self, Spin};

/// The waiter spins.
pub(super) const UW: u32 = 1;
/// Added to `UW`: the waiter sleeps, or is about to.
pub(super) const PARKED: u32 = 2;
/// The waiter sleeps.
pub(super) const PW: u32 = UW | PARKED;
/// Added to the flags above: the waiter was passed over, and is in no queue.
pub(super) const OUT: u32 = 4;
/// Added to `PW`: the waiter was told to wake. It counts as awake only when it runs and says so
/// itself: until then nothing is handed to it.
const WOKEN: u32 = 64;
/// The waiter has the lock.
pub(super) const LOCK: u32 = 8;
/// The waiter is the first of its socket, and must acquire the lock for it.
pub(super) const HEAD: u32 = 16;

/// Does what [`slice::spin`](crate::slice::spin) does, for the caller's own quantum: until no
/// more than `margin_ns` is left of it.
///
/// # Errors
///
/// The same as for [`slice::spin`](crate::slice::spin).
pub(super) fn spin<P: Platform, F: CstForm, W: Word>(
    word: &impl Atomic<W>,
    margin_ns: u32,
    keep: impl Fn(W) -> bool,
) -> Result<W, W> {
    let spin = Spin { piece_ns: F::PIECE_NS, margin_ns, most_ns: u32::MAX };
    slice::spin::<P, W>(word, spin, keep)
}

/// UW → PW.
///
/// # Errors
///
/// The waiter's status: another thread was faster.
pub(super) fn fall_asleep<P: Platform>(me: &Node<P>) -> Result<(), u32> {
    // Relaxed: it only announces that we sleep. Acquire where it fails: as in `spin`.
    me.waiter.status.compare_exchange(UW, PW, Relaxed, Acquire).map(|_| ())
}

/// Sleeps while the caller is PW and was not told to wake; returns its status then.
pub(super) fn sleep<P: Platform>(me: &Node<P>) -> u32 {
    let status = &me.waiter.status;
    loop {
        // Acquire, both: pairs with the releases of the threads that end the sleep.
        let seen = status.load(Acquire);
        if seen & PARKED == 0 {
            return seen;
        }
        if seen & WOKEN != 0 {
            return status.fetch_and(!(PARKED | WOKEN), Acquire) & !(PARKED | WOKEN);
        }
        // The reason for the return does not matter: the loop checks the status.
        let _ = P::park(me.waiter, None);
    }
}

/// PW → OUT, by the owner; returns whether the waiter was PW. Release: our read of the waiter's
/// link happens before the node's next use; pairs with the acquires in `sleep`.
pub(super) fn pass_over<P: Platform>(at: &Node<P>) -> bool {
    let status = &at.waiter.status;
    // Relaxed: the exchange checks it.
    let mut seen = status.load(Relaxed);
    while seen & PARKED != 0 {
        match status.compare_exchange(seen, seen | OUT, Release, Relaxed) {
            Ok(_) => return true,
            Err(now) => seen = now,
        }
    }
    false
}

/// Pushes the caller, which is PW, onto a parking list.
pub(super) fn list<P: Platform>(list: &P::U32, me: &Node<P>) {
    let mut first = list.load(Relaxed);
    loop {
        // Relaxed: published by the exchange.
        me.waiter.resume.store(first, Relaxed);
        // Release: our node; pairs with the acquire in `sweep`. Acquire: pairs with the release in
        // `sweep`, so that we see what was done to our node before a sweep that has missed us
        // (CST-4).
        match list.compare_exchange(first, me.bits(), AcqRel, Relaxed) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

/// Waiters that were taken off a parking list and must be woken.
#[must_use = "the waiter that was taken off the list must be woken"]
pub(super) struct Sleepers(pub(super) u32);

/// Takes all waiters off a parking list.
pub(super) fn sweep<P: Platform>(list: &P::U32) -> Sleepers {
    // An exchange, though the list may be empty: a waiter that comes to the list afterwards
    // acquires from it that it was passed over (CST-4). Orderings as in `list`.
    Sleepers(list.swap(0, AcqRel))
}

impl Sleepers {
    /// Reverses the list, so that the first to come is first; returns its name.
    pub(super) fn in_order<P: Platform>(self) -> u32 {
        let (mut left, mut first) = (self.0, 0);
        while let Some(sleeper) = Node::<P>::at(left) {
            left = sleeper.waiter.resume.load(Relaxed);
            sleeper.waiter.resume.store(first, Relaxed);
            first = sleeper.bits();
        }
        first
    }

    /// Wakes all of them. Touches only their nodes, nothing of the lock.
    pub(super) fn wake<P: Platform>(self) {
        let mut left = self.0;
        while let Some(sleeper) = Node::<P>::at(left) {
            left = sleeper.waiter.resume.load(Relaxed);
            wake(&sleeper);
        }
    }
}

/// Wakes a waiter that was taken off its list. Touches only its node.
pub(super) fn wake<P: Platform>(sleeper: &Node<P>) {
    let reference = sleeper.reference();
    // Release: our read of the link happens before the node's next use; pairs with the acquire in
    // `sleep`.
    // mutant: a model executes a load before all later writes of other threads, so our read of the
    // link never sees the node's next use.
    sleeper.waiter.status.fetch_or(WOKEN, Release);
    if let Some(reference) = reference {
        P::unpark(reference);
    }
}

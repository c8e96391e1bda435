//! A count of the threads that may still touch an object that C programs destroy, and a record of
//! the process that uses it.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–3 | `inside` | how many waiters may still touch the object |
//! | 4–7 | `epoch` | the process that uses it, 0 if none has; bit 31: it is being renewed |
//!
//! In C and C++ a condition variable may be destroyed as soon as its waiters are notified, before
//! they have returned; a waiter that is giving up at that moment still looks at the list. And the
//! child of a fork finds waiters of its parent there, or a list that is locked by a thread which
//! does not exist in the child.
//!
//! - INSIDE-1: nothing of the object is touched by a waiter that has left it, or that was counted
//!   out; a thread that has waited until it is empty is ordered after all that they did.
//! - INSIDE-2: before any thread of a process returns from [`adopt`](Inside::adopt), one thread of
//!   it has renewed what another process has left.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Platform};

use crate::lock::{Form, Standard};
use crate::nap;

/// A count of the threads inside, and an epoch; 8 bytes, initially all zero.
#[repr(C)]
pub struct Inside<P: Platform> {
    inside: P::U32,
    epoch: P::U32,
}

/// Proof that a thread is inside, with the epoch of its process.
#[must_use]
#[derive(Debug)]
pub struct Visit(u32);

const RENEWING: u32 = 1 << 31;

/// Length of the nap between two checks of a word after the spin, in nanoseconds. The awaited
/// thread may be less urgent than the caller, and a yield would not let it run.
const NAP_NS: u64 = 200_000;

impl<P: Platform> Inside<P> {
    /// A count of 0, for an object that no process has used.
    pub const NEW: Self = Self { inside: P::U32::ZERO, epoch: P::U32::ZERO };

    /// Counts the caller inside: it may touch the object, from now on until it leaves.
    pub fn enter(&self) -> Visit {
        // Relaxed: a thread that waits until it is empty is ordered after the caller in another
        // way, such as by a mutex.
        self.inside.fetch_add(1, Relaxed);
        Visit(P::epoch())
    }

    /// Leaves; this must be the visitor's last access to the object. In a child that was forked
    /// inside this does nothing, because the visitor was counted in the parent's object.
    pub fn leave(&self, visit: Visit) {
        if visit.0 == P::epoch() {
            self.count_out(1);
        }
    }

    /// Notes that `visitors` threads which were inside will no longer touch the object.
    pub fn count_out(&self, visitors: u32) {
        // Release: INSIDE-1; pairs with the acquire in `wait_until_empty`.
        self.inside.fetch_sub(visitors, Release);
    }

    /// Returns whether no thread is inside; may be stale at once.
    pub fn is_empty(&self) -> bool {
        self.inside.load(Relaxed) == 0
    }

    /// Waits until no thread is inside; afterwards the object may be destroyed.
    pub fn wait_until_empty(&self) {
        Self::wait_while(&self.inside, |inside| inside != 0);
    }

    /// Returns whether a process has used the object, this one or another.
    pub fn is_used(&self) -> bool {
        self.epoch.load(Relaxed) != 0
    }

    /// INSIDE-2: renews the object by `renew`, and empties it, if this process has inherited it
    /// from its parent. Returns when one of the process's threads has done so.
    pub fn adopt(&self, renew: impl FnOnce()) {
        let epoch = P::epoch();
        // Acquire: the renewed object; pairs with the release in `renew`.
        if self.epoch.load(Acquire) != epoch {
            self.renew(epoch, renew);
        }
    }

    #[cold]
    fn renew(&self, epoch: u32, renew: impl FnOnce()) {
        loop {
            // A renewal that a fork has interrupted has another epoch, and is begun again.
            let seen = Self::wait_while(&self.epoch, |seen| seen == epoch | RENEWING);
            if seen == epoch {
                return;
            }
            // Relaxed: a thread that renewed it for another epoch is in another process.
            if self.epoch.compare_exchange(seen, epoch | RENEWING, Relaxed, Relaxed).is_err() {
                continue;
            }
            if seen != 0 {
                renew();
                self.inside.store(0, Relaxed);
            }
            // Release: INSIDE-2; pairs with the acquire in `adopt`.
            self.epoch.store(epoch, Release);
            return;
        }
    }

    /// Waits until `keep` is no longer true of the word; returns the word.
    fn wait_while(word: &P::U32, keep: impl Fn(u32) -> bool + Copy) -> u32 {
        loop {
            // Acquire: pairs with the releases in `count_out` and `renew`.
            if let Ok(seen) = word.spin_while(Acquire, Standard::SPIN, keep) {
                return seen;
            }
            nap::nap::<P>(NAP_NS);
        }
    }
}

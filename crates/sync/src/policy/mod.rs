//! Policies: who may stand beside whom in a lock's queue.
//!
//! ShflLock separates a lock's mechanism (a queue that a waiter may reorder) from its policy (what
//! order is wanted): `000_…`, "Decouple lock design from lock policy via shuffling mechanism". A
//! policy is a type without values, so that it costs nothing where it decides nothing:
//!
//! ```
//! use antiphon_platform::{Atomic, Platform, Waiter};
//! use antiphon_sync::policy::Policy;
//! use core::sync::atomic::Ordering::Relaxed;
//!
//! /// Waiters of the same parity of socket stand together.
//! struct Parity;
//!
//! impl Policy for Parity {
//!     fn shuffles<P: Platform>() -> bool {
//!         P::numa()
//!     }
//!     fn groups<P: Platform>(shuffler: &Waiter<P>, candidate: &Waiter<P>) -> bool {
//!         shuffler.socket.load(Relaxed) % 2 == candidate.socket.load(Relaxed) % 2
//!     }
//! }
//! ```

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform, Waiter};

/// What a shuffler wants the queue to look like.
pub trait Policy: Send + Sync + 'static {
    /// Whether there is anything to sort by on this machine. Asked once a wait.
    fn shuffles<P: Platform>() -> bool;

    /// Whether `candidate` should be moved up behind the group that `shuffler` gathers.
    ///
    /// A guess is good enough: the answer decides about order, never about exclusion.
    fn groups<P: Platform>(shuffler: &Waiter<P>, candidate: &Waiter<P>) -> bool;
}

/// First come, first served: no waiter is moved.
pub struct None;

impl Policy for None {
    fn shuffles<P: Platform>() -> bool {
        false
    }

    fn groups<P: Platform>(_: &Waiter<P>, _: &Waiter<P>) -> bool {
        false
    }
}

/// Waiters of the same socket stand together, so that the lock and what it guards cross sockets
/// seldom (`000_…`, "Sort waiters on the fly using socket ID"). Does nothing on one socket.
pub struct Numa;

impl Policy for Numa {
    fn shuffles<P: Platform>() -> bool {
        P::numa()
    }

    fn groups<P: Platform>(shuffler: &Waiter<P>, candidate: &Waiter<P>) -> bool {
        // Relaxed: written before the waiter joined the queue, whose links are acquired.
        shuffler.socket.load(Relaxed) == candidate.socket.load(Relaxed)
    }
}

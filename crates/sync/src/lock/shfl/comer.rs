//! How a comer tries a mutex on machines of several sockets.
//!
//! A try is an exchange, which takes the lock's line away from the owner, on another socket
//! perhaps, though the lock is held: the owner has to have it back before it can release. A look
//! leaves the owner its copy. But where the lock is free, a look and a try are two trips of the
//! line where a try alone is one. So a thread looks first at a lock that it had to wait for the
//! last time, and tries others at once.
//!
//! What is noted is a guess, and decides about no more than that: an address may be another lock's
//! by now.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform};

/// The address of a lock, and which of the thread's words is for it.
fn key<P: Platform, L>(lock: &L) -> (u64, usize) {
    let address = core::ptr::from_ref(lock).addr();
    (address as u64, (P::spread(address) >> 30) as usize)
}

/// Whether the caller should try `lock`: not one that it has waited for last time, and that is
/// still held.
#[inline]
pub(super) fn may_try<P: Platform, L>(lock: &L, locked: &P::U8) -> bool {
    let (address, at) = key::<P, L>(lock);
    P::local(|local| local.waited[at].load(Relaxed)) != address || {
        // Relaxed: it is tried, or waited for.
        let free = locked.load(Relaxed) == 0;
        if free {
            P::local(|local| local.waited[at].store(0, Relaxed));
        }
        free
    }
}

/// Notes that the caller has to wait for `lock`.
pub(super) fn note_waited<P: Platform, L>(lock: &L) {
    if P::numa() {
        let (address, at) = key::<P, L>(lock);
        P::local(|local| local.waited[at].store(address, Relaxed));
    }
}

//! How an arriving waiter tries to take a mutex on machines of several sockets.
//!
//! A try is an exchange. It takes the lock's cache line away from the owner even if the lock is
//! held, and the owner, perhaps on another socket, must get the line back before it can release. A
//! load leaves the owner its copy. But where the lock is free, a load and a try move the line
//! twice, and a try alone moves it once. So a thread first loads a lock that it had to wait for the
//! last time, and tries other locks at once.
//!
//! The note of that wait is a guess, and decides nothing else: its address may be another lock's by
//! now.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform};

/// Returns the address of a lock, and the index of the thread's word for it.
fn key<P: Platform, L>(lock: &L) -> (u64, usize) {
    let address = core::ptr::from_ref(lock).addr();
    (address as u64, word_of::<P>(address))
}

/// Returns the index of the words that a thread has for the lock at this address.
pub(super) fn word_of<P: Platform>(address: usize) -> usize {
    (P::spread(address) >> 30) as usize
}

/// Returns whether the caller should try `lock`: not if the caller waited for it last time and it
/// is still held.
#[inline]
pub(super) fn may_try<P: Platform, L>(lock: &L, locked: &P::U8) -> bool {
    let (address, at) = key::<P, L>(lock);
    P::local(|local| local.waited[at].load(Relaxed)) != address || {
        // Relaxed: the caller then tries the lock, or waits for it.
        let free = locked.load(Relaxed) == 0;
        if free {
            P::local(|local| local.waited[at].store(0, Relaxed));
        }
        free
    }
}

/// Notes that the caller must wait for `lock`.
pub(super) fn note_waited<P: Platform, L>(lock: &L) {
    if P::numa() {
        let (address, at) = key::<P, L>(lock);
        P::local(|local| local.waited[at].store(address, Relaxed));
    }
}

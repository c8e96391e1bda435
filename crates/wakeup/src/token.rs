//! The token of a sleeper: whether it sleeps, and whether a wake is pending.
//!
//! | token | meaning | park | unpark | deadline |
//! |---|---|---|---|---|
//! | `EMPTY` | no sleeper, no pending wake | → `ASLEEP`, sleep | → `DUE` | |
//! | `DUE` | a wake is pending | → `EMPTY`, return | → `DUE` | |
//! | `ASLEEP` | the thread has left, or is about to | | → `DUE`, it runs | → `EMPTY`, it runs |
//!
//! - TOKEN-1 (no lost wake): `wake` always leaves `DUE`, and only the sleeper removes `DUE`, and
//!   then returns.
//! - TOKEN-2 (one wake): one thread moves a token away from `ASLEEP`, and only that thread makes
//!   the sleeper runnable. A thread that is still on the way to its sleep can be made runnable: it
//!   is put into the inbox of its own CPU, which reads it only after the thread has left.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::Atomic;

const EMPTY: u32 = 0;
const DUE: u32 = 1;
const ASLEEP: u32 = 2;

/// Announces that the caller is about to sleep. Returns `false` if a wake was pending, which is
/// consumed.
#[inline]
#[must_use]
pub fn fall_asleep(token: &impl Atomic<u32>) -> bool {
    // Release: the name of the sleeper, which the waker reads; pairs with the acquire in `wake`.
    if token.compare_exchange(EMPTY, ASLEEP, Release, Relaxed).is_ok() {
        return true;
    }
    // Acquire: the waker's past; pairs with the release in `wake`.
    token.swap(EMPTY, Acquire);
    false
}

/// Called when the sleeper runs again: consumes the pending wake; returns whether there was one.
#[inline]
pub fn wake_up(token: &impl Atomic<u32>) -> bool {
    // Acquire: the waker's past; pairs with the release in `wake`.
    token.swap(EMPTY, Acquire) == DUE
}

/// Ends the present or next sleep. If it returns `true`, the caller, and no other thread, must make
/// the sleeper runnable.
#[inline]
#[must_use]
pub fn wake(token: &impl Atomic<u32>) -> bool {
    // Release: the waker's past; pairs with `fall_asleep` and `wake_up`. Acquire: the sleeper's
    // name; pairs with `fall_asleep`.
    token.swap(DUE, AcqRel) == ASLEEP
}

/// Ends a sleep whose deadline has passed. If it returns `true`, the caller, and no other thread,
/// must make the sleeper runnable.
#[inline]
#[must_use]
pub fn expire(token: &impl Atomic<u32>) -> bool {
    // Relaxed: the sleeper's own CPU does this, and runs the sleeper afterwards.
    token.compare_exchange(ASLEEP, EMPTY, Relaxed, Relaxed).is_ok()
}

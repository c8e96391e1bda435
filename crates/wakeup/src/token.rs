//! The token of a sleeper: whether it sleeps, and whether a wake is pending.
//!
//! | token | meaning | park | unpark | deadline |
//! |---|---|---|---|---|
//! | `EMPTY` | no sleeper, no pending wake | → `ASLEEP`, sleep | → `DUE` | |
//! | `DUE` | a wake is pending | → `EMPTY`, return | → `DUE` | |
//! | `ASLEEP` | the thread has left, or is about to | | → `DUE`, it runs | → `EMPTY`, it runs |
//! | `LAST` | the same, and its CPU halts | | → `DUE`, interrupt | → `EMPTY`, it runs |
//!
//! - TOKEN-1 (no lost wake): `wake` always leaves `DUE`, and only the sleeper removes `DUE`, and
//!   then returns.
//! - TOKEN-2 (one wake): one thread moves a token away from `ASLEEP`, and only that thread makes
//!   the sleeper runnable. A thread that is still on the way to its sleep can be made runnable: it
//!   is put into the inbox of its own CPU, which reads it only after the thread has left.
//! - TOKEN-3 (a CPU's own look): a CPU halts with the token of one of its sleepers `LAST`, and
//!   looks at it when it is awake again. The waker that has replaced `LAST` sends the interrupt,
//!   and the CPU, and no other, makes the sleeper runnable. So that wake moves no line but the
//!   token's own, and none of the CPU's inbox.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::Atomic;

const EMPTY: u32 = 0;
const DUE: u32 = 1;
const ASLEEP: u32 = 2;
const LAST: u32 = 3;

/// What a waker must do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Woken {
    /// Nothing: there is no sleeper, or another waker has woken it.
    No,
    /// The waker, and no other, must make the sleeper runnable.
    Asleep,
    /// The waker, and no other, must interrupt the sleeper's CPU, which makes it runnable.
    Last,
}

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

/// Ends the present or next sleep.
#[inline]
pub fn wake(token: &impl Atomic<u32>) -> Woken {
    // Release: the waker's past; pairs with `fall_asleep` and `wake_up`. Acquire: the sleeper's
    // name; pairs with the release in `fall_asleep`, also if `rest` or `rise` came after it.
    match token.swap(DUE, AcqRel) {
        ASLEEP => Woken::Asleep,
        LAST => Woken::Last,
        _ => Woken::No,
    }
}

/// Ends a sleep whose deadline has passed. If it returns `true`, the caller, and no other thread,
/// must make the sleeper runnable. Called by the sleeper's CPU.
#[inline]
#[must_use]
pub fn expire(token: &impl Atomic<u32>) -> bool {
    // Relaxed, both: the sleeper's own CPU does this, and runs the sleeper afterwards. Other CPUs
    // only make it `DUE`.
    let seen = token.load(Relaxed);
    seen >= ASLEEP && token.compare_exchange(seen, EMPTY, Relaxed, Relaxed).is_ok()
}

/// Announces that the sleeper's CPU halts (TOKEN-3). Called by that CPU with interrupts off. It
/// halts also if this returns `false`: a waker is then about to put the sleeper into its inbox. If
/// it returns `true` it calls [`rise`] when it is awake again, unless the sleep has expired.
#[inline]
#[must_use]
pub fn rest(token: &impl Atomic<u32>) -> bool {
    // Relaxed: an exchange continues what the release in `fall_asleep` has begun.
    token.compare_exchange(ASLEEP, LAST, Relaxed, Relaxed).is_ok()
}

/// Announces that the sleeper's CPU is awake again. If it returns `true`, the sleeper was woken,
/// and the CPU must make it runnable.
#[inline]
#[must_use]
pub fn rise(token: &impl Atomic<u32>) -> bool {
    // Relaxed: as in `rest`; and the sleeper acquires the waker's past in `wake_up`.
    token.compare_exchange(LAST, ASLEEP, Relaxed, Relaxed).is_err()
}

//! Parking: a waiter sleeps until its token says that a wake is pending.
//!
//! | token | meaning | park | unpark | timeout |
//! |---|---|---|---|---|
//! | `EMPTY` | no sleeper, no pending wake | → `THREAD` or `FIBER`, sleep | → `DUE` | |
//! | `DUE` | a wake is pending | → `EMPTY`, return | → `DUE` | → `EMPTY`, return as woken |
//! | `THREAD` | a thread sleeps on the token's futex | | → `DUE`, wake the futex | → `EMPTY` |
//! | `FIBER` | the fiber in `handle` is suspended | | → `DUE`, resume it | → `EMPTY`, resume it |
//! | `WAKER` | a future has left a [waker](crate::polled) | | → `DUE`, wake it | |
//!
//! - PARK-1 (no lost token): `unpark` always leaves `DUE`, and only the waiter itself removes
//!   `DUE`, and it then returns.
//! - PARK-2 (one wake): a thread that moves a token away from `THREAD` or `FIBER` with a swap or
//!   exchange sees that it did, and only that thread wakes the sleeper; without a sleeper there is
//!   no system call.
//! - PARK-3 (no early resume): the scheduler that switched away from the fiber sets `FIBER` when
//!   the fiber's stack is no longer in use ([`crate::fiber`]). So a fiber may be resumed on any
//!   thread as soon as its token leaves `FIBER`.
//!
//! The bits above `DUE` hold the time at which a thread was woken; [`crate::sleep`] learns the cost
//! of sleeps from it.
//!
//! Because of the releasing swap of `unpark` and the acquiring swaps of the waiter, everything
//! before the wake happens before the return. A token that is still `DUE` when a node changes hands
//! is a spurious wake for its next owner; every caller of `park` must expect those anyway.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, Parked, Waiter, WaiterRef};

use crate::futex::Slept;
use crate::{Linux, fiber, futex, nodes, polled, section, sleep, tsc};

const EMPTY: u32 = 0;
const DUE: u32 = 1;
const THREAD: u32 = 2;
const FIBER: u32 = 3;
/// Uses a bit above those of the state, so that its state bits differ from `DUE`.
const WAKER: u32 = THREAD | 1 << STATE_BITS;
/// Number of state bits; above them is the time of a wake, in units of 16 ticks.
const STATE_BITS: u32 = 2;
const STATE: u32 = (1 << STATE_BITS) - 1;
const STAMP_SHIFT: u32 = 4;

/// See [`Platform::park`](antiphon_platform::Platform::park).
pub(crate) fn park(waiter: &Waiter<Linux>, deadline: Option<Deadline>) -> Parked {
    // SECTION-3.
    section::interrupt();
    if let Some((hooks, handle)) = fiber::current() {
        return fiber::park(hooks, handle, waiter, deadline);
    }
    if !fall_asleep(waiter) {
        return Parked::Woken;
    }
    let slept = futex::wait(word(waiter), futex::PRIVATE, THREAD, deadline);
    let due = wake_up(waiter);
    if let (Some(stamp), Slept::Woken) = (due, slept) {
        sleep::took(since(stamp));
    }
    if due.is_some() || slept != Slept::TimedOut { Parked::Woken } else { Parked::TimedOut }
}

/// See [`Platform::unpark`](antiphon_platform::Platform::unpark).
///
/// Returns whether the waiter was found asleep, as
/// [`Platform::unpark_asleep`](antiphon_platform::Platform::unpark_asleep) does: the kernel removes
/// a thread from its futex while it is in a signal handler, or stopped.
pub(crate) fn unpark(waiter: WaiterRef) -> bool {
    let Some(node) = nodes::node(waiter.index) else { return false };
    // Relaxed: the check only keeps late wakes from most of the node's next waits; the swap orders.
    if node.generation.load(Relaxed) != waiter.generation {
        return false;
    }
    // Relaxed: a guess. A fiber's wake gives no sample of the cost.
    let stamp = if node.token.load(Relaxed) == FIBER { 0 } else { stamp() };
    // Release: the waker's past; pairs with `wake_up` and `fall_asleep`. Acquire: `handle`; pairs
    // with the release in `suspended::commit`.
    match node.token.swap(DUE | stamp << STATE_BITS, AcqRel) {
        THREAD => return futex::wake(word(node), futex::PRIVATE, 1) != 0,
        FIBER => fiber::resume(node.handle.load(Relaxed)),
        WAKER => polled::wake(node),
        _ => return false,
    }
    true
}

/// The first half of a thread's park. Returns `false` if a wake was pending, which is now consumed.
fn fall_asleep(waiter: &Waiter<Linux>) -> bool {
    // Relaxed: a waker that finds a thread asleep wakes the futex, and reads nothing that this
    // thread wrote.
    if waiter.token.compare_exchange(EMPTY, THREAD, Relaxed, Relaxed).is_ok() {
        return true;
    }
    // The token was `DUE`, because this thread is awake, and only this thread removes `DUE`. A swap
    // and not a store: another wake may have come meanwhile, and its past must happen before our
    // return, too.
    waiter.token.swap(EMPTY, Acquire);
    false
}

/// The second half of a park. Consumes a pending wake and returns its time, if there is one.
fn wake_up(waiter: &Waiter<Linux>) -> Option<u32> {
    // Acquire: the waker's past; pairs with the swap in `unpark`.
    let token = waiter.token.swap(EMPTY, Acquire);
    (token & STATE == DUE).then_some(token >> STATE_BITS)
}

/// The time in the format of tokens: 30 bits, which wrap around after some seconds.
fn stamp() -> u32 {
    (tsc::ticks() >> STAMP_SHIFT) as u32 & (u32::MAX >> STATE_BITS)
}

/// Ticks from a stamp until now; 0 if the stamp is from another CPU whose counter is ahead.
fn since(then: u32) -> u64 {
    let units = stamp().wrapping_sub(then) & (u32::MAX >> STATE_BITS);
    if units > u32::MAX >> (STATE_BITS + 1) { 0 } else { u64::from(units) << STAMP_SHIFT }
}

fn word(waiter: &Waiter<Linux>) -> &AtomicU32 {
    waiter.token.get()
}

/// The operations of a fiber scheduler, through [`crate::fiber`].
pub(crate) mod suspended {
    use super::*;

    /// PARK-3: called when the fiber has left its stack. Returns `false` if the fiber must be
    /// resumed at once, because a wake is pending; [`finish`] will consume it. The deadline may
    /// have passed by then.
    pub(crate) fn commit(waiter: &Waiter<Linux>) -> bool {
        // Release: `handle`; pairs with the acquire of the swap in `unpark`.
        waiter.token.compare_exchange(EMPTY, FIBER, Release, Relaxed).is_ok()
    }

    /// Ends the suspension because no wake came in time. Returns `false` if a wake has already
    /// ended it.
    pub(crate) fn expire(waiter: &Waiter<Linux>) -> bool {
        // Relaxed: the thread that resumes the fiber publishes; nothing else is read.
        waiter.token.compare_exchange(FIBER, EMPTY, Relaxed, Relaxed).is_ok()
    }

    /// Called when the fiber runs again; consumes a pending wake, and returns whether there was
    /// one.
    pub(crate) fn finish(waiter: &Waiter<Linux>) -> bool {
        wake_up(waiter).is_some()
    }
}

/// The operations of a future that replace parking, through [`crate::polled`].
pub(crate) mod left {
    use super::*;

    /// Publishes the waker that was left. Returns `false` if a wake was pending, which is now
    /// consumed.
    pub(crate) fn commit(waiter: &Waiter<Linux>) -> bool {
        // Release: `handle`; pairs with the acquire of the swap in `unpark`.
        let left = waiter.token.compare_exchange(EMPTY, WAKER, Release, Relaxed).is_ok();
        if !left {
            end(waiter);
        }
        left
    }

    /// Takes the waker back, and consumes a pending wake, if there is one.
    pub(crate) fn end(waiter: &Waiter<Linux>) {
        wake_up(waiter);
    }
}

/// A wait that the caller carries out with its own `FUTEX_WAIT` system call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FutexWait {
    /// The word to wait on, with `FUTEX_PRIVATE_FLAG`.
    pub address: *const u32,
    /// The value of the word until a wake comes.
    pub expected: u32,
}

/// Begins a park whose sleep the caller performs. Returns `None` if a wake was pending: it is
/// consumed, and there is nothing to wait for.
///
/// This is `park` in two halves, for C code that must sleep with asynchronous cancellation enabled,
/// where no Rust frame may be on the stack. Only for threads, not for fibers. Whatever ends the
/// sleep, even a cancellation, [`park_end`] must follow before the node is used again.
#[must_use]
pub fn park_begin(waiter: &Waiter<Linux>) -> Option<FutexWait> {
    // SECTION-3.
    section::interrupt();
    fall_asleep(waiter).then(|| FutexWait { address: word(waiter).as_ptr(), expected: THREAD })
}

/// Ends a park of [`park_begin`]. Returns `true` if a wake was pending: it is consumed, and a
/// cancelled caller must pass it on. Returns `false` after a timeout, a cancellation or a spurious
/// wake.
#[must_use]
pub fn park_end(waiter: &Waiter<Linux>) -> bool {
    wake_up(waiter).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_platform::Clock;

    #[test]
    fn the_halves_of_a_park_take_a_wake_before_and_after() {
        let waiter = Waiter::<Linux>::NEW;
        waiter.token.store(DUE, Relaxed);
        assert!(park_begin(&waiter).is_none());
        let wait = park_begin(&waiter);
        assert_eq!(wait.map(|wait| wait.expected), Some(waiter.token.load(Relaxed)));
        assert_eq!(waiter.token.swap(DUE, Relaxed), THREAD);
        assert!(park_end(&waiter));
        assert!(!park_end(&waiter));
    }

    /// The wake is kept, however long it takes until the fiber runs again.
    #[test]
    fn a_wake_that_came_before_a_fiber_was_suspended_is_not_lost() {
        let waiter = Waiter::<Linux>::NEW;
        waiter.token.store(DUE, Relaxed);
        assert!(!suspended::commit(&waiter));
        assert!(suspended::finish(&waiter));
        assert!(suspended::commit(&waiter));
        assert!(suspended::expire(&waiter));
        assert!(!suspended::finish(&waiter));
    }

    #[test]
    fn a_stamp_is_as_old_as_the_counter_says_and_one_that_is_ahead_is_not() {
        let before = tsc::ticks();
        let old = since(stamp().wrapping_sub(1_000));
        assert!(old >= 1_000 << STAMP_SHIFT);
        assert!(old <= (1_002 << STAMP_SHIFT) + tsc::since(before, tsc::ticks()));
        assert_eq!(since(stamp().wrapping_add(1 << 28) & (u32::MAX >> STATE_BITS)), 0);
    }

    #[test]
    fn a_wake_that_is_due_beats_a_deadline_that_has_passed() {
        let waiter = Waiter::<Linux>::NEW;
        let past = Some(Deadline { clock: Clock::Monotonic, ns: 1 });
        waiter.token.store(DUE, Relaxed);
        assert_eq!(park(&waiter, past), Parked::Woken);
        assert_eq!(park(&waiter, past), Parked::TimedOut);
    }
}

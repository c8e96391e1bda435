//! Parking: a waiter sleeps until its token says that a wake is due.
//!
//! | token | meaning | park | unpark | timeout |
//! |---|---|---|---|---|
//! | `EMPTY` | no sleeper, no wake is due | → `THREAD` or `FIBER`, sleep | → `DUE` | |
//! | `DUE` | a wake is due | → `EMPTY`, return | → `DUE` | → `EMPTY`, return as woken |
//! | `THREAD` | a thread sleeps on the token's futex | | → `DUE`, wake the futex | → `EMPTY` |
//! | `FIBER` | the fiber in `handle` is suspended | | → `DUE`, resume it | → `EMPTY`, resume it |
//! | `WAKER` | a future has left a [waker](crate::polled) | | → `DUE`, wake it | |
//!
//! - PARK-1 (no lost token): `unpark` always leaves `DUE`, and only the waiter itself takes `DUE`
//!   away, by which it returns.
//! - PARK-2 (one wake): a thread that moves a token away from `THREAD` or `FIBER` with a swap or
//!   exchange sees that it did, and it alone wakes; no system call without a sleeper.
//! - PARK-3 (no early resume): `FIBER` is set when the fiber's stack is no longer in use, by the
//!   scheduler that switched away from it ([`crate::fiber`]). So a fiber may be resumed on any
//!   thread the moment that its token leaves `FIBER`.
//!
//! Above `DUE` stands the time at which a thread was woken, by which [`crate::sleep`] learns what
//! sleeps cost.
//!
//! The releasing swap of `unpark` and the acquiring ones of the waiter make what happened before
//! the wake happen before the return. A token that is left `DUE` when a node changes hands is a
//! spurious wake for its next owner, which every caller of `park` must bear anyway.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, Parked, Waiter, WaiterRef};

use crate::futex::Slept;
use crate::{Linux, fiber, futex, nodes, polled, sleep, tsc};

const EMPTY: u32 = 0;
const DUE: u32 = 1;
const THREAD: u32 = 2;
const FIBER: u32 = 3;
/// With a bit above the state's, of which it has none that is `DUE`.
const WAKER: u32 = THREAD | 1 << STATE_BITS;
/// The bits of these; above them is the time of a wake, in units of 16 ticks.
const STATE_BITS: u32 = 2;
const STATE: u32 = (1 << STATE_BITS) - 1;
const STAMP_SHIFT: u32 = 4;

/// See [`Platform::park`](antiphon_platform::Platform::park).
pub(crate) fn park(waiter: &Waiter<Linux>, deadline: Option<Deadline>) -> Parked {
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
/// Says whether the waiter was found asleep, as
/// [`Platform::unpark_asleep`](antiphon_platform::Platform::unpark_asleep) does: the kernel takes a
/// thread off its futex for as long as that is in a signal handler, or stopped.
pub(crate) fn unpark(waiter: WaiterRef) -> bool {
    let Some(node) = nodes::node(waiter.index) else { return false };
    // Relaxed: it only keeps late wakes from most of the node's next waits; the swap orders.
    if node.generation.load(Relaxed) != waiter.generation {
        return false;
    }
    // Relaxed: a guess. A fiber's wake teaches nothing.
    let stamp = if node.token.load(Relaxed) == FIBER { 0 } else { stamp() };
    // Release: the waker's past; pairs with `wake_up` and `fall_asleep`. Acquire: `handle`, pairs
    // with the release in `suspended::commit`.
    match node.token.swap(DUE | stamp << STATE_BITS, AcqRel) {
        THREAD => return futex::wake(word(node), futex::PRIVATE, 1) != 0,
        FIBER => fiber::resume(node.handle.load(Relaxed)),
        WAKER => polled::wake(node),
        _ => return false,
    }
    true
}

/// The first half of a thread's park: `false` if a wake was due and is taken.
fn fall_asleep(waiter: &Waiter<Linux>) -> bool {
    // Relaxed: a waker that finds a thread asleep wakes the futex, and reads nothing that we have
    // written.
    if waiter.token.compare_exchange(EMPTY, THREAD, Relaxed, Relaxed).is_ok() {
        return true;
    }
    // It was `DUE`, because we are awake, and only we take that away. A swap and not a store:
    // another wake may have come meanwhile, and its past must come before our return too.
    waiter.token.swap(EMPTY, Acquire);
    false
}

/// The last half of a park: if a wake was due, it is taken; the time when it was given.
fn wake_up(waiter: &Waiter<Linux>) -> Option<u32> {
    // Acquire: the waker's past, pairs with the swap in `unpark`.
    let token = waiter.token.swap(EMPTY, Acquire);
    (token & STATE == DUE).then_some(token >> STATE_BITS)
}

/// The time, as it stands in tokens: 30 bits, which repeat after some seconds.
fn stamp() -> u32 {
    (tsc::ticks() >> STAMP_SHIFT) as u32 & (u32::MAX >> STATE_BITS)
}

/// Ticks from a stamp until now; 0 if that is another CPU's, whose counter is ahead.
fn since(then: u32) -> u64 {
    let units = stamp().wrapping_sub(then) & (u32::MAX >> STATE_BITS);
    if units > u32::MAX >> (STATE_BITS + 1) { 0 } else { u64::from(units) << STAMP_SHIFT }
}

fn word(waiter: &Waiter<Linux>) -> &AtomicU32 {
    waiter.token.as_atomic()
}

/// The actions of a fiber scheduler, by way of [`crate::fiber`].
pub(crate) mod suspended {
    use super::*;

    /// PARK-3: the fiber has left its stack. `false` if it must be resumed at once: a wake is due,
    /// and stays so for [`finish`] to take. Its deadline may have passed by then.
    pub(crate) fn commit(waiter: &Waiter<Linux>) -> bool {
        // Release: `handle`, pairs with the acquire of the swap in `unpark`.
        waiter.token.compare_exchange(EMPTY, FIBER, Release, Relaxed).is_ok()
    }

    /// Ends the suspension because no wake has come in time. `false` if a wake has ended it
    /// already.
    pub(crate) fn expire(waiter: &Waiter<Linux>) -> bool {
        // Relaxed: the thread that resumes the fiber publishes; nothing else is read.
        waiter.token.compare_exchange(FIBER, EMPTY, Relaxed, Relaxed).is_ok()
    }

    /// Whether a wake was due; the fiber runs again.
    pub(crate) fn finish(waiter: &Waiter<Linux>) -> bool {
        wake_up(waiter).is_some()
    }
}

/// The actions of a future in place of parking, by way of [`crate::polled`].
pub(crate) mod left {
    use super::*;

    /// A waker was left. `false`: a wake was due, and is taken.
    pub(crate) fn commit(waiter: &Waiter<Linux>) -> bool {
        // Release: `handle`, pairs with the acquire of the swap in `unpark`.
        let left = waiter.token.compare_exchange(EMPTY, WAKER, Release, Relaxed).is_ok();
        if !left {
            end(waiter);
        }
        left
    }

    /// The waker is taken back, and the wake, if one was due.
    pub(crate) fn end(waiter: &Waiter<Linux>) {
        wake_up(waiter);
    }
}

/// A wait that the caller carries out with a `FUTEX_WAIT` system call of its own.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FutexWait {
    /// The word to wait on, with `FUTEX_PRIVATE_FLAG`.
    pub address: *const u32,
    /// The value of the word until a wake comes.
    pub expected: u32,
}

/// Begins a park whose sleep is up to the caller. `None` if a wake was due: it is taken and there
/// is nothing to wait for.
///
/// This is `park` in two halves, for C code that has to sleep with asynchronous cancellation
/// enabled, where no Rust frame may be on the stack. Threads only, not fibers. Whatever ended the
/// sleep, a cancellation too, [`park_end`] must follow before the node is used again.
#[must_use]
pub fn park_begin(waiter: &Waiter<Linux>) -> Option<FutexWait> {
    fall_asleep(waiter).then(|| FutexWait { address: word(waiter).as_ptr(), expected: THREAD })
}

/// Ends what [`park_begin`] began. `true` if a wake was due: it is taken, and a caller that was
/// cancelled must pass it on. `false` after a timeout, a cancellation or a spurious wake.
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

    /// However long it takes until the fiber runs again.
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

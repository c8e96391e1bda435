//! The futex: sleeping until a word changes, in private or shared memory; and a yield, which is a
//! short sleep where a filter refuses the call.

use core::sync::atomic::AtomicU32;

use antiphon_platform::{Clock, Deadline, Parked};

use crate::clock::Slices;
use crate::{clock, filter, sys};

/// The length of the sleep that replaces a yield.
const NAP_NS: u64 = 50_000;

/// The reason why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    /// Woken from a sleep, rarely spuriously.
    Woken,
    /// Interrupted by a signal, or the word held another value at the start.
    Maybe,
    /// The deadline has passed.
    TimedOut,
}

/// The threads that wait on a word.
#[derive(Clone, Copy)]
pub(crate) enum Whose {
    /// The threads of this process.
    Private,
    /// The threads of all processes that map the memory. Slower, because the kernel looks up the
    /// page behind the address.
    Shared,
}

impl Whose {
    fn flag(self) -> i32 {
        match self {
            Self::Private => libc::FUTEX_PRIVATE_FLAG,
            Self::Shared => 0,
        }
    }
}

/// Arguments for a sleep on words of this process, at all places of a word.
pub(crate) const PRIVATE: (Whose, u32) = (Whose::Private, u32::MAX);
/// Arguments for a sleep on words in shared memory, at all places of a word.
pub(crate) const SHARED: (Whose, u32) = (Whose::Shared, u32::MAX);

impl Slept {
    /// The value that [`park`](antiphon_platform::Platform::park) and similar functions return.
    pub(crate) fn parked(self) -> Parked {
        match self {
            Self::Woken | Self::Maybe => Parked::Woken,
            Self::TimedOut => Parked::TimedOut,
        }
    }
}

/// Sleeps while `word` holds `expected`, until a [`wake`] of one of the `places` (bits) or the
/// deadline.
///
/// The deadline is absolute, so a spurious wake costs no accuracy, and a deadline in the realtime
/// clock moves when that clock is set. If the kernel doesn't know the clock, the sleep is cut into
/// slices.
pub(crate) fn wait(
    word: *const AtomicU32,
    among: (Whose, u32),
    expected: u32,
    deadline: Option<Deadline>,
) -> Slept {
    match deadline {
        Some(deadline) if deadline.clock.is_seen() => wait_as_seen(word, among, expected, deadline),
        _ => sleep(word, among, expected, deadline),
    }
}

#[cold]
fn wait_as_seen(
    word: *const AtomicU32,
    among: (Whose, u32),
    expected: u32,
    deadline: Deadline,
) -> Slept {
    let mut slices = Slices::new(deadline);
    while let Some(ns) = slices.next_ns() {
        let until = Deadline { clock: Clock::Monotonic, ns };
        match sleep(word, among, expected, Some(until)) {
            Slept::TimedOut => {}
            slept => return slept,
        }
    }
    Slept::TimedOut
}

fn sleep(
    word: *const AtomicU32,
    among: (Whose, u32),
    expected: u32,
    deadline: Option<Deadline>,
) -> Slept {
    match ask(word, among, expected, deadline) {
        Err(sys::Errno(libc::ETIMEDOUT)) => Slept::TimedOut,
        Ok(_) => Slept::Woken,
        Err(sys::Errno(libc::EAGAIN | libc::EINTR)) => Slept::Maybe,
        // A filter refuses the futex: the caller's loop then yields to other threads.
        Err(_) => {
            yield_now();
            Slept::Maybe
        }
    }
}

/// Sleeps while `word` is zero, until the deadline, in a clock of the kernel. Returns at once where
/// futexes are refused.
pub(crate) fn nap(word: &AtomicU32, deadline: Option<Deadline>) {
    // The reason for the end does not matter.
    let _ = ask(word, PRIVATE, 0, deadline);
}

/// Lets another thread run, if one wants to.
pub fn yield_now() {
    if filter::filtered() {
        let ns = clock::now(Clock::Monotonic) + NAP_NS;
        let until = Some(Deadline { clock: Clock::Monotonic, ns });
        // No other thread knows this word.
        return nap(&AtomicU32::new(0), until);
    }
    // SAFETY: takes no arguments. On Linux it never fails.
    let _ = unsafe { sys::call(libc::SYS_sched_yield, []) };
}

fn ask(
    word: *const AtomicU32,
    (whose, places): (Whose, u32),
    expected: u32,
    deadline: Option<Deadline>,
) -> Result<usize, sys::Errno> {
    let mut operation = libc::FUTEX_WAIT_BITSET | whose.flag();
    if deadline.is_some_and(|deadline| deadline.clock == Clock::Realtime) {
        operation |= libc::FUTEX_CLOCK_REALTIME;
    }
    let until = deadline.map(|deadline| clock::timespec(deadline.ns));
    let until = until.as_ref().map_or(0, |until| core::ptr::from_ref(until) as usize);
    let args = [word.addr(), operation as usize, expected as usize, until, 0, places as usize];
    // SAFETY: the call writes nothing; it reads the word, if it is mapped, and the time.
    unsafe { sys::needed(libc::SYS_futex, args) }
}

/// Wakes up to `count` sleepers at the `places` of `word`, which may be gone; returns how many.
pub(crate) fn wake(word: *const AtomicU32, (whose, places): (Whose, u32), count: u32) -> u32 {
    // The kernel treats 0 as 1.
    if count == 0 {
        return 0;
    }
    let operation = libc::FUTEX_WAKE_BITSET | whose.flag();
    let count = count.min(i32::MAX as u32);
    let args = [word.addr(), operation as usize, count as usize, 0, 0, places as usize];
    // SAFETY: the kernel uses the address as a name only. No error needs handling: where futexes
    // are refused, no thread sleeps; where the memory is gone, no waiter is left.
    unsafe { sys::needed(libc::SYS_futex, args) }.map_or(0, |woken| woken as u32)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn nobody_is_woken_if_that_is_asked_for() {
        let word = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| wait(&word, PRIVATE, 0, None));
            // Time to fall asleep; if the thread sleeps later than that, this test finds nothing.
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(wake(&word, PRIVATE, 0), 0);
            while wake(&word, PRIVATE, 1) == 0 {
                std::thread::yield_now();
            }
            assert_eq!(sleeper.join().expect("it ends"), Slept::Woken);
        });
    }

    #[test]
    fn another_value_and_a_past_deadline_return_at_once() {
        let word = AtomicU32::new(5);
        assert_eq!(wait(&word, PRIVATE, 6, None), Slept::Maybe);
        for clock in [Clock::Monotonic, Clock::Realtime] {
            assert_eq!(wait(&word, SHARED, 5, Some(Deadline { clock, ns: 0 })), Slept::TimedOut);
        }
    }
}

//! The futex: sleeping until a word changes, of this process or of several.

use core::sync::atomic::AtomicU32;

use antiphon_platform::{Clock, Deadline};

use crate::{clock, sys};

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    /// Woken from a sleep, seldom for no reason.
    Woken,
    /// Interrupted by a signal, or the word held something else to begin with.
    Maybe,
    /// The deadline has passed.
    TimedOut,
}

/// Whose threads wait on a word.
#[derive(Clone, Copy)]
pub(crate) enum Whose {
    /// Those of this process.
    Private,
    /// Those of all processes that have the memory. The kernel looks for what is behind the
    /// address, which takes longer.
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

/// Sleeps while `word` holds `expected`, until a [`wake`] or the deadline.
///
/// The deadline is absolute, so a spurious wake costs no accuracy, and one in the realtime clock
/// follows that clock when it is set.
pub(crate) fn wait(
    word: &AtomicU32,
    whose: Whose,
    expected: u32,
    deadline: Option<Deadline>,
) -> Slept {
    let mut operation = libc::FUTEX_WAIT_BITSET | whose.flag();
    if deadline.is_some_and(|deadline| deadline.clock == Clock::Realtime) {
        operation |= libc::FUTEX_CLOCK_REALTIME;
    }
    let until = deadline.map(|deadline| clock::timespec(deadline.ns));
    let until = until.as_ref().map_or(0, |until| core::ptr::from_ref(until) as usize);
    let any = libc::FUTEX_BITSET_MATCH_ANY as u32 as usize;
    let args = [word.as_ptr() as usize, operation as usize, expected as usize, until, 0, any];
    // SAFETY: the word and the time outlive the call, which writes neither.
    match unsafe { sys::call(libc::SYS_futex, args) } {
        Err(sys::Errno(libc::ETIMEDOUT)) => Slept::TimedOut,
        Ok(_) => Slept::Woken,
        Err(sys::Errno(libc::EAGAIN | libc::EINTR)) => Slept::Maybe,
        // No futex here (a filter refuses it): what calls us is then a loop that lets others run.
        Err(_) => {
            sys::yield_now();
            Slept::Maybe
        }
    }
}

/// Wakes up to `count` sleepers on `word`, which may be gone.
pub(crate) fn wake(word: *const AtomicU32, whose: Whose, count: u32) {
    let operation = libc::FUTEX_WAKE | whose.flag();
    let count = count.min(i32::MAX as u32);
    // SAFETY: the kernel uses the address as a name only. It can't fail in a way that we could
    // answer: where futexes are refused, nobody sleeps; where the memory is gone, nobody is left.
    let _ =
        unsafe { sys::call(libc::SYS_futex, [word.addr(), operation as usize, count as usize]) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_value_and_a_past_deadline_return_at_once() {
        let word = AtomicU32::new(5);
        assert_eq!(wait(&word, Whose::Private, 6, None), Slept::Maybe);
        for clock in [Clock::Monotonic, Clock::Realtime] {
            assert_eq!(
                wait(&word, Whose::Shared, 5, Some(Deadline { clock, ns: 0 })),
                Slept::TimedOut
            );
        }
    }
}

//! Clocks: `clock_gettime`, which the vDSO answers without entering the kernel.

use antiphon_platform::Clock;

/// Nanoseconds of `clock`; 0 if it can't be read or stands before its zero.
pub(crate) fn now(clock: Clock) -> u64 {
    let id = match clock {
        Clock::Monotonic => libc::CLOCK_MONOTONIC,
        Clock::Realtime => libc::CLOCK_REALTIME,
    };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours to write. Both clocks exist on every Linux, so it does not fail, and
    // a call that succeeds leaves `errno` alone.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// `ns` since a clock's zero, as the kernel takes it.
pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_does_not_go_back() {
        let first = now(Clock::Monotonic);
        assert!(first > 0 && now(Clock::Monotonic) >= first);
    }

    #[test]
    fn a_timespec_holds_what_it_is_made_of() {
        let time = timespec(3_000_000_007);
        assert_eq!((time.tv_sec, time.tv_nsec), (3, 7));
    }
}

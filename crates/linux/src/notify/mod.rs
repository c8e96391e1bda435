//! Ways to sleep and be notified other than parking, for owners of mailboxes that wait in their own
//! system calls.
//!
//! | way | a notification is | the owner may wait in |
//! |---|---|---|
//! | [`EventFd`] | a write | `poll`, `epoll_wait`, io_uring, beside other files |
//! | [`Signal`] | a signal to its thread | any call that takes a mask, and ends with `EINTR` |
//!
//! Each notification is one system call, made only when the owner sleeps.

mod eventfd;
mod signal;

pub use eventfd::EventFd;
pub use signal::Signal;

use antiphon_platform::{Clock, Deadline, Parked};

use crate::clock;

/// The longest sleep for a deadline that is a time of day.
const LOOK_NS: u64 = 100_000_000;

/// The time until the deadline, for the kernel, which takes relative times. So a sleeper until a
/// time of day sometimes wakes up spuriously, to check whether the clock was set.
pub(crate) fn left(deadline: Option<Deadline>) -> Option<libc::timespec> {
    let deadline = deadline?;
    let left = deadline.ns.saturating_sub(clock::now(deadline.clock));
    Some(clock::timespec(match deadline.clock {
        Clock::Monotonic => left,
        Clock::Realtime => left.min(LOOK_NS),
        Clock::SeenMonotonic | Clock::SeenRealtime => left.min(LOOK_NS / 2),
    }))
}

/// The result of a sleep whose time is over: if the clock was set meanwhile, the deadline may not
/// have passed.
fn timed_out(deadline: Option<Deadline>) -> Parked {
    match deadline {
        Some(deadline) if clock::now(deadline.clock) >= deadline.ns => Parked::TimedOut,
        _ => Parked::Woken,
    }
}

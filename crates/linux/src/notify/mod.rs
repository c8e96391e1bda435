//! Ways to sleep and be notified, other than being parked: for owners of mailboxes that wait in
//! system calls of their own.
//!
//! | way | a notification is | the owner may wait in |
//! |---|---|---|
//! | [`EventFd`] | a write | `poll`, `epoll_wait`, io_uring, beside other files |
//! | [`Signal`] | a signal to its thread | any call that takes a mask, and ends with `EINTR` |
//! | [`UserInterrupts`] | an instruction | nothing: it keeps its CPU |
//!
//! Each is one system call, made when the owner sleeps and not otherwise.

mod eventfd;
mod signal;
mod uintr;

pub use eventfd::EventFd;
pub use signal::Signal;
pub use uintr::UserInterrupts;

use antiphon_platform::{Clock, Deadline, Parked};

use crate::clock;

/// The longest sleep until a deadline that is a time of day.
const LOOK_NS: u64 = 100_000_000;

/// How long until the deadline, as the kernel takes it: in time that passes. So a sleeper until a
/// time of day wakes up now and then, for no reason, to see whether the clock was set.
pub(crate) fn left(deadline: Option<Deadline>) -> Option<libc::timespec> {
    let deadline = deadline?;
    let left = deadline.ns.saturating_sub(clock::now(deadline.clock));
    Some(clock::timespec(match deadline.clock {
        Clock::Monotonic => left,
        Clock::Realtime => left.min(LOOK_NS),
        Clock::SeenMonotonic | Clock::SeenRealtime => left.min(LOOK_NS / 2),
    }))
}

/// The result of a sleep that ended when its time was over: a clock that was set is no deadline.
fn timed_out(deadline: Option<Deadline>) -> Parked {
    match deadline {
        Some(deadline) if clock::now(deadline.clock) >= deadline.ns => Parked::TimedOut,
        _ => Parked::Woken,
    }
}

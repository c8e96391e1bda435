//! Timers: any number of deadlines of one thread, in a hierarchical timing wheel.
//!
//! Setting or removing a timer takes a handful of stores, however many there are: most timers are
//! for events that should not happen, and are removed before they are due. A [`Timer`] is in the
//! memory of its waiter, so nothing is allocated; and time is a number that the caller gives, so a
//! wheel runs on a virtual clock as well.
//!
//! ```
//! use std::pin::pin;
//! use std::ptr::NonNull;
//! use antiphon_runtime::timer::{Timer, Wheel};
//!
//! let timer = pin!(Timer::new());
//! let timer = NonNull::from(timer.as_ref().get_ref());
//! let mut wheel = Wheel::new();
//! // SAFETY: it stays where it is until it is handed out below.
//! unsafe { wheel.insert(timer, 1_000_000) };
//! assert_eq!(wheel.next_ns(), Some(1_000_000));
//! assert_eq!(wheel.expire(999_999), None);
//! assert_eq!(wheel.expire(1_000_000), Some(timer));
//! ```
//!
//! A deadline is a number of eleven digits to the base 64. A timer is in the level of the highest
//! digit in which its deadline and the wheel's position differ, in the slot of that digit of the
//! deadline. So each slot of a level is earlier than all of the level above, and only slots ahead
//! of the position have timers:
//!
//! ```text
//!   level   a slot is        64 slots are    position  ──┐
//!   10      36.6 years       all of time     ·           ▼
//!    …                                       ·
//!    3      262 µs           16.8 ms         [ passed  ][ ][ ][▪][ ][▪][ ]
//!    2      4.1 µs           262 µs            [ passed       ][ ][▪][ ][ ]
//!    1      64 ns            4.1 µs          [ ][ ][ ][ ][▪][ ][ ][ ][ ][ ]
//!    0      1 ns             64 ns           [ passed ][▪][ ][ ][ ][ ][▪][ ]
//! ```
//!
//! When the earliest slot is due, its earliest timer is handed out, and the position becomes that
//! timer's deadline: the other timers of the slot move to their new slots, at least one level
//! below.
//!
//! | file | contents |
//! |---|---|
//! | `list` | a timer, and lists of timers |
//! | `levels` | the slots, and which of them have timers |
//! | `wheel` | the position, and which timer is due |
//!
//! After Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987), scheme 7; as in
//! Tokio's timers, the level is that of the highest digit that differs, so that no slot is ever
//! passed with timers in it.
//!
//! *Turned down:* ticks of 16 µs, as kernels have them. Deadlines of one tick would have to be
//! sorted, or handed out in any order; a digit for each 6 bits down to the nanosecond sorts them as
//! they move, and the two additional levels are 1 KiB that is touched when deadlines are that
//! close. A heap: it moves its elements, so a caller that removes a timer must find it first, and
//! both operations take longer the more timers there are.

mod levels;
mod list;
mod wheel;

pub use list::Timer;
pub use wheel::Wheel;

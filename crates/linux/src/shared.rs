//! Waiting across processes: the futex without its private flag.

use antiphon_platform::{Deadline, Parked, SharedWait, ThreadId};

use crate::futex::{self, Slept, Whose};
use crate::{Linux, U32, thread};

const ALL: (Whose, u32) = (Whose::Shared, futex::ALL);

impl SharedWait for Linux {
    fn wait_shared(word: &U32, expected: u32, deadline: Option<Deadline>) -> Parked {
        match futex::wait(word.as_atomic(), ALL, expected, deadline) {
            Slept::Woken | Slept::Maybe => Parked::Woken,
            Slept::TimedOut => Parked::TimedOut,
        }
    }

    fn ended(thread: ThreadId) -> bool {
        thread::ended(thread)
    }

    fn wake_shared(word: *const U32, count: u32) {
        futex::wake(word.cast(), ALL, count);
    }
}

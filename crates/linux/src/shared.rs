//! Waiting across processes: the futex without its private flag.

use antiphon_platform::{Deadline, Parked, SharedWait, ThreadId};

use crate::{Linux, U32, futex, section, thread};

impl SharedWait for Linux {
    fn wait_shared(word: &U32, expected: u32, deadline: Option<Deadline>) -> Parked {
        // SECTION-3.
        section::interrupt();
        futex::wait(word.get(), futex::SHARED, expected, deadline).parked()
    }

    fn ended(thread: ThreadId) -> bool {
        thread::ended(thread)
    }

    fn wake_shared(word: *const U32, count: u32) {
        futex::wake(word.cast(), futex::SHARED, count);
    }
}

//! Waiting across processes: simulated threads may belong to one process or to several, and sleep
//! on shared words as on any others.

use antiphon_platform::{Deadline, Parked, SharedWait};

use crate::Sim;
use crate::atomic::SimU32;
use crate::platform::monotonic_ns;
use crate::words;

/// The place in which all of them sleep.
const PLACE: u32 = 0;

impl SharedWait for Sim {
    fn wait_shared(word: &SimU32, expected: u32, deadline: Option<Deadline>) -> Parked {
        words::wait(word, expected, PLACE, deadline.map(monotonic_ns))
    }

    fn wake_shared(word: *const SimU32, count: u32) {
        words::wake(word.addr(), 1 << PLACE, count);
    }
}

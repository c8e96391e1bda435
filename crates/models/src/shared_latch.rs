//! Models of the latch that processes share. Threads stand for processes.

use antiphon_check::Check;
use antiphon_platform::Deadline;
use antiphon_sync::lock::{Form, Standard};
use antiphon_sync::shared::SharedLatch;

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::forms::{Sleepy, Spinning};
use crate::latches::{Opens, destroying, giving_up, opening};

type Latch<F = Sleepy> = SharedLatch<Check, F>;

const PLAIN: Bounds = Bounds::PLAIN;
const ANY: Bounds = PLAIN.spurious(1).expiries(1);

pub fn entries() -> Vec<Entry> {
    let timed = PLAIN.timeouts(1);
    vec![
        Entry::new("shared-latch/opens-1+1", opening::<Latch>(1, 1, 1), PLAIN.spurious(1)),
        Entry::new("shared-latch/opens-1+2", opening::<Latch>(1, 2, 1), PLAIN),
        Entry::new("shared-latch/opens-2+1", opening::<Latch>(2, 1, 1), PLAIN),
        Entry::new("shared-latch/opens-beyond-1+2", opening::<Latch>(1, 2, 2), PLAIN),
        Entry::new("shared-latch/opens-any-platform-2+2", opening::<Latch<Spinning>>(2, 2, 1), ANY)
            .by_lot(3_000),
        Entry::new("shared-latch/opens-shipped-3+2", opening::<Latch<Standard>>(3, 2, 1), ANY)
            .by_lot(2_000),
        Entry::new("shared-latch/gives-up-1+1+1", giving_up::<Latch>(), timed)
            .by_lot(5_000)
            .reaches(&["gave up"]),
        Entry::new("shared-latch/destroyed-1+1", destroying::<Latch>(1), timed),
        Entry::new("shared-latch/destroyed-1+2", destroying::<Latch>(2), timed).by_lot(5_000),
    ]
}

impl<F: Form> Opens for Latch<F> {
    fn of(count: u32) -> Self {
        Self::new(count)
    }

    fn count_down(&self, step: u32) {
        self.count_down(step);
    }

    fn wait_until(&self, deadline: Option<Deadline>) -> bool {
        self.wait_until(deadline)
    }

    fn is_open(&self) -> bool {
        self.is_open()
    }

    fn left(&self) -> u32 {
        self.left()
    }
}

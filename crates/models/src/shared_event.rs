//! Models of the event that processes share. Threads stand for processes.

use antiphon_check::Check;
use antiphon_platform::Deadline;
use antiphon_sync::lock::{Form, Standard};
use antiphon_sync::shared::SharedEvent;

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::events::{AutoReset, coalescing, destroying, excluding, giving_up};
use crate::forms::{Sleepy, Spinning};

type Event<F = Sleepy> = SharedEvent<Check, F>;

const PLAIN: Bounds = Bounds::PLAIN;
const ANY: Bounds = PLAIN.spurious(1).expiries(1);

pub fn entries() -> Vec<Entry> {
    let timed = PLAIN.timeouts(1);
    let gave_up = &["gave up"];
    let both = &["one for both", "one each"];
    vec![
        Entry::new("shared-event/excludes-2x1", excluding::<Event>(2, 1), PLAIN.spurious(1)),
        Entry::new("shared-event/excludes-2x2", excluding::<Event>(2, 2), PLAIN).by_lot(3_000),
        Entry::new("shared-event/excludes-3x1", excluding::<Event>(3, 1), PLAIN).by_lot(3_000),
        Entry::new("shared-event/excludes-shipped-3x2", excluding::<Event<Standard>>(3, 2), ANY)
            .by_lot(2_000),
        Entry::new("shared-event/coalesces-1+2", coalescing::<Event>(), PLAIN).reaches(both),
        Entry::new("shared-event/coalesces-any-platform-1+2", coalescing::<Event<Spinning>>(), ANY)
            .by_lot(3_000)
            .reaches(both),
        Entry::new("shared-event/gives-up-1+1", giving_up::<Event>(0), timed).reaches(gave_up),
        Entry::new("shared-event/gives-up-beside-1+1+1", giving_up::<Event>(1), timed)
            .by_lot(5_000)
            .reaches(gave_up),
        Entry::new("shared-event/destroyed-1+1", destroying::<Event>(), timed),
    ]
}

impl<F: Form> AutoReset for Event<F> {
    const NEW: Self = Self::NEW;

    fn set(&self) {
        self.set();
    }

    fn wait_until(&self, deadline: Option<Deadline>) -> bool {
        self.wait_until(deadline)
    }

    fn try_wait(&self) -> bool {
        self.try_wait()
    }
}

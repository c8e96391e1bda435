//! Models of the broadcast that processes share. Threads stand for processes.

use antiphon_check::Check;
use antiphon_platform::Deadline;
use antiphon_sync::lock::{Form, Standard};
use antiphon_sync::shared::{SharedBroadcast, SharedGeneration};

use crate::bounds::Bounds;
use crate::broadcasts::{Casts, chasing, destroying, giving_up, sending};
use crate::entry::Entry;
use crate::forms::{Sleepy, Spinning};

type Broadcast<F = Sleepy> = SharedBroadcast<Check, F>;

const PLAIN: Bounds = Bounds::PLAIN;
const ANY: Bounds = PLAIN.spurious(1).expiries(1);

pub fn entries() -> Vec<Entry> {
    let timed = PLAIN.timeouts(1);
    let gave_up = &["gave up"];
    vec![
        Entry::new("shared-broadcast/sends-1+1", sending::<Broadcast>(1, 1), PLAIN.spurious(1)),
        Entry::new("shared-broadcast/sends-2+1", sending::<Broadcast>(2, 1), PLAIN),
        Entry::new("shared-broadcast/sends-1+2", sending::<Broadcast>(1, 2), PLAIN),
        Entry::new(
            "shared-broadcast/sends-any-platform-2+2",
            sending::<Broadcast<Spinning>>(2, 2),
            ANY,
        )
        .by_lot(3_000),
        Entry::new("shared-broadcast/sends-shipped-3+2", sending::<Broadcast<Standard>>(3, 2), ANY)
            .by_lot(2_000),
        Entry::new("shared-broadcast/chases-1+1", chasing::<Broadcast>(1, 2), PLAIN),
        Entry::new("shared-broadcast/gives-up-1+1+1", giving_up::<Broadcast>(1, 1), timed)
            .by_lot(5_000)
            .reaches(gave_up),
        Entry::new("shared-broadcast/destroyed-1+1", destroying::<Broadcast>(1, 1), timed),
        Entry::new("shared-broadcast/destroyed-2+1", destroying::<Broadcast>(2, 1), timed)
            .by_lot(5_000),
    ]
}

impl<F: Form> Casts for Broadcast<F> {
    type Generation = SharedGeneration;

    const NEW: Self = Self::NEW;

    fn now(&self) -> SharedGeneration {
        self.now()
    }

    fn send(&self) {
        self.send();
    }

    fn wait_until(
        &self,
        seen: SharedGeneration,
        deadline: Option<Deadline>,
    ) -> Option<SharedGeneration> {
        self.wait_until(seen, deadline)
    }

    fn since(now: SharedGeneration, earlier: SharedGeneration) -> u32 {
        now.since(earlier)
    }
}

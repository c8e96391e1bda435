//! Models of the event count: no notification is lost between a waiter's check and its wait, or to
//! a waiter that cancels.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data};
use antiphon_platform::{Atomic, AtomicInteger, Atomics, Deadline};
use antiphon_sync::lock::Standard;
use antiphon_sync::policy::None;
use antiphon_sync::wait::{self, CrowdForm};

use crate::bounds::{ANY, PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, model};
use crate::forms::{Sleepy, Spinning};
use crate::program::{GAVE_UP, Program, soon, take_one};

type EventCount<F> = wait::EventCount<Check, None, F>;

pub fn entries() -> Vec<Entry> {
    let passed_on = &["cancelled"];
    Subject("event-count").models([
        model("notifies-1+1", notifying::<Sleepy>(1, 1), SPURIOUS),
        model("notifies-2+1", notifying::<Sleepy>(2, 1), PLAIN).by_lot(5_000),
        model("notifies-all-2+1", notifying::<Sleepy>(2, 2), PLAIN).by_lot(5_000),
        model("notifies-all-5+1", notifying::<Sleepy>(5, 5), SPURIOUS).by_lot(1_000),
        model("notifies-nobody-1+1", notifying_nobody(), PLAIN),
        model("notifies-any-platform-1+1", notifying::<Spinning>(1, 1), ANY),
        model("notifies-any-platform-3+1", notifying::<Spinning>(3, 1), ANY).by_lot(2_000),
        model("cancelled-1+1+1", cancelling(), PLAIN).by_lot(5_000).reaches(passed_on),
        model("gives-up-1+1+1", giving_up(), TIMED).by_lot(5_000).reaches(GAVE_UP),
        model("exhausted-2+1", notifying::<Sleepy>(2, 1), PLAIN.nodes(0)),
        model("exhausted-but-one-2+1", notifying::<Sleepy>(2, 1), PLAIN.nodes(1)),
        model("shipped-1+1", notifying::<Standard>(1, 1), ANY),
        model("shipped-3+1", notifying::<Standard>(3, 1), ANY.timeouts(1)).by_lot(1_500),
    ])
}

/// Items and an event count. The number of items orders nothing, because the event count must work
/// without that.
struct Shelf<F: CrowdForm> {
    items: <Check as Atomics>::U32,
    filled: EventCount<F>,
}

impl<F: CrowdForm> Shelf<F> {
    fn new() -> Self {
        Self { items: <Check as Atomics>::U32::ZERO, filled: EventCount::NEW }
    }

    fn put(&self, items: u32) {
        self.items.fetch_add(items, Relaxed);
        self.filled.notify(items);
    }

    fn try_take(&self) -> bool {
        take_one(&self.items)
    }

    /// Waits for an item and takes it; returns `false` if `deadline` came first.
    fn take(&self, deadline: Option<Deadline>) -> bool {
        let mut in_time = true;
        while in_time {
            let key = self.filled.prepare();
            if self.try_take() {
                key.cancel();
                return true;
            }
            in_time = key.wait(deadline);
        }
        self.try_take()
    }
}

/// Each item reaches a taker.
fn notifying<F: CrowdForm>(takers: u32, step: u32) -> Program {
    Program::new(takers + 1, takers + takers / step, move |scope| {
        let shelf = scope.share(Shelf::<F>::new());
        scope.spawn_each(0..takers, move |_| assert!(shelf.take(Option::None)));
        scope.spawn(move || (0..takers / step).for_each(|_| shelf.put(step)));
    })
}

/// EC-2: a notification without a waiter does not lose one.
fn notifying_nobody() -> Program {
    Program::new(2, 3, |scope| {
        let shelf = scope.share(Shelf::<Sleepy>::new());
        scope.spawn(move || assert!(shelf.take(Option::None)));
        scope.spawn(move || [0, 1].into_iter().for_each(|items| shelf.put(items)));
    })
}

/// EC-3: one thread prepares a wait and then cancels it. Must reach `cancelled`.
fn cancelling() -> Program {
    Program::new(3, 3, |scope| {
        let shelf = scope.share(Shelf::<Sleepy>::new());
        scope.spawn(move || assert!(shelf.take(Option::None)));
        scope.spawn(move || {
            shelf.filled.prepare().cancel();
            antiphon_check::probe("cancelled");
        });
        scope.spawn(move || shelf.put(1));
    })
}

/// One of two waiters may give up; it passes on a notification that it has received. Must reach
/// `gave up`.
fn giving_up() -> Program {
    Program::new(3, 3, |scope| {
        let shelf = scope.share(Shelf::<Sleepy>::new());
        let seen = scope.share(Data::new(0));
        scope.spawn(move || {
            assert!(shelf.take(Option::None));
            seen.set(1);
        });
        scope.spawn(move || {
            if shelf.take(Some(soon())) {
                shelf.put(1);
            } else {
                antiphon_check::probe("gave up");
            }
        });
        scope.spawn(move || shelf.put(1));
        scope.finally(move || assert_eq!(seen.get(), 1));
    })
}

//! Models of the barrier that processes share. Threads stand for processes.

use antiphon_check::{Check, Data};
use antiphon_sync::lock::{Form, Standard};
use antiphon_sync::shared::SharedBarrier;

use crate::barrier::{Meet, meeting};
use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::forms::{Sleepy, Spinning};
use crate::program::{Program, soon};

const PLAIN: Bounds = Bounds::PLAIN;
const ANY: Bounds = PLAIN.spurious(1).expiries(1);

pub fn entries() -> Vec<Entry> {
    let timed = PLAIN.timeouts(1);
    let gave_up = &["gave up"];
    vec![
        Entry::new(
            "shared-barrier/meets-2x2",
            meeting::<SharedBarrier<Check, Sleepy>>(2, 2, 2),
            PLAIN.spurious(1),
        ),
        Entry::new(
            "shared-barrier/meets-3x1",
            meeting::<SharedBarrier<Check, Sleepy>>(3, 3, 1),
            PLAIN,
        ),
        Entry::new(
            "shared-barrier/meets-any-platform-2x1",
            meeting::<SharedBarrier<Check, Spinning>>(2, 2, 1),
            ANY,
        ),
        Entry::new(
            "shared-barrier/meets-shipped-3x2",
            meeting::<SharedBarrier<Check, Standard>>(3, 3, 2),
            ANY,
        )
        .by_lot(3_000),
        // More threads than `parties`: rounds overlap.
        Entry::new(
            "shared-barrier/meets-overlapping-4x1",
            meeting::<SharedBarrier<Check, Sleepy>>(4, 2, 1),
            PLAIN,
        )
        .by_lot(5_000),
        Entry::new("shared-barrier/gives-up-1+1", giving_up(1), timed).reaches(gave_up),
        Entry::new("shared-barrier/gives-up-1+2", giving_up(2), timed)
            .by_lot(5_000)
            .reaches(gave_up),
        Entry::new("shared-barrier/last-destroys-2x1", destroying(), PLAIN).reaches(&["retired"]),
    ]
}

impl<F: Form> Meet for SharedBarrier<Check, F> {
    fn of(parties: u32) -> Self {
        Self::new(parties)
    }

    fn meet(&self) -> bool {
        self.wait()
    }
}

/// `others` meet one thread that may give up, and then comes again and stays. If a thread that gave
/// up is still counted, a round has too few, and the last thread waits for ever. Must reach `gave
/// up`.
fn giving_up(others: u32) -> Program {
    Program::new(others + 1, others + 2, move |scope| {
        let barrier = scope.share(SharedBarrier::<Check, Sleepy>::new(others + 1));
        let came = scope.share(Data::new(0));
        let parts = scope.share((0..others).map(|_| Data::new(false)).collect::<Vec<_>>());
        scope.spawn(move || {
            came.set(1);
            if barrier.wait_until(soon()).is_none() {
                antiphon_check::probe("gave up");
                came.set(2);
                barrier.wait();
            }
            assert!(parts.iter().all(Data::get), "all have come");
        });
        for part in parts {
            scope.spawn(move || {
                part.set(true);
                barrier.wait();
                assert!(came.get() > 0, "all have come");
            });
        }
    })
}

/// SHARED-5: the thread that has seen the round end frees the barrier while the last may still be
/// in its `wait`. Must reach `retired`.
fn destroying() -> Program {
    Program::new(2, 2, |scope| {
        let barrier = scope.share(SharedBarrier::<Check, Sleepy>::new(2));
        for _ in 0..2 {
            scope.spawn(move || {
                if !barrier.wait() {
                    antiphon_check::retire(barrier);
                    antiphon_check::probe("retired");
                }
            });
        }
    })
}

//! The ShflLock spinlock: exhaustively within the stated bounds, by lot beyond.

use antiphon_check::{Check, Data};
use antiphon_sync::lock::ShflSpin;
use antiphon_sync::policy::None;

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::forms::Sleepy;
use crate::in_line::in_line;
use crate::program::{Program, destruction, exclusion, unlock};
use crate::watched::{Watched, sorting};

type Spin = ShflSpin<Check, None, Sleepy>;
type Sorted = ShflSpin<Check, Watched, Sleepy>;
type Shipped = ShflSpin<Check>;

const PLAIN: Bounds = Bounds::PLAIN;

pub fn entries() -> Vec<Entry> {
    let two = PLAIN.sockets(2);
    vec![
        Entry::new("shfl-spin/excludes-2x1", exclusion::<Spin>(2, 1), PLAIN),
        Entry::new("shfl-spin/excludes-2x2", exclusion::<Spin>(2, 2), PLAIN),
        Entry::new("shfl-spin/excludes-3x1", exclusion::<Spin>(3, 1), PLAIN),
        Entry::new("shfl-spin/excludes-4x1", exclusion::<Spin>(4, 1), PLAIN),
        Entry::new("shfl-spin/crowded-2x2", exclusion::<Spin>(2, 2), PLAIN.crowded(1)),
        // Three waiters are needed for one to be moved.
        Entry::new("shfl-spin/sorts-3x1", sorting::<Sorted>(3), PLAIN.sockets(2)),
        Entry::new("shfl-spin/sorts-5x1", sorting::<Sorted>(5), PLAIN.sockets(2))
            .by_lot(5_000)
            .reaches(&["shuffled"]),
        // The head looks past one that is not of its group at one that is, while the last joins.
        Entry::new("shfl-spin/sorts-in-line-4+1", in_line::<Sorted>(&[0, 1, 0, 1], false), two)
            .by_lot(5_000)
            .reaches(&["shuffled"]),
        // A head that has passed the role on finds the lock taken again.
        Entry::new("shfl-spin/sorts-overtaken-3+1", in_line::<Sorted>(&[0, 0, 0], true), two)
            .by_lot(10_000)
            .reaches(&["shuffled"]),
        Entry::new("shfl-spin/free-afterwards-2x1", free_afterwards(), PLAIN),
        Entry::new("shfl-spin/tries-0+2", tries(), PLAIN).reaches(&["busy"]),
        // Without a node to be had, waiters barge.
        Entry::new("shfl-spin/exhausted-2x2", exclusion::<Spin>(2, 2), PLAIN.nodes(0)),
        Entry::new("shfl-spin/exhausted-3x1", exclusion::<Spin>(3, 1), PLAIN.nodes(1)),
        // MUTEX-3 holds of the spinlock too: unlock is one store.
        Entry::new("shfl-spin/destroyed-1+1", destruction::<Spin>(), PLAIN).reaches(&["retired"]),
        Entry::new("shfl-spin/shipped-2x2", exclusion::<Shipped>(2, 2), PLAIN.crowded(1)),
        Entry::new("shfl-spin/shipped-3x1", exclusion::<Shipped>(3, 1), PLAIN),
        Entry::new(
            "shfl-spin/shipped-5x2",
            exclusion::<Shipped>(5, 2),
            PLAIN.sockets(2).crowded(1),
        )
        .by_lot(5_000),
    ]
}

/// Research on the published code, 1.5 a and b: after a contended episode the lock is as free as
/// before, and a try succeeds.
fn free_afterwards() -> Program {
    Program::new(2, 2, |scope| {
        let lock = scope.share(Spin::NEW);
        for _ in 0..2 {
            scope.spawn(move || {
                lock.lock();
                unlock(lock);
            });
        }
        scope.finally(move || assert!(lock.try_lock(), "a free lock can't be tried"));
    })
}

/// A try fails only if somebody holds the lock. Has to reach `busy`.
fn tries() -> Program {
    Program::new(2, 2, |scope| {
        let lock = scope.share(Spin::NEW);
        let data = scope.share(Data::new(0));
        for _ in 0..2 {
            scope.spawn(move || {
                if lock.try_lock() {
                    data.set(data.get() + 1);
                    unlock(lock);
                } else {
                    antiphon_check::probe("busy");
                }
            });
        }
    })
}

//! Models of the ShflLock spinlock: exhaustively within the stated bounds, by lot beyond.

use antiphon_check::{Check, Data, Scope};
use antiphon_sync::lock::{Lock, ShflSpin};
use antiphon_sync::policy::{Chosen, None, Numa};

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::forms::{Handing, Sleepy};
use crate::in_line::in_line;
use crate::program::{Program, destruction, exclusion, unlock};
use crate::watched::{Watched, sorting};

type Spin = ShflSpin<Check, None, Sleepy>;
type Sorted = ShflSpin<Check, Watched, Sleepy>;
type Shipped = ShflSpin<Check>;
/// The lock with cohorts of `COHORT` hand-overs.
type Grouped<const COHORT: u16> = ShflSpin<Check, Numa, Handing<COHORT, 0>>;

const PLAIN: Bounds = Bounds::PLAIN;

pub fn entries() -> Vec<Entry> {
    let two = PLAIN.sockets(2);
    vec![
        Entry::new("shfl-spin/excludes-2x1", exclusion::<Spin>(2, 1), PLAIN),
        Entry::new("shfl-spin/excludes-2x2", exclusion::<Spin>(2, 2), PLAIN),
        Entry::new("shfl-spin/excludes-3x1", exclusion::<Spin>(3, 1), PLAIN),
        Entry::new("shfl-spin/excludes-4x1", exclusion::<Spin>(4, 1), PLAIN).long(),
        Entry::new("shfl-spin/crowded-2x2", exclusion::<Spin>(2, 2), PLAIN.crowded(1)),
        // At least three waiters are needed for one to be moved.
        Entry::new("shfl-spin/sorts-3x1", sorting::<Sorted>(3), PLAIN.sockets(2)),
        Entry::new("shfl-spin/sorts-5x1", sorting::<Sorted>(5), PLAIN.sockets(2))
            .by_lot(5_000)
            .reaches(&["shuffled"]),
        // The head passes over a waiter that is not of its group to reach one that is, while the
        // last joins.
        Entry::new("shfl-spin/sorts-in-line-4+1", in_line::<Sorted>(&[0, 1, 0, 1], false), two)
            .by_lot(5_000)
            .reaches(&["shuffled"]),
        // A head that has passed the role on finds that the lock was taken again.
        Entry::new("shfl-spin/sorts-overtaken-3+1", in_line::<Sorted>(&[0, 0, 0], true), two)
            .by_lot(10_000)
            .reaches(&["shuffled"]),
        Entry::new("shfl-spin/free-afterwards-2x1", free_afterwards(), PLAIN),
        Entry::new("shfl-spin/tries-0+2", tries(), PLAIN).reaches(&["busy"]),
        // If no node is free, waiters barge.
        Entry::new("shfl-spin/exhausted-2x2", exclusion::<Spin>(2, 2), PLAIN.nodes(0)),
        Entry::new("shfl-spin/exhausted-3x1", exclusion::<Spin>(3, 1), PLAIN.nodes(1)),
        Entry::new("shfl-spin/cohorts-1+3", taken::<Grouped<1>>(3, 1), two).long(),
        Entry::new("shfl-spin/cohorts-1+4", taken::<Grouped<1>>(4, 1), two).by_lot(3_000),
        Entry::new("shfl-spin/cohorts-1+5", taken::<Grouped<2>>(5, 1), two).by_lot(3_000),
        Entry::new("shfl-spin/cohorts-crowded-5x2", taken::<Grouped<2>>(4, 2), two.crowded(1))
            .by_lot(3_000),
        Entry::new("shfl-spin/cohorts-change-1+4+1", changing(), two).by_lot(3_000),
        Entry::new("shfl-spin/cohorts-destroyed-1+3", destroyed(), two)
            .by_lot(3_000)
            .reaches(&["retired"]),
        // MUTEX-3 also holds for the spinlock: unlock is one store.
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

/// The lock is taken from the start, by a thread that only unlocks: so the `comers` wait, and lock
/// `rounds` times each. The first is alone in the queue; those that come later may stand in
/// cohorts.
fn taken<L: Lock>(comers: u32, rounds: u32) -> Program {
    Program::new(1 + comers, 1 + comers * rounds, move |scope| {
        let _ = wait::<L>(scope, comers, rounds);
    })
}

/// [`taken`] with one more thread that changes the policy while they wait, and then back to sorting
/// by socket.
fn changing() -> Program {
    const COMERS: u32 = 4;
    Program::new(2 + COMERS, 2 + COMERS, |scope| {
        let lock = wait::<ShflSpin<Check, Chosen, Handing<1, 0>>>(scope, COMERS, 1);
        scope.spawn(move || {
            lock.set_policy(Chosen::NONE.with_priority());
            lock.set_policy(Chosen::NUMA);
        });
    })
}

/// Spawns the threads of both models; returns the lock.
fn wait<'scope, L: Lock>(scope: &'scope Scope<'scope, '_>, comers: u32, rounds: u32) -> &'scope L {
    let lock = scope.share(L::NEW);
    let data = scope.share(Data::new(0));
    lock.lock();
    scope.spawn(move || {
        data.set(data.get() + 1);
        unlock(lock);
    });
    for _ in 0..comers {
        scope.spawn(move || {
            for _ in 0..rounds {
                lock.lock();
                data.set(data.get() + 1);
                unlock(lock);
            }
        });
    }
    scope.finally(move || {
        assert_eq!(data.get(), 1 + comers * rounds);
        lock.lock();
        unlock(lock);
    });
    lock
}

/// The last of three comers frees the lock: a thread that has made another waiter the head must not
/// access the lock afterwards. Must reach `retired`.
fn destroyed() -> Program {
    const COMERS: u32 = 3;
    Program::new(1 + COMERS, 1 + COMERS, |scope| {
        let lock = scope.share(Grouped::<2>::NEW);
        let data = scope.share(Data::new(0));
        lock.lock();
        scope.spawn(move || unlock(lock));
        for _ in 0..COMERS {
            scope.spawn(move || {
                lock.lock();
                let before = data.get();
                data.set(before + 1);
                unlock(lock);
                if before == COMERS - 1 {
                    antiphon_check::retire(lock);
                    antiphon_check::probe("retired");
                }
            });
        }
    })
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

/// A try fails only if another thread holds the lock. Must reach `busy`.
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

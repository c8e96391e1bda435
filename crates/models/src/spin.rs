//! Models of the ShflLock spinlock: exhaustively within the stated bounds, by lot beyond.

use antiphon_check::{Check, Scope};
use antiphon_sync::lock::{Lock, ShflSpin};
use antiphon_sync::policy::{Chosen, None, Numa};

use crate::bounds::{NUMA, PLAIN};
use crate::entry::{Entry, Subject, model};
use crate::forms::{Handing, Sleepy};
use crate::in_line::in_line;
use crate::program::{Program, destruction, exclusion, finish, guarded, retire, section, unlock};
use crate::watched::{Watched, sorting};

type Spin = ShflSpin<Check, None, Sleepy>;
type Sorted = ShflSpin<Check, Watched, Sleepy>;
type Shipped = ShflSpin<Check>;
/// The lock with cohorts of `COHORT` hand-overs.
type Grouped<const COHORT: u16> = ShflSpin<Check, Numa, Handing<COHORT, 0>>;

pub fn entries() -> Vec<Entry> {
    Subject("shfl-spin").models([
        model("excludes-2x1", exclusion::<Spin>(2, 1), PLAIN),
        model("excludes-2x2", exclusion::<Spin>(2, 2), PLAIN),
        model("excludes-3x1", exclusion::<Spin>(3, 1), PLAIN),
        model("excludes-4x1", exclusion::<Spin>(4, 1), PLAIN).long(),
        model("crowded-2x2", exclusion::<Spin>(2, 2), PLAIN.crowded(1)),
        // At least three waiters are needed for one to be moved.
        model("sorts-3x1", sorting::<Sorted>(3), NUMA),
        model("sorts-5x1", sorting::<Sorted>(5), NUMA).by_lot(5_000).reaches(&["shuffled"]),
        // The head passes over a waiter that is not of its group to reach one that is, while the
        // last joins.
        model("sorts-in-line-4+1", in_line::<Sorted>(&[0, 1, 0, 1], false), NUMA)
            .by_lot(5_000)
            .reaches(&["shuffled"]),
        // A head that has passed the role on finds that the lock was taken again.
        model("sorts-overtaken-3+1", in_line::<Sorted>(&[0, 0, 0], true), NUMA)
            .by_lot(10_000)
            .reaches(&["shuffled"]),
        model("free-afterwards-2x1", free_afterwards(), PLAIN),
        model("tries-0+2", tries(), PLAIN).reaches(&["busy"]),
        // If no node is free, waiters barge.
        model("exhausted-2x2", exclusion::<Spin>(2, 2), PLAIN.nodes(0)),
        model("exhausted-3x1", exclusion::<Spin>(3, 1), PLAIN.nodes(1)),
        model("cohorts-1+3", taken::<Grouped<1>>(3, 1), NUMA).long(),
        model("cohorts-1+4", taken::<Grouped<1>>(4, 1), NUMA).by_lot(3_000),
        model("cohorts-1+5", taken::<Grouped<2>>(5, 1), NUMA).by_lot(3_000),
        model("cohorts-crowded-5x2", taken::<Grouped<2>>(4, 2), NUMA.crowded(1)).by_lot(3_000),
        model("cohorts-change-1+4+1", changing(), NUMA).by_lot(3_000),
        model("cohorts-destroyed-1+3", destroyed(), NUMA).by_lot(3_000).reaches(&["retired"]),
        // MUTEX-3 also holds for the spinlock: unlock is one store.
        model("destroyed-1+1", destruction::<Spin>(), PLAIN).reaches(&["retired"]),
        model("shipped-2x2", exclusion::<Shipped>(2, 2), PLAIN.crowded(1)),
        model("shipped-3x1", exclusion::<Shipped>(3, 1), PLAIN),
        model("shipped-5x2", exclusion::<Shipped>(5, 2), NUMA.crowded(1)).by_lot(5_000),
    ])
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
    let (lock, data) = guarded::<L>(scope);
    lock.lock();
    scope.spawn(move || finish(lock, data));
    scope.spawn_each(0..comers, move |_| (0..rounds).for_each(|_| section(lock, data)));
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
        let (lock, data) = guarded::<Grouped<2>>(scope);
        lock.lock();
        scope.spawn(move || unlock(lock));
        scope.spawn_each(0..COMERS, move |_| {
            lock.lock();
            let before = data.get();
            data.set(before + 1);
            unlock(lock);
            if before == COMERS - 1 {
                retire(lock);
            }
        });
    })
}

/// Research on the published code, 1.5 a and b: after a contended episode the lock is as free as
/// before, and a try succeeds.
fn free_afterwards() -> Program {
    Program::new(2, 2, |scope| {
        let lock = scope.share(Spin::NEW);
        scope.spawn_each(0..2, move |_| {
            lock.lock();
            unlock(lock);
        });
        scope.finally(move || assert!(lock.try_lock(), "a free lock can't be tried"));
    })
}

/// A try fails only if another thread holds the lock. Must reach `busy`.
fn tries() -> Program {
    Program::new(2, 2, |scope| {
        let (lock, data) = guarded::<Spin>(scope);
        scope.spawn_each(0..2, move |_| {
            if lock.try_lock() {
                finish(lock, data);
            } else {
                antiphon_check::probe("busy");
            }
        });
    })
}

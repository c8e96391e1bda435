//! Models of the ShflLock mutex: exhaustively within the stated bounds, by lot beyond.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::Check;
use antiphon_check::HeavyFence::{Either, Granted, Refused};
use antiphon_platform::Atomic;
use antiphon_sync::lock::{Form, Published, ShflMutex, Standard};
use antiphon_sync::policy::{None, Numa, Policy};

use crate::arena::arena;
use crate::bounds::{ANY, NUMA, PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, all_of, model};
use crate::forms::{Backed, Insistent, Mutex, Sleepy, Spinning};
use crate::program::{
    GAVE_UP, Program, contend, destruction, exclusion, finish, guarded, section, soon, tries,
    unlock,
};
use crate::watched::{Watched, sorting};

type BackedUp = ShflMutex<Check, None, Backed>;
type Spun = ShflMutex<Check, None, Spinning>;
type Fair = ShflMutex<Check, None, Insistent>;
type Sorted = ShflMutex<Check, Watched, Sleepy>;
type Theirs = ShflMutex<Check, Numa, Published>;
type Shipped = ShflMutex<Check>;

pub fn entries() -> Vec<Entry> {
    all_of([exclusive(), sorted(), fair(), impatient(), light(), shipped()])
}

fn exclusive() -> Vec<Entry> {
    // Two spins are cut short: otherwise no waiter of the published form would sleep.
    let two_sockets = NUMA.expiries(2);
    let timed = PLAIN.timeouts(2);
    all_of([
        Subject("shfl-mutex").models([
            model("excludes-2x1", exclusion::<Mutex>(2, 1), PLAIN),
            model("excludes-2x2", exclusion::<Mutex>(2, 2), PLAIN),
            model("excludes-3x1", exclusion::<Mutex>(3, 1), PLAIN),
            model("excludes-4x2", exclusion::<Mutex>(4, 2), PLAIN).by_lot(5_000),
            model("any-platform-2x1", exclusion::<Mutex>(2, 1), ANY),
            model("any-platform-spinning-2x1", exclusion::<Spun>(2, 1), ANY),
            model("any-platform-spinning-3x2", exclusion::<Spun>(3, 2), ANY).by_lot(10_000),
            model("any-platform-4x1", exclusion::<Mutex>(4, 1), ANY).by_lot(5_000),
            model("spurious-3x1", exclusion::<Mutex>(3, 1), SPURIOUS).long(),
            model("crowded-3x1", exclusion::<Mutex>(3, 1), PLAIN.crowded(1)).long(),
            model("spins-2x1", exclusion::<Spun>(2, 1), PLAIN.expiries(1)),
            model("spins-3x1", exclusion::<Spun>(3, 1), PLAIN.expiries(2)),
            model("backstop-2x1", exclusion::<BackedUp>(2, 1), timed),
            model("backstop-3x2", exclusion::<BackedUp>(3, 2), timed.spurious(1)).by_lot(10_000),
            model("backstop-4x2", exclusion::<BackedUp>(4, 2), timed).by_lot(5_000),
            model("backstop-awake-3x1", exclusion::<BackedUp>(3, 1), timed.awake()).by_lot(10_000),
            // If no node is free, waiters nap and barge.
            model("exhausted-3x1", exclusion::<Mutex>(3, 1), PLAIN.nodes(0)),
            model("exhausted-but-one-3x1", exclusion::<Mutex>(3, 1), PLAIN.nodes(1)),
            model("destroyed-1+1", destruction::<Mutex>(), PLAIN).reaches(&["retired"]),
        ]),
        Subject("shfl-mutex+published").models([
            model("excludes-2x1", exclusion::<Theirs>(2, 1), two_sockets),
            model("excludes-3x1", exclusion::<Theirs>(3, 1), two_sockets),
        ]),
    ])
}

/// INV-1…4, and that sorting loses no waiter: with sleepers, the wake ahead of the hand-off, and
/// the shuffler's role.
fn sorted() -> Vec<Entry> {
    Subject("shfl-mutex").models([
        model("sorts-3x1", sorting::<Sorted>(3), NUMA),
        model("sorts-5x1", sorting::<Sorted>(5), NUMA).by_lot(5_000).reaches(&["shuffled"]),
    ])
}

/// The lock is reserved for a head that was signalled and overtaken; no thread hangs because of
/// that.
fn fair() -> Vec<Entry> {
    let light = PLAIN.light(Granted);
    let give_up = giving_up::<None, Insistent>;
    all_of([
        Subject("shfl-mutex").models([
            model("fair-2x2", exclusion::<Fair>(2, 2), PLAIN).long(),
            model("fair-3x1", exclusion::<Fair>(3, 1), PLAIN),
            model("fair-3x2", exclusion::<Fair>(3, 2), SPURIOUS).by_lot(10_000),
            model("fair-late-2x2", late(2, 2), PLAIN).long(),
            model("fair-late-3x1", late(3, 1), PLAIN),
            model("fair-late-3x2", late(3, 2), SPURIOUS).by_lot(10_000),
            model("fair-gives-up-1+1", give_up(1, 1), TIMED),
            model("fair-gives-up-2+2", give_up(2, 2), TIMED.spurious(1)).by_lot(10_000),
            model("fair-gives-up-2x1+1", overtaken(), TIMED).reaches(GAVE_UP),
            model("fair-tries-2+1", tries::<ShflMutex<Check, None, Insistent>>(2), PLAIN),
        ]),
        Subject("shfl-mutex+light").models([
            model("fair-2x2", exclusion::<Fair>(2, 2), light).by_lot(10_000),
            model("fair-3x2", exclusion::<Fair>(3, 2), light).by_lot(10_000),
        ]),
    ])
}

fn impatient() -> Vec<Entry> {
    let busy = &["busy"];
    Subject("shfl-mutex").models([
        model("gives-up-1+1", giving_up::<None, Sleepy>(1, 1), TIMED).reaches(GAVE_UP),
        model("gives-up-2+1", giving_up::<None, Sleepy>(2, 1), TIMED).reaches(GAVE_UP).long(),
        model("gives-up-2+2", giving_up::<None, Sleepy>(2, 2), TIMED.spurious(1))
            .by_lot(10_000)
            .reaches(GAVE_UP),
        model("tries-1+1", tries::<ShflMutex<Check, None, Sleepy>>(1), SPURIOUS).reaches(busy),
        model("tries-2+1", tries::<ShflMutex<Check, None, Sleepy>>(2), PLAIN).reaches(busy),
        model("tries-3+1", tries::<ShflMutex<Check, None, Sleepy>>(3), SPURIOUS)
            .by_lot(5_000)
            .reaches(busy),
    ])
}

/// The light unlock: a plain store, because the sleeper fences.
fn light() -> Vec<Entry> {
    let two = || exclusion::<Mutex>(2, 1);
    let three = || exclusion::<Mutex>(3, 2);
    let light = |heavy_fence| PLAIN.light(heavy_fence);
    let two_naps = light(Either).timeouts(1);
    Subject("shfl-mutex+light").models([
        model("excludes-2x1", two(), light(Granted)),
        model("excludes-any-fence-2x1", two(), light(Either).spurious(1)),
        model("excludes-3x1", exclusion::<Mutex>(3, 1), light(Granted)),
        model("excludes-3x2", three(), light(Granted)).by_lot(5_000),
        model("excludes-fenceless-3x2", three(), light(Refused)).by_lot(5_000),
        model("excludes-any-fence-3x2", three(), light(Either)).by_lot(5_000),
        model("excludes-fences-shared-2+1", fences_shared(), two_naps).reaches(GAVE_UP),
        model("destroyed-1+1", destruction::<Mutex>(), light(Granted)).reaches(&["retired"]),
    ])
}

/// The form and the policy that programs get.
fn shipped() -> Vec<Entry> {
    // A thread sleeps only after it has spun as an arriving waiter and as a waiter or the head.
    let tired = PLAIN.expiries(3);
    let timed = tired.timeouts(1);
    let light = tired.light(Granted);
    let give_up = giving_up::<Numa, Standard>;
    all_of([
        Subject("shfl-mutex").models([
            model("shipped-2x1", exclusion::<Shipped>(2, 1), tired.spurious(1).crowded(1)),
            model("shipped-3x1", exclusion::<Shipped>(3, 1), tired).long(),
            model("shipped-awake-3x1", exclusion::<Shipped>(3, 1), PLAIN),
            model("shipped-4x1", exclusion::<Shipped>(4, 1), tired).by_lot(5_000),
            model("shipped-5x2", exclusion::<Shipped>(5, 2), tired.spurious(1).sockets(2))
                .by_lot(5_000),
            model(
                "shipped-tries-1+1",
                tries::<ShflMutex<Check, Numa, Standard>>(1),
                tired.spurious(1),
            )
            .reaches(&["busy"]),
            model("shipped-gives-up-1+1", give_up(1, 1), timed.expiries(8)).reaches(GAVE_UP),
            model("shipped-gives-up-2+2", give_up(2, 2), timed.spurious(1))
                .by_lot(5_000)
                .reaches(GAVE_UP),
        ]),
        Subject("shfl-mutex+light").models([
            model("shipped-2x1", exclusion::<Shipped>(2, 1), light),
            model("shipped-3x2", exclusion::<Shipped>(3, 2), light.spurious(1)).by_lot(5_000),
        ]),
    ])
}

/// `untimed` threads lock, `timed` threads may give up; no thread hangs, and at the end the lock is
/// free. Must reach `gave up`.
fn giving_up<Q: Policy, F: Form>(untimed: u32, timed: u32) -> Program {
    Program::new(untimed + timed, untimed + timed, move |scope| {
        let (lock, data) = guarded::<ShflMutex<Check, Q, F>>(scope);
        scope.spawn_each(0..untimed, move |_| section(lock, data));
        scope.spawn_each(0..timed, move |_| {
            if lock.lock_until(soon()) {
                finish(lock, data);
            } else {
                antiphon_check::probe("gave up");
            }
        });
        scope.finally(move || {
            assert!(data.get() >= untimed);
            assert!(lock.try_lock(), "the lock is free at the end");
            unlock(lock);
            assert!(lock.lock_uncontended(), "and not kept for one that has given up");
        });
    })
}

/// FENCE-2: the heads of two locks, one of which is never free, while the other's owner unlocks:
/// the head of that second lock loses no wake, whichever thread's fence it relies on. Must reach
/// `gave up`.
fn fences_shared() -> Program {
    Program::new(3, 3, |scope| {
        let locks = scope.share([Mutex::NEW, Mutex::NEW]);
        locks.iter().for_each(Mutex::lock);
        scope.spawn(|| {
            assert!(!locks[0].lock_until(soon()));
            antiphon_check::probe("gave up");
        });
        scope.spawn(|| {
            locks[1].lock();
            unlock(&locks[1]);
        });
        scope.spawn(|| unlock(&locks[1]));
    })
}

/// Heads were late before, so that a head that insists without success stops asking and sleeps.
fn late(threads: u32, rounds: u32) -> Program {
    const PATIENCE: u64 = 1 << 20;
    Program::new(threads, threads * rounds, move |scope| {
        arena().lesson.store(PATIENCE << 32 | 1, Relaxed);
        contend::<Fair>(scope, threads, rounds);
    })
}

/// An owner that overtakes a waiter which gives up reserves the lock for no waiter, or only until
/// the next release. Must reach `gave up`.
fn overtaken() -> Program {
    Program::new(2, 3, |scope| {
        let lock = scope.share(ShflMutex::<Check, None, Insistent>::NEW);
        scope.spawn(move || {
            for _ in 0..2 {
                lock.lock();
                unlock(lock);
            }
        });
        scope.spawn(move || {
            if lock.lock_until(soon()) {
                unlock(lock);
            } else {
                antiphon_check::probe("gave up");
            }
        });
        scope.finally(move || {
            assert!(lock.try_lock(), "the lock is free at the end");
            unlock(lock);
            assert!(lock.lock_uncontended(), "and kept for nobody");
        });
    })
}

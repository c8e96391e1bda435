//! The ShflLock mutex: exhaustively within the stated bounds, by lot beyond.

mod common;

use antiphon_check::{Check, Data, HeavyFence, Model, Report};
use antiphon_sync::lock::{Published, ShflMutex};
use antiphon_sync::policy::{None, Numa};
use common::model::{
    Mutex, Sleepy, Spinning, Watched, by_lot, contend, exclusion, plain, soon, unlock, watch,
};

type Spun = ShflMutex<Check, None, Spinning>;
type Sorted = ShflMutex<Check, Watched, Sleepy>;

#[test]
fn excludes() {
    for (threads, rounds) in [(2, 1), (2, 2), (3, 1)] {
        let name = format!("shfl-mutex, {threads} threads, {rounds} rounds");
        println!("{}", exclusion::<Mutex>(&plain(&name), threads, rounds).assert_complete());
    }
}

/// One spurious wake and one answer that the machine is crowded, for each thread.
#[test]
fn excludes_whatever_the_platform_does() {
    let model = plain("shfl-mutex, any platform, 2 threads").spurious(1).crowded(1).expiries(1);
    println!("{}", exclusion::<Mutex>(&model, 2, 1).assert_complete());
    println!("{}", exclusion::<Spun>(&model, 2, 1).assert_complete());
    let model = plain("shfl-mutex, any platform, 3 threads").spurious(1).crowded(1).expiries(1);
    for model in by_lot(&model, 10_000) {
        println!("{}", exclusion::<Spun>(&model, 3, 2).assert_ok());
    }
}

#[test]
fn excludes_when_waiters_spin() {
    let model = plain("shfl-mutex, spinning").expiries(1);
    println!("{}", exclusion::<Spun>(&model, 2, 1).assert_complete());
    println!("{}", exclusion::<Spun>(&plain("shfl-mutex, spinning"), 3, 1).assert_complete());
}

#[test]
fn published_form_excludes() {
    type Theirs = ShflMutex<Check, Numa, Published>;
    for threads in [2, 3] {
        let model = plain("shfl-mutex+published").sockets(2);
        println!("{}", exclusion::<Theirs>(&model, threads, 1).assert_complete());
    }
}

/// INV-1…4, and that sorting loses nobody: sleepers, the wake ahead of the hand-off, the role.
#[test]
fn sorts_without_losing_anybody() {
    let three = plain("shfl-mutex, sorted, 3 threads").sockets(2).run(|scope| {
        watch(scope);
        contend::<Sorted>(scope, 3, 1);
    });
    println!("{}", three.assert_complete());
    for model in by_lot(&plain("shfl-mutex, sorted, 5 threads").sockets(2), 5_000) {
        let report = model.run(|scope| {
            watch(scope);
            contend::<Sorted>(scope, 5, 1);
        });
        assert!(report.probes.contains_key("shuffled"), "{report}: nobody shuffled");
        println!("{}", report.assert_ok());
    }
}

/// `untimed` threads lock, `timed` threads may give up; nobody hangs, and at the end the lock is
/// free.
fn giving_up(model: &Model, untimed: u32, timed: u32) -> Report {
    let report = model.run(|scope| {
        let lock = scope.share(Mutex::NEW);
        let data = scope.share(Data::new(0));
        for _ in 0..untimed {
            scope.spawn(move || {
                lock.lock();
                data.set(data.get() + 1);
                unlock(lock);
            });
        }
        for _ in 0..timed {
            scope.spawn(move || {
                if lock.lock_until(soon()) {
                    data.set(data.get() + 1);
                    unlock(lock);
                } else {
                    antiphon_check::probe("gave up");
                }
            });
        }
        scope.finally(move || {
            assert!(data.get() >= untimed);
            assert!(lock.try_lock(), "the lock is free at the end");
        });
    });
    assert!(report.probes.contains_key("gave up"), "{report}: nobody gave up");
    report
}

#[test]
fn a_waiter_may_give_up() {
    let model = |name: &str| plain(name).timeouts(1);
    println!("{}", giving_up(&model("shfl-mutex, timed 1+1"), 1, 1).assert_complete());
    println!("{}", giving_up(&model("shfl-mutex, timed 2+1"), 2, 1).assert_complete());
    for model in by_lot(&model("shfl-mutex, timed 2+2").spurious(1), 10_000) {
        println!("{}", giving_up(&model, 2, 2).assert_ok());
    }
}

/// The light unlock: a plain store, where the sleeper fences.
#[test]
fn light_unlock_loses_no_wake() {
    let light = |name: &str| plain(name).light(true);
    let two = light("shfl-mutex+light, 2 threads");
    println!("{}", exclusion::<Mutex>(&two, 2, 1).assert_complete());
    for heavy in [HeavyFence::Granted, HeavyFence::Refused, HeavyFence::Either] {
        let name = format!("shfl-mutex+light, 3 threads, fence {heavy:?}");
        for model in by_lot(&light(&name).heavy_fence(heavy), 5_000) {
            println!("{}", exclusion::<Mutex>(&model, 3, 2).assert_ok());
        }
    }
}

/// Without a node to be had, waiters nap and barge.
#[test]
fn survives_an_exhausted_arena() {
    for nodes in [0, 1] {
        let model = plain(&format!("shfl-mutex, {nodes} nodes")).waiters(nodes + 1);
        for model in by_lot(&model, 3_000) {
            println!("{}", exclusion::<Mutex>(&model, 3, 1).assert_ok());
        }
    }
}

/// MUTEX-3: the next owner may free the lock while the last is still in `unlock`.
#[test]
fn may_be_destroyed_once_it_was_had() {
    for light in [false, true] {
        let report = plain("shfl-mutex, destroyed").light(light).run(|scope| {
            let lock = scope.share(Mutex::NEW);
            let data = scope.share(Data::new(false));
            scope.spawn(move || {
                lock.lock();
                data.set(true);
                unlock(lock);
            });
            scope.spawn(move || {
                lock.lock();
                let last = data.get();
                unlock(lock);
                if last {
                    antiphon_check::retire(lock);
                    antiphon_check::probe("retired");
                }
            });
        });
        assert!(report.probes.contains_key("retired"));
        println!("{}", report.assert_complete());
    }
}

/// Research on the published code, 1.5 b: a try on a free lock succeeds, whatever went before, and
/// one on a held lock fails.
#[test]
fn a_try_is_honest() {
    let program = |model: &Model, lockers: u32| {
        let report = model.run(|scope| {
            let lock = scope.share(Mutex::NEW);
            let data = scope.share(Data::new(0));
            for _ in 0..lockers {
                scope.spawn(move || {
                    lock.lock();
                    data.set(data.get() + 1);
                    unlock(lock);
                });
            }
            scope.spawn(move || {
                if lock.try_lock() {
                    data.set(data.get() + 1);
                    unlock(lock);
                } else {
                    antiphon_check::probe("busy");
                }
            });
            scope.finally(move || assert!(lock.try_lock(), "a free lock can't be tried"));
        });
        assert!(report.probes.contains_key("busy"), "{report}");
        report
    };
    println!("{}", program(&plain("shfl-mutex, try, 1+1").spurious(1), 1).assert_complete());
    println!("{}", program(&plain("shfl-mutex, try, 2+1"), 2).assert_complete());
    for model in by_lot(&plain("shfl-mutex, try, 3+1").spurious(1), 5_000) {
        println!("{}", program(&model, 3).assert_ok());
    }
}

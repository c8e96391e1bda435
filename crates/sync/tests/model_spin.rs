//! The ShflLock spinlock, exhaustively.

mod common;

use antiphon_check::{Check, Data};
use antiphon_sync::lock::ShflSpin;
use antiphon_sync::policy::None;
use common::model::{Sleepy, Watched, by_lot, contend, exclusion, plain, unlock, watch};

type Spin = ShflSpin<Check, None, Sleepy>;
type Sorted = ShflSpin<Check, Watched, Sleepy>;

#[test]
fn excludes() {
    for (threads, rounds) in [(2, 1), (2, 2), (3, 1), (4, 1)] {
        let name = format!("shfl-spin, {threads} threads, {rounds} rounds");
        println!("{}", exclusion::<Spin>(&plain(&name), threads, rounds).assert_complete());
    }
}

#[test]
fn excludes_on_a_crowded_machine() {
    let model = plain("shfl-spin, crowded").crowded(1);
    println!("{}", exclusion::<Spin>(&model, 2, 2).assert_complete());
}

/// INV-1…4, and that sorting loses nobody. Three waiters are needed for one to be moved.
#[test]
fn sorts_without_losing_anybody() {
    let three = plain("shfl-spin, sorted, 3 threads").sockets(2).run(|scope| {
        watch(scope);
        contend::<Sorted>(scope, 3, 1);
    });
    println!("{}", three.assert_complete());
    for model in by_lot(&plain("shfl-spin, sorted, 5 threads").sockets(2), 5_000) {
        let report = model.run(|scope| {
            watch(scope);
            contend::<Sorted>(scope, 5, 1);
        });
        assert!(report.probes.contains_key("shuffled"), "{report}: nobody shuffled");
        println!("{}", report.assert_ok());
    }
}

/// Research on the published code, 1.5 a and b: after a contended episode the lock is as free as
/// before, and a try succeeds.
#[test]
fn is_free_after_contention() {
    let report = plain("shfl-spin, free afterwards").run(|scope| {
        let lock = scope.share(Spin::NEW);
        for _ in 0..2 {
            scope.spawn(move || {
                lock.lock();
                unlock(lock);
            });
        }
        scope.finally(move || assert!(lock.try_lock(), "a free lock can't be tried"));
    });
    println!("{}", report.assert_complete());
}

/// A try fails only if somebody holds the lock.
#[test]
fn a_try_is_honest() {
    let report = plain("shfl-spin, try").run(|scope| {
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
    });
    assert!(report.probes.contains_key("busy"));
    println!("{}", report.assert_complete());
}

/// Without a node to be had, waiters barge.
#[test]
fn survives_an_exhausted_arena() {
    let model = plain("shfl-spin, exhausted arena").waiters(1);
    println!("{}", exclusion::<Spin>(&model, 2, 2).assert_complete());
    let model = plain("shfl-spin, one node").waiters(2);
    println!("{}", exclusion::<Spin>(&model, 3, 1).assert_complete());
}

/// MUTEX-3 holds of the spinlock too: unlock is one store.
#[test]
fn may_be_destroyed_once_it_was_had() {
    let report = plain("shfl-spin, destroyed").run(|scope| {
        let lock = scope.share(Spin::NEW);
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

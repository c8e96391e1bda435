//! Models of the ShflLock mutex with hand-offs: PASS-1…4, COHORT-1…4, ASIDE-1…5.

use antiphon_check::HeavyFence::Granted;
use antiphon_check::{Check, Data, Scope, probe};
use antiphon_sync::lock::{Form, ShflMutex};
use antiphon_sync::policy::{None, Numa, Policy};

use crate::bounds::{NUMA, PLAIN, TIMED};
use crate::entry::{Entry, Subject, all_of, model};
use crate::forms::Handing;
use crate::program::{Program, guarded, retire, soon, unlock};

/// One hand-over within a cohort, then it is the next cohort's turn.
type Short = Handing<1, 0>;
type Longer = Handing<2, 0>;
type Backed = Handing<1, 1>;

pub fn entries() -> Vec<Entry> {
    let handed = &["hands over"];
    let tired = PLAIN.expiries(1);
    let light = PLAIN.light(Granted);
    let asleep = NUMA.expiries(1);
    let timed_sockets = asleep.timeouts(1);
    all_of([
        Subject("shfl-mutex").models([
            model("passes-3x1", handing::<None, Short>(&[1; 3], 0), PLAIN).reaches(handed),
            model("passes-to-sleepers-3x1", handing::<None, Short>(&[1; 3], 0), tired)
                .reaches(handed),
            model("passes-to-sleepers-4x2", handing::<None, Short>(&[2; 4], 0), tired)
                .by_lot(5_000)
                .reaches(handed),
            model("passes-gives-up-2+1", handing::<None, Short>(&[1; 2], 1), TIMED)
                .reaches(&["hands over", "gave up"]),
            model("passes-destroyed-3x1", destroyed::<None, Short>(), PLAIN).reaches(&["retired"]),
            model("sets-aside-1+2", handed_from::<None, Short>(2, 0), tired).long().reaches(handed),
            model("sets-aside-1+3", handed_from::<None, Short>(3, 0), tired)
                .by_lot(20_000)
                .reaches(handed),
            model("sets-aside-4x2", handing::<None, Short>(&[2; 4], 0), tired.spurious(1))
                .by_lot(5_000)
                .reaches(handed),
            model("sets-aside-gives-up-1+1+1", handed_from::<None, Short>(1, 1), tired.timeouts(1))
                .long()
                .reaches(&["hands over", "gave up"]),
            model("sets-aside-gives-up-1+2+1", handed_from::<None, Short>(2, 1), tired.timeouts(1))
                .by_lot(10_000)
                .reaches(&["hands over", "gave up"]),
            model("sets-aside-backed-1+2+1", handed_from::<None, Backed>(2, 1), tired.timeouts(2))
                .by_lot(5_000)
                .reaches(&["hands over", "gave up"]),
            model("sets-aside-destroyed-3x1", destroyed::<None, Short>(), tired)
                .reaches(&["retired"]),
            model("sets-aside-in-cohorts-1+3", handed_from::<Numa, Longer>(3, 0), asleep)
                .by_lot(10_000)
                .reaches(handed),
            model("sets-aside-sorting-5x2", handing::<Numa, Longer>(&[2; 5], 0), asleep)
                .by_lot(5_000)
                .reaches(handed),
            model("cohorts-1+2", handed_from::<Numa, Short>(2, 0), NUMA).reaches(handed),
            model("cohorts-of-sleepers-1+2", handed_from::<Numa, Short>(2, 0), asleep)
                .long()
                .reaches(handed),
            model("cohorts-give-up-1+1+1", handed_from::<Numa, Short>(1, 1), timed_sockets)
                .by_lot(5_000)
                .reaches(&["hands over", "gave up"]),
            model("cohorts-1+3", handed_from::<Numa, Short>(3, 0), NUMA)
                .by_lot(5_000)
                .reaches(handed),
            model("cohorts-longer-1+4", handed_from::<Numa, Longer>(4, 0), asleep)
                .by_lot(5_000)
                .reaches(handed),
            model("cohorts-4x2", handing::<Numa, Short>(&[2; 4], 0), NUMA)
                .by_lot(5_000)
                .reaches(handed),
            model("cohorts-longer-5x2", handing::<Numa, Longer>(&[2; 5], 0), NUMA)
                .by_lot(5_000)
                .reaches(handed),
            model(
                "cohorts-of-sleepers-4x2",
                handing::<Numa, Longer>(&[2; 4], 0),
                NUMA.expiries(1).spurious(1),
            )
            .by_lot(5_000)
            .reaches(handed),
            model(
                "cohorts-give-up-3+2",
                handing::<Numa, Backed>(&[2; 3], 2),
                NUMA.expiries(1).timeouts(2),
            )
            .by_lot(5_000)
            .reaches(&["hands over", "gave up"]),
            model("cohorts-destroyed-3x1", destroyed::<Numa, Longer>(), NUMA)
                .by_lot(5_000)
                .reaches(&["retired"]),
        ]),
        Subject("shfl-mutex+light").models([
            model("passes-3x1", handing::<None, Short>(&[1; 3], 0), light).reaches(handed),
            model("cohorts-1+2", handed_from::<Numa, Short>(2, 0), NUMA.light(Granted))
                .by_lot(5_000)
                .reaches(handed),
        ]),
    ])
}

/// One thread for each element of `rounds` locks that many times; `timed` more may give up. At the
/// end the lock is free. Must reach `hands over`; with `timed` threads, `gave up`.
fn handing<Q: Policy, F: Form>(rounds: &[u32], timed: u32) -> Program {
    let sum: u32 = rounds.iter().sum();
    let rounds = rounds.to_vec();
    Program::new(rounds.len() as u32 + timed, sum + timed, move |scope| {
        come::<Q, F>(scope, &rounds, timed, 0);
    })
}

/// [`handing`] with one round each, in which one more thread, which only unlocks, hands the lock
/// over from the start.
fn handed_from<Q: Policy, F: Form>(comers: u32, timed: u32) -> Program {
    let rounds = vec![1; comers as usize];
    Program::new(1 + comers + timed, 1 + comers + timed, move |scope| {
        let (lock, data) = come::<Q, F>(scope, &rounds, timed, 1);
        lock.lock_taken();
        assert!(lock.hands_over());
        scope.spawn(move || owns(lock, data));
    })
}

/// Spawns the threads of both models, beside `others` that take the lock once; returns the lock and
/// its data.
fn come<'scope, Q: Policy, F: Form>(
    scope: &'scope Scope<'scope, '_>,
    rounds: &[u32],
    timed: u32,
    others: u32,
) -> (&'scope ShflMutex<Check, Q, F>, &'scope Data<u32>) {
    let (lock, data) = guarded::<ShflMutex<_, _, _>>(scope);
    scope.spawn_each(rounds.iter().copied(), move |rounds| {
        for _ in 0..rounds {
            lock.lock();
            owns(lock, data);
        }
    });
    scope.spawn_each(0..timed, move |_| {
        if lock.lock_until(soon()) {
            owns(lock, data);
        } else {
            probe("gave up");
        }
    });
    let least = rounds.iter().sum::<u32>() + others;
    scope.finally(move || {
        assert!(data.get() >= least);
        assert!(!lock.hands_over() && lock.try_lock(), "the lock is free at the end");
        unlock(lock);
    });
    (lock, data)
}

/// The work of an owner.
fn owns<Q: Policy, F: Form>(lock: &ShflMutex<Check, Q, F>, data: &Data<u32>) {
    data.set(data.get() + 1);
    if lock.hands_over() {
        probe("hands over");
    }
    unlock(lock);
}

/// PASS-3: the last owner may free the lock while the owner before it is still in `unlock`. Must
/// reach `retired`.
fn destroyed<Q: Policy, F: Form>() -> Program {
    const THREADS: u32 = 3;
    Program::new(THREADS, THREADS, |scope| {
        let (lock, data) = guarded::<ShflMutex<Check, Q, F>>(scope);
        scope.spawn_each(0..THREADS, move |_| {
            lock.lock();
            let before = data.get();
            data.set(before + 1);
            unlock(lock);
            if before == THREADS - 1 {
                retire(lock);
            }
        });
    })
}

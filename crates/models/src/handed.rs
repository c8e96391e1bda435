//! The ShflLock mutex where owners hand it over: PASS-1…4, COHORT-1…4.

use antiphon_check::HeavyFence::Granted;
use antiphon_check::{Check, Data, probe};
use antiphon_sync::lock::{Form, ShflMutex};
use antiphon_sync::policy::{None, Numa, Policy};

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::forms::Handing;
use crate::program::{Program, soon, unlock};

/// No cohorts.
type Plain = ShflMutex<Check, None, Handing<1, 0>>;
/// One hand-over within a cohort, then it is the next one's turn.
type Short = ShflMutex<Check, Numa, Handing<1, 0>>;
type Longer = ShflMutex<Check, Numa, Handing<2, 0>>;
type Backed = ShflMutex<Check, Numa, Handing<1, 1>>;

const PLAIN: Bounds = Bounds::PLAIN;

pub fn entries() -> Vec<Entry> {
    let handed = &["hands over"];
    let sockets = PLAIN.sockets(2);
    let tired = PLAIN.expiries(1);
    let light = PLAIN.light(Granted);
    let timed = PLAIN.timeouts(1);
    let asleep = sockets.expiries(1);
    let timed_sockets = asleep.timeouts(1);
    vec![
        Entry::new("shfl-mutex/passes-3x1", handing::<Plain>(&[1; 3], 0), PLAIN).reaches(handed),
        Entry::new("shfl-mutex/passes-to-sleepers-3x1", handing::<Plain>(&[1; 3], 0), tired)
            .reaches(handed),
        Entry::new("shfl-mutex/passes-to-sleepers-4x2", handing::<Plain>(&[2; 4], 0), tired)
            .by_lot(5_000)
            .reaches(handed),
        Entry::new("shfl-mutex/passes-gives-up-2+1", handing::<Plain>(&[1; 2], 1), timed)
            .reaches(&["hands over", "gave up"]),
        Entry::new("shfl-mutex/passes-destroyed-3x1", destroyed::<None, Handing<1, 0>>(), PLAIN)
            .reaches(&["retired"]),
        Entry::new("shfl-mutex+light/passes-3x1", handing::<Plain>(&[1; 3], 0), light)
            .reaches(handed),
        Entry::new("shfl-mutex/cohorts-1+2", handed_from::<Short>(2, 0), sockets).reaches(handed),
        Entry::new("shfl-mutex/cohorts-of-sleepers-1+2", handed_from::<Short>(2, 0), asleep)
            .long()
            .reaches(handed),
        Entry::new("shfl-mutex/cohorts-give-up-1+1+1", handed_from::<Short>(1, 1), timed_sockets)
            .by_lot(5_000)
            .reaches(&["hands over", "gave up"]),
        Entry::new(
            "shfl-mutex+light/cohorts-1+2",
            handed_from::<Short>(2, 0),
            sockets.light(Granted),
        )
        .by_lot(5_000)
        .reaches(handed),
        Entry::new("shfl-mutex/cohorts-1+3", handed_from::<Short>(3, 0), sockets)
            .by_lot(5_000)
            .reaches(handed),
        Entry::new("shfl-mutex/cohorts-longer-1+4", handed_from::<Longer>(4, 0), asleep)
            .by_lot(5_000)
            .reaches(handed),
        Entry::new("shfl-mutex/cohorts-4x2", handing::<Short>(&[2; 4], 0), sockets)
            .by_lot(5_000)
            .reaches(handed),
        Entry::new("shfl-mutex/cohorts-longer-5x2", handing::<Longer>(&[2; 5], 0), sockets)
            .by_lot(5_000)
            .reaches(handed),
        Entry::new(
            "shfl-mutex/cohorts-of-sleepers-4x2",
            handing::<Longer>(&[2; 4], 0),
            sockets.expiries(1).spurious(1),
        )
        .by_lot(5_000)
        .reaches(handed),
        Entry::new(
            "shfl-mutex/cohorts-give-up-3+2",
            handing::<Backed>(&[2; 3], 2),
            sockets.expiries(1).timeouts(2),
        )
        .by_lot(5_000)
        .reaches(&["hands over", "gave up"]),
        Entry::new("shfl-mutex/cohorts-destroyed-3x1", destroyed::<Numa, Handing<2, 0>>(), sockets)
            .by_lot(5_000)
            .reaches(&["retired"]),
    ]
}

/// A mutex that can be asked whether it will be handed over.
pub trait Hands: antiphon_sync::lock::Lock + Sync + 'static {
    fn hands(&self) -> bool;
    fn lock_soon(&self) -> bool;
    fn lock_queued(&self);
}

impl<Q: Policy, F: Form> Hands for ShflMutex<Check, Q, F> {
    fn hands(&self) -> bool {
        self.hands_over()
    }

    fn lock_soon(&self) -> bool {
        self.lock_until(soon())
    }

    fn lock_queued(&self) {
        self.lock_queued();
    }
}

/// A thread for each of `rounds`, which locks so often, and `timed` ones that may give up. At the
/// end the lock is free, and as fast as a new one. Has to reach `hands over`; with timed ones,
/// `gave up`.
fn handing<L: Hands>(rounds: &[u32], timed: u32) -> Program {
    let rounds = rounds.to_vec();
    let threads = rounds.len() as u32 + timed;
    let sum: u32 = rounds.iter().sum();
    Program::new(threads, sum + timed, move |scope| {
        let lock = scope.share(L::NEW);
        let data = scope.share(Data::new(0));
        for &rounds in &rounds {
            scope.spawn(move || {
                for _ in 0..rounds {
                    lock.lock();
                    owns(lock, data);
                }
            });
        }
        for _ in 0..timed {
            scope.spawn(move || {
                if lock.lock_soon() {
                    owns(lock, data);
                } else {
                    probe("gave up");
                }
            });
        }
        scope.finally(move || {
            assert!(data.get() >= sum);
            assert!(!lock.hands(), "nobody has the lock");
            assert!(lock.try_lock(), "the lock is free at the end");
            unlock(lock);
        });
    })
}

/// The lock is handed over from the start, by one thread that only unlocks; `comers` come, and
/// `timed` ones that may give up. Has to reach `hands over`; with timed ones, `gave up`.
fn handed_from<L: Hands>(comers: u32, timed: u32) -> Program {
    Program::new(1 + comers + timed, 1 + comers + timed, move |scope| {
        let lock = scope.share(L::NEW);
        let data = scope.share(Data::new(0));
        lock.lock_queued();
        assert!(lock.hands());
        scope.spawn(move || owns(lock, data));
        for _ in 0..comers {
            scope.spawn(move || {
                lock.lock();
                owns(lock, data);
            });
        }
        for _ in 0..timed {
            scope.spawn(move || {
                if lock.lock_soon() {
                    owns(lock, data);
                } else {
                    probe("gave up");
                }
            });
        }
        scope.finally(move || {
            assert!(data.get() > comers);
            assert!(!lock.hands() && lock.try_lock(), "the lock is free at the end");
            unlock(lock);
        });
    })
}

/// What an owner does.
fn owns<L: Hands>(lock: &L, data: &Data<u32>) {
    data.set(data.get() + 1);
    if lock.hands() {
        probe("hands over");
    }
    unlock(lock);
}

/// PASS-3: the last owner may free the lock while the one before it is still in `unlock`. Has to
/// reach `retired`.
fn destroyed<Q: Policy, F: Form>() -> Program {
    const THREADS: u32 = 3;
    Program::new(THREADS, THREADS, |scope| {
        let lock = scope.share(ShflMutex::<Check, Q, F>::NEW);
        let data = scope.share(Data::new(0));
        for _ in 0..THREADS {
            scope.spawn(move || {
                lock.lock();
                let before = data.get();
                data.set(before + 1);
                unlock(lock);
                if before == THREADS - 1 {
                    antiphon_check::retire(lock);
                    probe("retired");
                }
            });
        }
    })
}

//! Models of the delegation locks: each section runs once, on any thread, with the data that it
//! brings and returns; and a combiner's work is bounded.

mod rcl;

use std::cell::Cell;

use antiphon_check::{Check, Data, Scope};
use antiphon_platform::Platform;
use antiphon_rivals::delegation::{DsmSynch, Rcl};

use crate::bounds::{PLAIN, SPURIOUS};
use crate::entry::{Entry, Subject, model};
use crate::program::{Program, retire};

const LOTS: u64 = 500;

/// All waiters sleep at once.
type Sleepy<const BOUND: u32> = DsmSynch<Sum, Check, BOUND, 0>;
type Spinning = DsmSynch<Sum, Check, 2, 10>;
type Shipped = DsmSynch<Sum, Check>;

pub fn entries() -> Vec<Entry> {
    let crowded = PLAIN.crowded(1).expiries(1);
    let mut entries = Subject("dsm-synch").models([
        model("excludes-2x1", excludes::<Sleepy<2>>(2, 1), PLAIN),
        model("excludes-2x2", excludes::<Sleepy<2>>(2, 2), PLAIN),
        model("excludes-3x1", excludes::<Sleepy<2>>(3, 1), PLAIN).reaches(&["another's"]),
        model("excludes-3x2", excludes::<Sleepy<2>>(3, 2), PLAIN).by_lot(LOTS),
        // Each thread runs only its own section, or one thread runs all.
        model("hands-over-2x2", excludes::<Sleepy<1>>(2, 2), PLAIN),
        model("hands-over-3x1", excludes::<Sleepy<1>>(3, 1), PLAIN),
        model("spins-2x2", excludes::<Spinning>(2, 2), crowded),
        model("spurious-2x2", excludes::<Sleepy<2>>(2, 2), SPURIOUS),
        model("bounded-3x1", bounded::<1>(3), PLAIN),
        model("bounded-4x1", bounded::<2>(4), PLAIN).by_lot(LOTS),
        model("tries-1+1", tries(), PLAIN).reaches(&["busy"]),
        model("exhausted-2x1", excludes::<Sleepy<2>>(2, 1), PLAIN.nodes(1).mortal(1)),
        model("destroyed-1+1", destruction(), PLAIN).reaches(&["retired"]),
        model("shipped-2x2", excludes::<Shipped>(2, 2), crowded),
    ]);
    entries.extend(rcl::entries());
    entries
}

/// The value that the sections work on.
type Sum = Data<u32>;

/// A lock of either kind.
trait Delegated: 'static {
    fn new() -> Self;
    fn with<R>(&self, section: impl FnOnce(&mut Sum) -> R) -> R;
}

/// Makes a section `Send`: all threads of a model run on one thread of the host.
struct Sent<T>(T);

// SAFETY: all threads of a model run on one thread of the host.
unsafe impl<T> Send for Sent<T> {}

impl<T> Sent<T> {
    fn into_inner(self) -> T {
        self.0
    }
}

/// [`Delegated`] by the inherent methods of the same names.
macro_rules! delegated {
    ([$($parameters:tt)*] $lock:ty) => {
        impl<$($parameters)*> Delegated for $lock {
            fn new() -> Self {
                Self::new(Data::new(0))
            }

            fn with<R>(&self, section: impl FnOnce(&mut Sum) -> R) -> R {
                let section = Sent(section);
                self.with(move |sum: &mut Sum| Sent(section.into_inner()(sum))).into_inner()
            }
        }
    };
}

delegated!([const BOUND: u32, const SPIN: u32] DsmSynch<Sum, Check, BOUND, SPIN>);
delegated!([const CPUS: usize, const SPIN: u32] Rcl<Sum, Check, CPUS, SPIN>);

/// One section of a thread: it reads what the thread has written, writes the sum, and leaves a
/// result that the thread reads afterwards. Returns the sum.
fn section<L: Delegated>(lock: &L, mine: &Data<u32>) -> u32 {
    let me = Check::thread();
    mine.set(1);
    let (sum, again) = lock.with(|sum| {
        if Check::thread() != me {
            antiphon_check::probe("another's");
        }
        sum.set(sum.get() + mine.get());
        mine.set(0);
        (sum.get(), me)
    });
    assert_eq!((mine.get(), again), (0, me), "what the section has left and returned");
    sum
}

fn contend<'scope, L: Delegated>(
    scope: &'scope Scope<'scope, '_>,
    lock: &'scope L,
    (threads, rounds): (u32, u32),
    all: fn(&L),
) {
    for _ in 0..threads {
        let mine = scope.share(Data::new(0));
        scope.spawn(move || {
            for _ in 0..rounds {
                if section(lock, mine) == threads * rounds {
                    all(lock);
                }
            }
        });
    }
}

fn excludes<L: Delegated>(threads: u32, rounds: u32) -> Program {
    Program::new(threads, threads * rounds, move |scope| {
        let lock = scope.share(L::new());
        contend(scope, lock, (threads, rounds), |_| {});
        scope.finally(move || assert_eq!(lock.with(|sum| sum.get()), threads * rounds));
    })
}

/// DSM-3: no thread runs more than `BOUND` sections before its call returns.
fn bounded<const BOUND: u32>(threads: u32) -> Program {
    Program::new(threads, threads, move |scope| {
        let lock = scope.share(Sleepy::<BOUND>::new(Data::new(0)));
        let ran = scope.share([const { Cell::new(0) }; 8]);
        scope.spawn_each(0..threads, move |_| {
            Delegated::with(lock, |_| {
                let runner = &ran[Check::thread().0 as usize];
                runner.set(runner.get() + 1);
            });
            let mine = ran[Check::thread().0 as usize].get();
            assert!(mine <= BOUND, "one ran {mine} sections");
        });
        scope.finally(move || assert_eq!(ran.iter().map(Cell::get).sum::<u32>(), threads));
    })
}

/// A try on a value without an owner succeeds; on a value that another thread owns it returns the
/// section. Must reach `busy`.
fn tries() -> Program {
    Program::new(2, 2, |scope| {
        let lock = scope.share(Sleepy::<2>::new(Data::new(0)));
        let mine = scope.share(Data::new(0));
        scope.spawn(move || {
            section(lock, mine);
        });
        scope.spawn(move || {
            if lock.try_with(|sum| sum.set(sum.get() + 1)).is_err() {
                antiphon_check::probe("busy");
                Delegated::with(lock, |sum| sum.set(sum.get() + 1));
            }
        });
        scope.finally(move || {
            assert!(lock.try_with(|sum| assert_eq!(sum.get(), 2)).is_ok(), "free is free");
        });
    })
}

/// DSM-4: a thread that has returned may free the lock, while the thread that ran its section has
/// not returned. Must reach `retired`.
fn destruction() -> Program {
    Program::new(2, 2, |scope| {
        let lock = scope.share(Sleepy::<2>::new(Data::new(0)));
        for _ in 0..2 {
            let mine = scope.share(Data::new(0));
            scope.spawn(move || {
                if section(lock, mine) == 2 {
                    retire(lock);
                }
            });
        }
    })
}

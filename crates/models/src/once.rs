//! Models of `Once`: the function is run by one thread, and all threads see its effects.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data};
use antiphon_platform::{Atomic, Atomics};
use antiphon_sync::lock::Standard;
use antiphon_sync::wait::{self, CrowdForm};

use crate::bounds::{ANY, PLAIN, SPURIOUS};
use crate::entry::{Entry, Subject, model};
use crate::forms::{Sleepy, Spinning};
use crate::program::Program;

type Once<F> = wait::Once<Check, F>;

pub fn entries() -> Vec<Entry> {
    let failed = &["another has failed"];
    Subject("once").models([
        model("runs-2x1", running::<Sleepy>(2, 0), PLAIN),
        model("runs-2x2", running_twice(), PLAIN),
        model("runs-3x1", running::<Sleepy>(3, 0), PLAIN),
        model("runs-6x1", running::<Sleepy>(6, 0), SPURIOUS).by_lot(5_000),
        model("runs-any-platform-2x1", running::<Spinning>(2, 0), ANY),
        model("runs-any-platform-3x1", running::<Spinning>(3, 0), ANY).by_lot(10_000),
        model("fails-2x1", failing::<Sleepy>(2), SPURIOUS).reaches(failed),
        model("fails-3x1", failing::<Sleepy>(3), PLAIN).reaches(failed),
        model("fails-any-platform-4x1", failing::<Spinning>(4), ANY).by_lot(5_000).reaches(failed),
        model("exhausted-3x1", running::<Sleepy>(3, 0), PLAIN.nodes(0)),
        model("exhausted-but-one-3x1", running::<Sleepy>(3, 0), PLAIN.nodes(1)),
        model("inherited-2x1", running::<Sleepy>(2, STRANGERS), PLAIN),
        model("inherited-3x1", running::<Sleepy>(3, STRANGERS), PLAIN).by_lot(3_000),
        model("shipped-2x1", running::<Standard>(2, 0), ANY),
        model("shipped-5x1", running::<Standard>(5, 0), ANY).by_lot(3_000),
    ])
}

/// Word in which a parent's thread runs the function and another waits, with an index that the
/// child's arena will not hand out.
const STRANGERS: u32 = 40 << 12 | 2 << 2 | 1;

/// Each thread calls the `Once`. `word` is the state that a parent has left.
fn running<F: CrowdForm>(threads: u32, word: u32) -> Program {
    Program::new(threads, threads, move |scope| {
        let once = scope.share(Once::<F>::NEW);
        let made = scope.share(Data::new(0));
        if word != 0 {
            // SAFETY: a `Once` consists of this word, which lives as long as the borrow.
            let words = unsafe { &*std::ptr::from_ref(once).cast::<<Check as Atomics>::U32>() };
            words.store(word, Relaxed);
        }
        scope.spawn_each(0..threads, move |_| {
            once.call_once(|| made.set(made.get() + 1));
            assert_eq!(made.get(), 1, "done, and once");
        });
        scope.finally(|| assert!(once.is_completed()));
    })
}

/// Each thread calls the `Once` twice, and checks it first.
fn running_twice() -> Program {
    Program::new(2, 4, |scope| {
        let once = scope.share(Once::<Sleepy>::NEW);
        let made = scope.share(Data::new(0));
        scope.spawn_each(0..2, move |_| {
            if once.is_completed() {
                assert_eq!(made.get(), 1, "done, and seen");
            }
            for _ in 0..2 {
                once.call_once(|| made.set(made.get() + 1));
            }
            assert_eq!(made.get(), 1, "done, and once");
        });
    })
}

/// The first run fails; then the next caller runs its own function, and sees what the first has
/// left. Must reach `another has failed`.
fn failing<F: CrowdForm>(threads: u32) -> Program {
    Program::new(threads, threads, move |scope| {
        let once = scope.share(Once::<F>::NEW);
        let tries = scope.share(Data::new(0));
        scope.spawn_each(0..threads, move |_| {
            let run = once.try_call_once(|| {
                tries.set(tries.get() + 1);
                if tries.get() == 1 { Err("the first") } else { Ok(()) }
            });
            if run.is_ok() {
                antiphon_check::probe("another has failed");
                assert_eq!(tries.get(), 2, "done by the second");
            }
        });
        scope.finally(|| assert!(once.is_completed()));
    })
}

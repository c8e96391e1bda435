//! Models of linearizability of the semaphore and the barrier: each answer is right, as in
//! `linear.rs`. A wait at a barrier is two operations of its history: to arrive and to go on.

use antiphon_check::linearizability::explain;
use antiphon_check::linearizability::waits::{
    Barrier as SeenBarrier, Semaphore as SeenSemaphore, SemaphoreCall, in_halves,
};
use antiphon_check::{Check, History};
use antiphon_sync::policy::None;
use antiphon_sync::wait;

use crate::bounds::{PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, all_of, model};
use crate::forms::Sleepy;
use crate::program::{Program, soon};

type Semaphore = wait::Semaphore<Check, None, Sleepy>;
type Barrier = wait::Barrier<Check, Sleepy>;

pub fn entries() -> Vec<Entry> {
    all_of([
        Subject("semaphore").models([
            model("linearizable-tries-1+1", semaphore(2, &[TAKES, TRIES]), PLAIN),
            model("linearizable-gives-1+1", semaphore(0, &[GIVES, TRIES]), PLAIN),
            model("linearizable-until-1+1", semaphore(0, &[GIVES, UNTIL]), TIMED),
            model(
                "linearizable-1+1+1+1",
                semaphore(1, &[TAKES, TRIES, UNTIL, GIVES]),
                TIMED.spurious(1),
            )
            .by_lot(5_000),
        ]),
        Subject("barrier").models([
            model("linearizable-2x2", barrier(2, 2, 2), SPURIOUS),
            // More threads than `parties`: rounds overlap.
            model("linearizable-overlapping-4x1", barrier(4, 2, 1), PLAIN).by_lot(5_000),
            model("linearizable-overlapping-6x1", barrier(6, 3, 1), SPURIOUS).by_lot(3_000),
        ]),
    ])
}

/// A step of a thread at a semaphore.
#[derive(Clone, Copy)]
enum Step {
    Acquire(u32),
    /// Tries, and releases the permits if it has got them.
    Try(u32),
    /// Like `Try`, but waits until a deadline.
    Until(u32),
    Release(u32),
}

type Script = &'static [Step];

const TAKES: Script = &[Step::Acquire(1), Step::Release(1)];
const TRIES: Script = &[Step::Try(1), Step::Try(2)];
const GIVES: Script = &[Step::Release(2)];
const UNTIL: Script = &[Step::Until(2)];

type Told = History<SemaphoreCall, bool>;

/// Runs one thread for each script, with `permits` permits at first.
fn semaphore(permits: u32, scripts: &'static [Script]) -> Program {
    let threads = scripts.len() as u32;
    let operations = scripts.iter().map(|script| script.len() as u32).sum();
    Program::new(threads, operations, move |scope| {
        let semaphore = scope.share(Semaphore::new(permits));
        let history = scope.share(Told::new());
        scope.spawn_each(scripts, move |script| {
            script.iter().for_each(|&step| perform(step, semaphore, history))
        });
        scope.finally(move || {
            perform(Step::Try(permits.max(1)), semaphore, history);
            history.assert_linearizable(&SeenSemaphore { permits });
        });
    })
}

fn perform(step: Step, semaphore: &Semaphore, history: &Told) {
    let release = |permits| {
        history.record(SemaphoreCall::Release(permits), || semaphore.release(permits).is_ok());
    };
    match step {
        Step::Acquire(permits) => {
            history.record(SemaphoreCall::Acquire(permits), || {
                semaphore.acquire_many(permits);
                true
            });
        }
        Step::Try(permits) => {
            let call = || semaphore.try_acquire(permits);
            if history.record(SemaphoreCall::Try(permits), call) {
                release(permits);
            }
        }
        Step::Until(permits) => {
            let call = || semaphore.acquire_until(permits, soon());
            if history.record(SemaphoreCall::Try(permits), call) {
                release(permits);
            }
        }
        Step::Release(permits) => release(permits),
    }
}

/// Threads that wait at a barrier for any `parties` of them. If rounds overlap, each waits once:
/// otherwise the last thread might have no other to meet.
fn barrier(threads: u32, parties: u32, rounds: u32) -> Program {
    assert!(threads == parties || rounds == 1 && threads.is_multiple_of(parties));
    Program::new(threads, threads * rounds, move |scope| {
        let barrier = scope.share(Barrier::new(parties));
        let history = scope.share(History::new());
        scope.spawn_each(0..threads as usize, move |me| {
            for _ in 0..rounds {
                history.record(me, || barrier.wait());
            }
        });
        scope.finally(move || {
            let told = in_halves(&history.calls());
            let story = explain(&SeenBarrier::new(parties as usize), &told);
            assert!(story.is_some(), "no story: {history:?}");
        });
    })
}

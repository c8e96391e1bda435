//! Panics of tasks: which caller receives them, and the work of destructors meanwhile.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use antiphon::deterministic::{JoinHandle, Pool, Runner, Why, sleep, work};
use antiphon::pool::policy::{Aging, Fifo, Ranked, Scheme, Share, Steal};

use crate::failures::{CHILD, fails, said};

/// Calls the closure when dropped.
struct Drops<F: FnMut()>(F);

impl<F: FnMut()> Drop for Drops<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_panic_that_nobody_asks_for_is_a_failure() {
    let failure = fails(|pool| {
        assert!(pool.spawn(|| panic!("that was asked for")).join().is_err());
        drop(pool.spawn_future(async { panic!("that was not") }));
    });
    let expected = Why::TaskPanicked { task: 2, message: "that was not".to_owned() };
    assert_eq!(failure.why, expected);
    // The task's handle is gone when the task ends.
    let failure = fails(|pool| {
        drop(pool.spawn(|| {
            work(Duration::from_micros(100));
            Drops(|| panic!("dropped"))
        }));
    });
    let expected = Why::TaskPanicked { task: 0, message: "dropped".to_owned() };
    assert_eq!(failure.why, expected);
}

/// The panic is neither dropped nor asked for while the run lasts.
#[test]
fn a_panic_whose_handle_leaves_the_run_is_a_failure() {
    let expected = Why::TaskPanicked { task: 1, message: "kept".to_owned() };
    assert_eq!(fails(|pool| pool.spawn(|| panic!("kept"))).why, expected);
    assert_eq!(fails(|pool| std::mem::forget(pool.spawn(|| panic!("kept")))).why, expected);
}

/// Spawns a task that waits, and wakes, when dropped.
fn spawns(pool: Pool, ran: &Arc<AtomicU32>, waker: Option<Waker>) -> Drops<impl FnMut() + use<>> {
    let ran = ran.clone();
    Drops(move || {
        for rank in 0..MADE {
            let ran = ran.clone();
            drop(pool.spawn_ranked(u64::from(rank % 4), move || {
                pool.spawn(|| ()).join().expect("it does not panic");
                ran.fetch_add(1, Relaxed);
            }));
        }
        let ran = ran.clone();
        drop(pool.spawn_future(async move { ran.fetch_add(1, Relaxed) }));
        waker.iter().for_each(Waker::wake_by_ref);
    })
}

const MADE: u32 = 20;
const TASKS: u32 = 8;

/// Several tasks panic at the same time; one wakes a future.
fn panic_together(pool: Pool, ran: &Arc<AtomicU32>) {
    let waker = Arc::new(Mutex::new(None));
    let told = waker.clone();
    let woken = pool.spawn_future(poll_fn(move |context| {
        match told.lock().expect("no panic").replace(context.waker().clone()) {
            None => Poll::Pending,
            Some(_) => Poll::Ready(()),
        }
    }));
    pool.spawn_future(sleep(Duration::from_millis(1))).join().expect("it does not panic");
    let mut waker = waker.lock().expect("no panic").clone();
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let spawns = spawns(pool, ran, waker.take());
            pool.spawn(move || {
                let _spawns = spawns;
                panic!("it has a destructor");
            })
        })
        .collect();
    assert!(tasks.into_iter().all(|task: JoinHandle<()>| task.join().is_err()));
    woken.join().expect("it does not panic");
}

/// This also holds for queues with locks, and if there is no room.
#[test]
fn destructors_spawn_and_wake_while_their_task_panics() {
    let ranked = || Ranked::new(Aging { level_ns: 1_000, usual: 1 }, 1, 1 << 14);
    let full = || Scheme::new(Fifo, Steal { share: Share::Half }).capacity(2, 2);
    let runner = || Runner::new().workers(5);
    for runner in [runner(), runner().policy(ranked), runner().policy(full)] {
        for seed in 0..20 {
            let ran = Arc::new(AtomicU32::new(0));
            let runs = ran.clone();
            let run = runner.run(seed, move |pool| panic_together(pool, &runs));
            run.unwrap_or_else(|failure| panic!("{failure}"));
            assert_eq!(ran.load(Relaxed), TASKS * (MADE + 1), "seed {seed}");
        }
    }
}

/// A task that catches its panic finds what a destructor has spawned in it.
#[test]
fn what_was_spawned_in_a_panic_that_was_caught_is_run() {
    let task = |pool: Pool| {
        let mut spawned = None;
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _spawns = Drops(|| spawned = Some(pool.spawn(|| 7)));
            panic!("caught");
        }));
        assert!(caught.is_err());
        spawned.expect("it was dropped").join().expect("it does not panic")
    };
    let run = Runner::new().run(1, move |pool| {
        (task(pool), pool.spawn(move || task(pool)).join().expect("it does not panic"))
    });
    assert_eq!(run.expect("nobody fails").returned, (7, 7));
}

/// A scope whose wait fails can't be left, because its tasks still exist.
#[test]
fn a_destructor_that_waits_while_its_task_panics_ends_the_process_with_the_seed() {
    let name =
        "panics::a_destructor_that_waits_while_its_task_panics_ends_the_process_with_the_seed";
    if std::env::var_os(CHILD).is_some() {
        _ = Runner::new().run(41, |pool| {
            let task = pool.spawn(move || {
                let _waits = Drops(|| {
                    let scope = || pool.scope(|scope| scope.spawn(|| ()));
                    let left = catch_unwind(AssertUnwindSafe(scope));
                    eprintln!("the scope was left: {}", left.is_ok());
                });
                panic!("it has a destructor");
            });
            assert!(task.join().is_err());
        });
        std::process::exit(1);
    }
    let told = said(name, None);
    assert!(told.contains("seed 41: a destructor waits"), "{told}");
    assert!(!told.contains("the scope was left"), "{told}");
}

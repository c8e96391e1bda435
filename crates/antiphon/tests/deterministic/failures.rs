//! Failures: found by some seed, reported, and reproduced.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use antiphon::deterministic::{Failure, Pool, Runner, Why, sleep, work};
use antiphon::pool::policy::Policy;
use antiphon_platform::Platform;
use antiphon_runtime::sched::{Others, Own};
use antiphon_sync::queue::{Deque, Full, Item, Stolen};

/// Enough seeds to find a defect that shows in a good part of the schedules.
const SEEDS: std::ops::Range<u64> = 0..200;

/// Reads, lets others run, and writes.
fn lost_update(pool: Pool) {
    let count = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..2)
        .map(|_| {
            let (count, step) = (count.clone(), pool.spawn(|| ()));
            pool.spawn_future(async move {
                let seen = count.load(Relaxed);
                step.await.expect("it does not panic");
                count.store(seen + 1, Relaxed);
            })
        })
        .collect();
    tasks.into_iter().for_each(|task| task.join().expect("it does not panic"));
    assert_eq!(count.load(Relaxed), 2, "an update is lost");
}

/// Relies on the first spawned task being done first.
fn order(pool: Pool) {
    let last = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (1..4)
        .map(|number| {
            let last = last.clone();
            pool.spawn(move || last.store(number, Relaxed))
        })
        .collect();
    tasks.into_iter().for_each(|task| task.join().expect("it does not panic"));
    assert_eq!(last.load(Relaxed), 3, "the last was not the last");
}

/// Relies on a task being done after some time: it is, unless the thread that runs it loses its
/// CPU.
fn time(pool: Pool) {
    let done = Arc::new(AtomicU32::new(0));
    let told = done.clone();
    let task = pool.spawn(move || told.store(1, Relaxed));
    work(Duration::from_micros(15));
    assert_eq!(done.load(Relaxed), 1, "it is not done");
    task.join().expect("it does not panic");
}

fn found(closure: fn(Pool), says: &str) {
    let failure = Runner::new().find(SEEDS, closure).expect("some schedule fails");
    let Why::Panicked(message) = &failure.why else { panic!("{failure}") };
    assert!(message.contains(says), "{failure}");
    // Not every seed fails: the schedule decides.
    assert!(SEEDS.clone().any(|seed| Runner::new().run(seed, closure).is_ok()));
    let again = Runner::new().run(failure.seed, closure).expect_err("it fails again");
    assert_eq!((again.to_string(), again), (failure.to_string(), failure));
}

#[test]
fn a_lost_update_is_found_and_comes_again() {
    found(lost_update, "an update is lost");
}

#[test]
fn reliance_on_an_order_is_found_and_comes_again() {
    found(order, "the last was not the last");
}

#[test]
fn reliance_on_a_time_is_found_and_comes_again() {
    found(time, "it is not done");
}

pub fn fails<T: 'static>(closure: fn(Pool) -> T) -> Failure {
    let runner = Runner::new().limit(Duration::from_millis(5));
    runner.run(1, closure).err().expect("it fails")
}

#[test]
fn a_deadlock_is_told_with_who_waits() {
    let failure = fails(|pool| {
        pool.spawn(|| ()).join().expect("it does not panic");
        // The future itself keeps its waker, and no other code has it.
        let never = pool.spawn_future(async {
            let mut kept = None;
            poll_fn(|context| {
                kept = Some(context.waker().clone());
                Poll::<()>::Pending
            })
            .await;
        });
        _ = never.join();
    });
    assert_eq!(failure.why, Why::Deadlock);
    let unfinished: Vec<_> = failure.schedule.unfinished().map(|step| step.task).collect();
    assert_eq!(unfinished, [0, 2]);
    let told = failure.to_string();
    assert!(told.contains("all tasks wait") && told.contains("task 2 waits to be woken"), "{told}");
}

#[test]
fn what_takes_longer_than_the_limit_is_a_failure() {
    let works = fails(|pool| {
        let task = pool.spawn(|| {
            loop {
                work(Duration::from_micros(10));
            }
        });
        task.join().expect("it does not end");
    });
    assert_eq!(works.why, Why::Overrun);
    let sleeps = fails(|pool| {
        let task = pool.spawn_future(sleep(Duration::from_secs(1)));
        task.join().expect("it does not end");
    });
    assert_eq!(sleeps.why, Why::Overrun);
}

/// What a faulty policy does with its tenth task.
#[derive(Clone, Copy)]
enum Tenth {
    Forgets,
    Panics,
}

// SAFETY: tasks go into the worker's queue or are forgotten, and come out of queues.
unsafe impl<P: Platform> Policy<P> for Tenth {
    type Queue = Deque<P>;
    type State = u32;

    fn queue(&self) -> Deque<P> {
        Deque::new(128, 1 << 20)
    }

    fn push(
        &self,
        own: &Own<'_, Deque<P>>,
        pushed: &mut u32,
        task: Item,
        _: Option<u64>,
    ) -> Result<(), Full> {
        *pushed += 1;
        match self {
            Self::Forgets if *pushed == 10 => Ok(()),
            _ => own.push(task),
        }
    }

    fn pop(&self, own: &Own<'_, Deque<P>>, pushed: &mut u32) -> Option<Item> {
        match self {
            Self::Panics if *pushed >= 10 => panic!("the policy's"),
            _ => own.pop_back(),
        }
    }

    fn steal(&self, own: &Own<'_, Deque<P>>, _: &mut u32, others: &Others<'_, Deque<P>>) -> Stolen {
        others.try_each(0..others.count(), |victim| own.steal(victim, |_| 1))
    }
}

#[test]
fn a_policy_that_forgets_or_panics_is_told() {
    let why = |tenth: Tenth, closure: fn(Pool)| {
        let runner = Runner::new().workers(2).policy(move || tenth);
        runner.run(1, closure).expect_err("it fails").why
    };
    let spawns: fn(Pool) = |pool| {
        drop(pool.spawn(move || (0..20).for_each(|_| drop(pool.spawn(|| ())))));
    };
    let joins: fn(Pool) = |pool| {
        let task = pool.spawn(move || {
            let tasks: Vec<_> = (0..20).map(|_| pool.spawn(|| ())).collect();
            tasks.into_iter().for_each(|task| task.join().expect("it does not panic"));
        });
        task.join().expect("it does not panic");
    };
    assert_eq!(why(Tenth::Forgets, spawns), Why::Lost);
    assert_eq!(why(Tenth::Forgets, joins), Why::Deadlock);
    assert_eq!(why(Tenth::Panics, spawns), Why::Panicked("the policy's".to_owned()));
}

pub const CHILD: &str = "ANTIPHON_TEST_CHILD";
const SEED: &str = "ANTIPHON_SEED";

/// Runs this test alone in a child process, which fails; returns its output.
pub fn said(name: &str, seed: Option<&str>) -> String {
    let program = std::env::current_exe().expect("this program's path");
    let mut child = Command::new(program);
    child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").env_remove(SEED);
    if let Some(seed) = seed {
        child.env(SEED, seed);
    }
    let child = child.output().expect("this program runs again");
    assert!(!child.status.success());
    String::from_utf8_lossy(&child.stderr).into_owned()
}

#[test]
fn exploring_says_how_to_have_it_again() {
    let name = "failures::exploring_says_how_to_have_it_again";
    if std::env::var_os(CHILD).is_some() {
        return Runner::new().explore(SEEDS, lost_update);
    }
    let failure = Runner::new().find(SEEDS, lost_update).expect("some schedule fails");
    let told = said(name, None);
    assert!(told.contains(&failure.to_string()), "{told}");
    let replay = format!("{SEED}={} cargo test {name} -- --exact --nocapture", failure.seed);
    assert!(told.contains(&replay), "{told}");
    // The replay runs that seed only, and prints the whole schedule.
    let told = said(name, Some(&failure.seed.to_string()));
    assert!(told.contains(&failure.schedule.to_string()) && told.contains(&replay), "{told}");
    assert!(said(name, Some("x")).contains("ANTIPHON_SEED takes the seed"));
}

#[test]
fn a_closure_that_depends_on_something_else_is_told_so() {
    let runs = AtomicU64::new(0);
    let explored = AssertUnwindSafe(|| {
        Runner::new().explore(0..3, move |pool| {
            let run = runs.fetch_add(1, Relaxed);
            let task = pool.spawn(move || work(Duration::from_micros(run)));
            task.join().expect("it does not panic");
            assert_eq!(run, 0);
        });
    });
    let told = catch_unwind(explored).expect_err("the second run fails");
    let told = told.downcast_ref::<String>().expect("text");
    assert!(told.contains("it went another way"), "{told}");
}

#[test]
fn no_failure_is_none() {
    let joins = |pool: Pool| assert_eq!(pool.spawn(|| 1).join().expect("it does not panic"), 1);
    assert_eq!(Runner::new().find(0..5, joins), None);
}

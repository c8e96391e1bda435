//! The recordings of pools without fibers.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use antiphon::pool::Pool;
use antiphon::pool::recording::{Found, LONG_NS, Recording, What};

const LONG: Duration = Duration::from_millis(5);
const KEPT: Duration = Duration::from_millis(1);

fn all(recording: &Recording) -> Vec<What> {
    recording.workers.iter().flat_map(|one| &one.events).map(|event| event.what).collect()
}

/// The only worker has a task ready, and is in another task for long.
#[test]
fn a_task_behind_a_long_one_was_hogged() {
    let pool = Pool::builder().threads(1).name("one").build().unwrap();
    pool.run(|| {
        let behind = pool.spawn(|| thread::sleep(LONG / 5));
        thread::sleep(LONG);
        behind.join().unwrap();
    });
    let recording = pool.recording();
    assert_eq!(recording.workers[0].name, "one-0");
    let kept = |what: &What| matches!(what, What::Kept { tasks: 1 });
    assert!(all(&recording).iter().any(kept), "{recording:?}");
    let latency = recording.latency(KEPT);
    let long_ns = LONG.as_nanos() as u64;
    assert!(latency.hogged.max_ns >= long_ns, "{latency:?}");
    assert!(latency.queued.max_ns >= latency.hogged.max_ns, "{latency:?}");
    assert!(latency.running.max_ns >= long_ns / 5, "{latency:?}");
    assert_eq!(recording.latency(100 * LONG).hogged.max_ns, 0);
}

/// The number of tasks is right, although few are recorded; and no task is reported before its end.
#[test]
fn events_tile_the_time_of_a_worker_and_count_its_tasks() {
    const TASKS: u64 = 1_000;
    let pool = Pool::builder().threads(2).recorder(1 << 16).build().unwrap();
    pool.scope(|scope| (0..TASKS).for_each(|_| scope.spawn(|| ())));
    // Workers record it when they find no more tasks and rest.
    while pool.stats().tasks < TASKS || pool.stats().rests < 2 {
        thread::yield_now();
    }
    let recording = pool.recording();
    let tasks = |what: &What| match *what {
        What::Ran { tasks } | What::Kept { tasks } => u64::from(tasks),
        _ => 0,
    };
    assert!(all(&recording).iter().map(tasks).sum::<u64>() <= TASKS);
    for worker in &recording.workers {
        let mut ended_ns = 0;
        for event in worker.events.iter().filter(|event| !matches!(event.what, What::Task(_))) {
            assert!(event.began_ns <= event.ended_ns, "{event:?}");
            assert!(event.ended_ns >= ended_ns, "{worker:?}");
            ended_ns = event.ended_ns;
            let long = event.ended_ns - event.began_ns > LONG_NS;
            assert!(long || !matches!(event.what, What::Kept { .. }), "{event:?}");
        }
    }
}

/// A task from outside is recorded, the worker that took it has searched for it, and the result of
/// the search is reported.
#[test]
fn a_task_from_outside_is_found_by_a_search() {
    let pool = Pool::new(1).unwrap();
    // A new worker checks that queue before it searches.
    while pool.stats().rests == 0 {
        thread::yield_now();
    }
    pool.spawn(|| ()).join().unwrap();
    let shared = What::Searched { found: Found::Shared };
    let outside = |what: &What| matches!(what, What::Task(sample) if sample.maker.is_none());
    while !all(&pool.recording()).contains(&shared) || !all(&pool.recording()).iter().any(outside) {
        thread::yield_now();
    }
    assert_eq!(pool.recording().latency(KEPT).queued.recorded, 1);
}

#[test]
fn the_latest_events_are_there_or_none() {
    let pool = Pool::builder().threads(1).recorder(8).build().unwrap();
    (0..100).for_each(|_| pool.spawn(|| ()).join().unwrap());
    assert!((1..8).contains(&pool.recording().workers[0].events.len()));
    let pool = Pool::builder().threads(1).recorder(0).build().unwrap();
    assert_eq!(pool.spawn(|| 1).join().unwrap(), 1);
    assert!(pool.recording().workers.is_empty());
    assert_eq!(pool.recording().latency(KEPT).queued.tasks, 0);
}

/// The handle of a recorded task returns its panic, and a refused task is intact.
#[test]
fn a_recorded_task_is_as_any_other() {
    let pool = Pool::new(1).unwrap();
    assert!(pool.spawn(|| panic!("as it is meant to")).join().is_err());
    let mut numbers = [0; 3];
    pool.scope(|scope| {
        numbers.iter_mut().for_each(|number| scope.spawn(move || *number += 1));
    });
    assert_eq!(numbers, [1; 3]);
}

/// It may be recorded at any of many tries, but only once.
#[test]
fn a_task_that_is_refused_is_recorded_once() {
    const TRIES: u32 = 20_000;
    let pool = Pool::builder().threads(1).room(2).build().unwrap();
    let ((go, gone), (says, said)) = (mpsc::channel(), mpsc::channel());
    let busy = pool.spawn(move || {
        says.send(()).unwrap();
        gone.recv().unwrap();
    });
    said.recv().unwrap();
    let mut handles = Vec::new();
    let mut refused = loop {
        match pool.try_spawn(|| ()) {
            Ok(handle) => handles.push(handle),
            Err(refused) => break refused,
        }
    };
    for _ in 0..TRIES {
        refused = refused.try_spawn(&pool).expect_err("the only worker is busy");
    }
    go.send(()).unwrap();
    handles.push(refused.wait(&pool));
    handles.push(busy);
    let tasks = handles.len();
    handles.into_iter().for_each(|handle| handle.join().unwrap());
    let recorded = all(&pool.recording());
    let recorded = recorded.iter().filter(|what| matches!(what, What::Task(_))).count();
    assert!(recorded <= tasks, "{recorded} of {tasks}");
}

//! Whole runs of the scheduler: with each policy, and few or many workers, no task is lost or run
//! twice, and idle workers rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use antiphon::deterministic::{BoxedPolicy, Pool, Run, Runner, Sim, What, sleep, work};
use antiphon::pool::policy::{
    Aging, Deadlines, Fifo, Policy, Ranked, Requests, Scheme, Share, Spill, Staged, Steal, Tickets,
};

fn named(name: &'static str) -> BoxedPolicy {
    name.parse().expect("a policy of this name")
}

fn fifo() -> Scheme<Fifo, Steal> {
    Scheme::new(Fifo, Steal { share: Share::Half }).capacity(16, 16)
}

/// The time of a task: as long as it takes to wake a worker.
const TASK: Duration = Duration::from_micros(5);

/// Each task spawns two others, down to the leaves.
fn tree(pool: Pool, run: Arc<AtomicU32>, depth: u32) {
    run.fetch_add(1, Relaxed);
    work(TASK);
    if depth > 0 {
        for rank in 0..2 {
            let run = run.clone();
            drop(pool.spawn_ranked(rank, move || tree(pool, run, depth - 1)));
        }
    }
}

/// Returns the number of tasks of a tree of this depth, including the root.
fn tasks(depth: u32) -> u32 {
    (1 << (depth + 1)) - 1
}

/// Runs a tree. If `waits`, waits for it; otherwise returns at once, and tasks that have not begun
/// must run before the workers end.
fn grown(runner: &Runner, seed: u64, depth: u32, waits: bool) -> Run<()> {
    let run = Arc::new(AtomicU32::new(0));
    let counts = run.clone();
    let told = runner.run(seed, move |pool| {
        let grows = counts.clone();
        drop(pool.spawn_ranked(0, move || tree(pool, grows, depth)));
        let all = async move {
            while counts.load(Relaxed) < tasks(depth) {
                sleep(10 * TASK).await;
            }
        };
        if waits {
            pool.spawn_future(all).join().expect("it does not panic");
        }
    });
    let told = told.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(run.load(Relaxed), tasks(depth), "seed {seed}");
    let steps = told.schedule.steps();
    let times = |what| steps.iter().filter(|step| step.task > 0 && step.what == what).count();
    assert_eq!(times(What::Spawned), tasks(depth) as usize + usize::from(waits));
    assert_eq!(times(What::Ended), times(What::Spawned));
    assert_eq!(times(What::Began), times(What::Ended) + times(What::Waits));
    told
}

/// Returns the number of workers that have run tasks.
fn busy(run: &Run<()>) -> usize {
    let mut by: Vec<_> = run.schedule.steps().iter().map(|step| step.by.to_string()).collect();
    by.retain(|by| by.starts_with("worker"));
    by.sort();
    by.dedup();
    by.len()
}

/// Runs trees with 1, 2, 5 and 20 workers, and several seeds.
fn each<Y: Policy<Sim> + 'static>(policy: impl Fn() -> Y + Copy + 'static) {
    for workers in [1, 2, 5, 20] {
        let runner = Runner::new().workers(workers).policy(policy);
        for seed in 0..2 {
            let _ = grown(&runner, seed, 6, false);
            let shared = grown(&runner, seed, 6, true);
            assert!(busy(&shared) > workers / 2, "{} of {workers} work", busy(&shared));
        }
    }
}

macro_rules! named {
    ($($test:ident: $name:literal),* $(,)?) => {
        $(#[test]
        fn $test() {
            each(|| named($name));
        })*
    };
}

named! {
    fifo_steal_half: "fifo",
    fifo_steal_one: "fifo/steal-one",
    fifo_neighbours: "fifo/neighbours-13",
    lifo_steal_half: "lifo",
    lifo_steal_one: "lifo/steal-one",
    lifo_neighbours: "lifo/neighbours-2",
    stochastic: "stochastic",
    switch: "switch-3",
    reverse: "reverse-2/neighbours-2",
    adaptive: "adaptive",
    lifo_slot: "lifo-slot",
}

#[test]
fn deadlines() {
    each(|| Ranked::new(Deadlines { usual_ns: 10_000 }, 4, 1 << 14));
}

#[test]
fn priorities() {
    each(|| Ranked::new(Aging { level_ns: 1_000, usual: 1 }, 1, 1 << 14));
}

#[test]
fn stages() {
    each(|| Staged::new(2, 1 << 14));
}

/// Most tasks have no room in their worker's queue.
#[test]
fn what_spills() {
    each(|| Spill::new(fifo(), 1, 1 << 14));
    each(|| Spill::locked(fifo(), 1 << 14));
    each(|| Tickets::new(fifo(), 1, Share::Half, 4));
    each(|| Requests::new(fifo(), 20));
    each(|| Requests::sticky(fifo(), 2));
}

/// Most tasks have no room in any queue: then the thread that spawns a task runs it.
#[test]
fn what_is_refused_is_run() {
    each(|| Scheme::new(Fifo, Steal { share: Share::Half }).capacity(2, 2));
}

#[test]
fn sixteen_thousand_tasks() {
    for name in ["lifo", "fifo/neighbours-13"] {
        let runner = Runner::new().workers(5).policy(move || named(name));
        assert_eq!(busy(&grown(&runner, 1, 13, true)), 5);
    }
}

/// A run is over when no thread has work, however long a timer has kept it: so a resting worker
/// must not search meanwhile.
#[test]
fn who_has_nothing_to_do_rests() {
    for workers in [1, 5, 20] {
        let run = Runner::new().workers(workers).run(1, |pool| {
            pool.spawn(|| ()).join().expect("it does not panic");
            pool.spawn_future(sleep(Duration::from_millis(1))).join().expect("it does not panic");
            let before = pool.stats().searches;
            pool.spawn_future(sleep(Duration::from_secs(30))).join().expect("it does not panic");
            pool.stats().searches - before
        });
        let searches = run.unwrap_or_else(|failure| panic!("{failure}")).returned;
        assert!(searches < 10 * workers as u64, "{searches} searches of {workers} workers");
    }
}

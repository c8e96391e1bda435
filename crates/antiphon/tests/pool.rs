//! Pools: a spawned task runs once, and its waiter continues.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon::pool::{
    self, Pool,
    policy::{Aging, Fifo, InBlocks, Lazy, Lifo, Policy, Ranked, Scheme, Share, Steal},
};
use antiphon_linux::Linux;
use antiphon_runtime::sched::{Others, Own};
use antiphon_sync::queue::{Deque, Full, Item, RelaxedQueue, Stolen};

const HALF: Steal = Steal { share: Share::Half };

fn small() -> Scheme<Fifo, Steal> {
    Scheme::new(Fifo, HALF).capacity(4, 4)
}

#[test]
fn what_is_spawned_from_outside_is_run_once() {
    for threads in [1, 2, 8] {
        let pool = Pool::new(threads).unwrap();
        let handles: Vec<_> = (0..20_000_u64).map(|number| pool.spawn(move || number)).collect();
        let sum: u64 = handles.into_iter().map(|handle| handle.join().unwrap()).sum();
        assert_eq!(sum, 20_000 * 19_999 / 2);
    }
}

/// 64-bit: the sum of the results of two tasks, and of theirs.
fn fibonacci<Y: Policy<Linux>>(pool: &'static Pool<Y>, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let other = pool.spawn(move || fibonacci(pool, n - 2));
    fibonacci(pool, n - 1) + other.join().unwrap()
}

#[test]
fn workers_that_wait_run_others() {
    let pool: &'static Pool = Box::leak(Box::new(Pool::new(2).unwrap()));
    assert_eq!(pool.spawn(move || fibonacci(pool, 16)).join().unwrap(), 987);
    assert_eq!(fibonacci(pool, 14), 377);
}

/// If queues are full, the spawning thread runs the task: nothing waits for room.
#[test]
fn full_queues_slow_down_who_spawns() {
    let pool: &'static _ = Box::leak(Box::new(Pool::with_policy(2, small()).unwrap()));
    assert_eq!(pool.spawn(move || fibonacci(pool, 15)).join().unwrap(), 610);
    let handles: Vec<_> = (0..10_000_u64).map(|number| pool.spawn(move || number)).collect();
    assert_eq!(handles.into_iter().map(|handle| handle.join().unwrap()).sum::<u64>(), 49_995_000);
}

/// The only worker of a small pool is busy until a task was refused because there was no room.
#[test]
fn a_task_that_has_no_room_comes_back() {
    let pool = Pool::with_policy(1, small()).unwrap();
    let (held, go) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (holds, waits) = (held.clone(), go.clone());
    let busy = pool.spawn(move || {
        holds.store(1, Relaxed);
        while waits.load(Relaxed) == 0 {
            std::thread::yield_now();
        }
    });
    while held.load(Relaxed) == 0 {
        std::thread::yield_now();
    }
    let mut handles = Vec::new();
    let refused = loop {
        let number = handles.len();
        match pool.try_spawn(move || number) {
            Ok(handle) => handles.push(handle),
            Err(refused) => break refused,
        }
    };
    let again = refused.try_spawn(&pool).unwrap_err();
    assert_eq!(again.run().unwrap(), handles.len());
    let dropped = pool.try_spawn(|| panic!("it is not to be run")).unwrap_err();
    drop(dropped);
    go.store(1, Relaxed);
    busy.join().unwrap();
    for (number, handle) in handles.into_iter().enumerate() {
        assert_eq!(handle.join().unwrap(), number);
    }
}

/// The waiters are a thread outside, a worker of the pool, and a worker of another pool.
#[test]
fn who_waits_for_room_runs_nothing_out_of_turn() {
    static POOL: std::sync::OnceLock<Pool<Scheme<Fifo, Steal>>> = std::sync::OnceLock::new();
    let pool = POOL.get_or_init(|| Pool::with_policy(2, small()).unwrap());
    let put = |count: u64| {
        let me = std::thread::current().id();
        let spawn = |number| {
            let work = move || (number, std::thread::current().id());
            pool.try_spawn(work).unwrap_or_else(|refused| refused.wait(pool))
        };
        let handles: Vec<_> = (0..count).map(spawn).collect();
        let done = handles.into_iter().map(|handle| handle.join().unwrap());
        done.fold((0, false), |(sum, here), (number, by)| (sum + number, here || by == me))
    };
    assert_eq!(put(20_000), (199_990_000, false), "no task was run by who waits");
    let other = Pool::new(1).unwrap();
    assert_eq!(other.spawn(move || put(20_000)).join().unwrap(), (199_990_000, false));
    assert_eq!(pool.spawn(move || put(20_000)).join().unwrap().0, 199_990_000);
}

/// Also more tasks than there is room for, and spawned from inside the pool.
#[test]
fn many_are_spawned_together() {
    static POOL: std::sync::OnceLock<Pool<Scheme<Fifo, Steal>>> = std::sync::OnceLock::new();
    let pool = POOL.get_or_init(|| Pool::with_policy(2, small()).unwrap());
    let sum = |count: u64| {
        let handles = pool.spawn_many((0..count).map(|number| move || number));
        handles.into_iter().map(|handle| handle.join().unwrap()).sum::<u64>()
    };
    for count in [0, 1, 3, 10_000_u64] {
        let all = count * count.saturating_sub(1) / 2;
        assert_eq!(sum(count), all);
        assert_eq!(pool.spawn(move || sum(count)).join().unwrap(), all);
    }
}

/// A policy with room for one task, the newest: for each new task it hands back the one before.
struct Latest;

// SAFETY: tasks go into the worker's queue, and come out of it.
unsafe impl Policy<Linux> for Latest {
    type Queue = Deque<Linux>;
    type State = ();

    fn queue(&self) -> Self::Queue {
        Deque::new(2, 2)
    }

    fn push(
        &self,
        own: &Own<'_, Self::Queue>,
        (): &mut (),
        task: Item,
        _: Option<u64>,
    ) -> Result<(), Full> {
        let before = own.pop_front();
        own.push(task)?;
        before.map_or(Ok(()), |before| Err(Full(before)))
    }

    fn overflow(&self, _: &RelaxedQueue<Linux>, task: Item) -> Result<(), Full> {
        Err(Full(task))
    }

    fn pop(&self, own: &Own<'_, Self::Queue>, (): &mut ()) -> Option<Item> {
        own.pop_front()
    }

    fn steal(&self, _: &Own<'_, Self::Queue>, (): &mut (), _: &Others<'_, Self::Queue>) -> Stolen {
        Stolen::Empty
    }
}

/// Each task runs where it is spawned, unless it is nested too deep.
#[test]
fn a_chain_of_short_tasks_needs_no_deep_stack() {
    fn link(pool: &'static Pool<Lazy<Scheme<Lifo, Steal>>>, left: u32, done: &'static AtomicU64) {
        done.fetch_add(1, Relaxed);
        if left > 0 {
            pool.spawn(move || link(pool, left - 1, done));
        }
    }
    static DONE: AtomicU64 = AtomicU64::new(0);
    let policy = Lazy::new(Scheme::new(Lifo, HALF), u64::MAX);
    let pool: &'static _ = Box::leak(Box::new(Pool::with_policy(2, policy).unwrap()));
    pool.spawn(move || link(pool, 200_000, &DONE));
    while DONE.load(Relaxed) <= 200_000 {
        std::thread::yield_now();
    }
}

#[test]
fn a_policy_may_give_back_another_task() {
    let pool: &'static _ = Box::leak(Box::new(Pool::with_policy(1, Latest).unwrap()));
    let sum = pool.spawn(|| {
        let handles: Vec<_> = (0..10_u32).map(|number| pool.try_spawn(move || number)).collect();
        handles.into_iter().map(|handle| handle.unwrap().join().unwrap()).sum::<u32>()
    });
    assert_eq!(sum.join().unwrap(), 45);
}

/// The only worker is busy while tasks of several levels are queued.
#[test]
fn the_most_urgent_is_run_first() {
    let policy = Ranked::new(Aging { usual: 1, level_ns: 60_000_000_000 }, 1, 64);
    let pool: &'static _ = Box::leak(Box::new(Pool::with_policy(1, policy).unwrap()));
    let order = Arc::new(Mutex::new(Vec::new()));
    let handles = pool.spawn({
        let order = order.clone();
        move || {
            let ranks = [3, 1, 0, 2, 0];
            let spawn = |(number, rank)| {
                let order = order.clone();
                pool.spawn_ranked(rank, move || order.lock().unwrap().push((rank, number)))
            };
            (0..).zip(ranks).map(spawn).collect::<Vec<_>>()
        }
    });
    for handle in handles.join().unwrap() {
        handle.join().unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [(0, 2), (0, 4), (1, 1), (2, 3), (3, 0)]);
}

#[test]
fn workers_stay_where_they_are_put() {
    let cpus = pool::cpus();
    assert!(!cpus.is_empty());
    let last = cpus.last().unwrap().number;
    let pool = Pool::builder().cpus([last]).threads(2).name("here").build().unwrap();
    let seen =
        pool.spawn(move || (pool::cpus(), std::thread::current().name().unwrap().to_owned()));
    let (seen, name) = seen.join().unwrap();
    assert_eq!(seen.iter().map(|cpu| cpu.number).collect::<Vec<_>>(), [last]);
    assert!(["here-0", "here-1"].contains(&&*name));
    assert_eq!(Pool::builder().build().unwrap().threads(), cpus.len());
    let failed = Pool::builder().cpus([last, 1 << 20]).build().unwrap_err();
    assert!(failed.to_string().starts_with("CPU 1048576 can't be used"));
}

#[test]
fn a_scope_borrows_and_waits_for_what_its_tasks_spawn() {
    let pool = Pool::new(3).unwrap();
    for _ in 0..200 {
        let mut leaves = vec![0; 64];
        pool.scope(|scope| {
            for quarter in leaves.chunks_mut(16) {
                scope.spawn(move || {
                    for leaf in quarter {
                        scope.spawn(move || *leaf += 1);
                    }
                });
            }
        });
        assert!(leaves.iter().all(|&leaf| leaf == 1));
    }
}

#[test]
fn scopes_nest_in_tasks() {
    let pool = Pool::with_policy(2, Scheme::new(Lifo, HALF)).unwrap();
    let leaves = AtomicU64::new(0);
    fn tree(pool: &Pool<Scheme<Lifo, Steal>>, leaves: &AtomicU64, depth: u32) {
        if depth == 0 {
            leaves.fetch_add(1, Relaxed);
        } else {
            pool.scope(|scope| {
                scope.spawn(|| tree(pool, leaves, depth - 1));
                tree(pool, leaves, depth - 1);
            });
        }
    }
    tree(&pool, &leaves, 11);
    assert_eq!(leaves.load(Relaxed), 2048);
}

/// A task waits without the pool's knowledge for a task that it has spawned.
#[test]
fn what_is_shared_is_run_by_another() {
    let policy = Scheme::new(Lifo, HALF).queues(InBlocks::<16>::default());
    let pool = Arc::new(Pool::with_policy(2, policy).unwrap());
    let (inside, (sender, receiver)) = (Arc::clone(&pool), channel());
    let waits = pool.spawn(move || {
        inside.spawn(move || sender.send(7).unwrap());
        inside.share();
        receiver.recv().unwrap()
    });
    assert_eq!(waits.join().unwrap(), 7);
}

#[test]
fn a_panic_reaches_who_waits() {
    let pool = Pool::new(2).unwrap();
    let told = pool.spawn(|| panic!("of the task")).join().unwrap_err();
    assert_eq!(told.downcast_ref(), Some(&"of the task"));
    let ran = AtomicU64::new(0);
    let scoped = catch_unwind(AssertUnwindSafe(|| {
        pool.scope(|scope| {
            scope.spawn(|| panic!("of the scope's"));
            for _ in 0..100 {
                scope.spawn(|| {
                    ran.fetch_add(1, Relaxed);
                });
            }
        });
    }));
    assert_eq!(scoped.unwrap_err().downcast_ref(), Some(&"of the scope's"));
    assert_eq!(ran.load(Relaxed), 100, "the others are run all the same");
    assert_eq!(pool.spawn(|| 1).join().unwrap(), 1, "and so are later ones");
}

#[test]
fn a_scope_whose_own_work_panics_waits_for_its_tasks() {
    let pool = Pool::new(2).unwrap();
    let ran = AtomicU64::new(0);
    let scoped = catch_unwind(AssertUnwindSafe(|| {
        pool.scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                ran.fetch_add(1, Relaxed);
            });
            panic!("of the work");
        });
    }));
    assert_eq!(scoped.unwrap_err().downcast_ref(), Some(&"of the work"));
    assert_eq!(ran.load(Relaxed), 1);
}

#[test]
fn a_dropped_pool_runs_what_is_there() {
    let ran = Arc::new(AtomicU64::new(0));
    let pool = Pool::new(2).unwrap();
    for _ in 0..10_000 {
        let ran = ran.clone();
        drop(pool.spawn(move || ran.fetch_add(1, Relaxed)));
    }
    drop(pool);
    assert_eq!(ran.load(Relaxed), 10_000);
    assert_eq!(Arc::strong_count(&ran), 1, "no task is left");
}

/// A task may own the last reference to its pool.
#[test]
fn a_worker_may_drop_its_own_pool() {
    let pool = Arc::new(Pool::new(2).unwrap());
    let own = pool.clone();
    let task = pool.spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        drop(own);
        7
    });
    drop(pool);
    assert_eq!(task.join().unwrap(), 7);
}

/// Two pools of one worker each, whose tasks wait for each other's.
#[test]
fn a_worker_that_waits_for_another_pool_runs_its_own() {
    let (here, there) = (Arc::new(Pool::new(1).unwrap()), Arc::new(Pool::new(1).unwrap()));
    let back = here.clone();
    let answer = here.spawn(move || {
        let asked = there.spawn(move || back.spawn(|| 20).join().unwrap() + 1);
        2 * asked.join().unwrap()
    });
    assert_eq!(answer.join().unwrap(), 42);
}

#[test]
fn a_task_that_nobody_waits_for_drops_what_it_returns() {
    let (pool, seen) = (Pool::new(1).unwrap(), Arc::new(()));
    let returned = seen.clone();
    drop(pool.spawn(move || returned));
    let kept = seen.clone();
    let finished = pool.spawn(move || kept);
    while !finished.is_finished() {
        std::thread::yield_now();
    }
    drop(finished);
    drop(pool);
    assert_eq!(Arc::strong_count(&seen), 1);
}

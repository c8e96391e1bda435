//! Fork and join on pools: each closure runs once, on one thread or several.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use antiphon::pool::{
    self, Pool,
    policy::{Fifo, InBlocks, Lifo, Policy, Scheme, Share, Steal},
};
use antiphon_linux::Linux;

fn fibonacci(n: u32) -> u64 {
    if n < 2 {
        return n.into();
    }
    let (one, other) = pool::join(|| fibonacci(n - 1), || fibonacci(n - 2));
    one + other
}

/// Runs `leaf` on each leaf of a tree, and returns the number of leaves.
fn tree(depth: u32, leaf: &(impl Fn(u32) + Sync)) -> u32 {
    if depth == 0 {
        leaf(depth);
        return 1;
    }
    let (one, other) = pool::join(|| tree(depth - 1, leaf), || tree(depth - 1, leaf));
    one + other
}

#[test]
fn a_tree_of_forks_has_all_its_leaves() {
    for threads in [1, 2, 8] {
        let pool = Pool::new(threads).unwrap();
        assert_eq!(pool.run(|| fibonacci(27)), 196_418);
    }
    // The caller is no worker of any pool.
    assert_eq!(fibonacci(20), 6_765);
}

#[test]
fn leaves_that_take_long_are_run_by_several() {
    are_run_by_several(Pool::new(4).unwrap());
}

/// A forked task is not kept back in a block that is being filled.
#[test]
fn leaves_are_run_by_several_where_tasks_are_in_blocks() {
    let policy = Scheme::new(Lifo, Steal { share: Share::Half }).queues(InBlocks::<16>::default());
    are_run_by_several(Pool::with_policy(4, policy).unwrap());
}

fn are_run_by_several<Y: Policy<Linux>>(pool: Pool<Y>) {
    let threads = Mutex::new(HashSet::new());
    let leaves = pool.run(|| {
        tree(7, &|_| {
            thread::sleep(Duration::from_millis(2));
            threads.lock().unwrap().insert(thread::current().id());
        })
    });
    assert_eq!(leaves, 128);
    assert!(threads.lock().unwrap().len() > 1);
}

/// A pool that has no room for a fork keeps it.
#[test]
fn a_small_pool_forks_all_the_same() {
    let policy = Scheme::new(Fifo, Steal { share: Share::One }).capacity(1, 1);
    let pool = Pool::with_policy(3, policy).unwrap();
    let runs = AtomicU32::new(0);
    for _ in 0..20 {
        let leaves = pool.run(|| {
            tree(6, &|_| {
                thread::sleep(Duration::from_micros(100));
                runs.fetch_add(1, Relaxed);
            })
        });
        assert_eq!(leaves, 64);
    }
    assert_eq!(runs.into_inner(), 20 * 64);
}

#[test]
fn what_forks_borrow_is_theirs_until_they_are_done() {
    fn double(numbers: &mut [u64]) {
        if let [number] = numbers {
            *number *= 2;
            thread::sleep(Duration::from_micros(20));
        } else if !numbers.is_empty() {
            let (left, right) = numbers.split_at_mut(numbers.len() / 2);
            pool::join(|| double(left), || double(right));
        }
    }
    let pool = Pool::new(3).unwrap();
    let mut numbers: Vec<_> = (0..1_000).collect();
    pool.run(|| double(&mut numbers));
    assert!(numbers.iter().enumerate().all(|(place, &number)| number == 2 * place as u64));
}

/// Sleeps, so that the forks around it become tasks, and panics if it is the `at`th leaf.
fn fragile(depth: u32, at: u32, place: u32, done: &AtomicU32) {
    if depth == 0 {
        thread::sleep(Duration::from_micros(300));
        assert!(place != at, "leaf {at}");
        done.fetch_add(1, Relaxed);
        return;
    }
    let half = 1 << (depth - 1);
    pool::join(
        || fragile(depth - 1, at, place, done),
        || fragile(depth - 1, at, place + half, done),
    );
}

#[test]
fn a_panic_comes_out_of_the_fork() {
    let pool = Pool::new(3).unwrap();
    for at in 0..16 {
        let done = AtomicU32::new(0);
        let ran = catch_unwind(AssertUnwindSafe(|| pool.run(|| fragile(4, at, 0, &done))));
        let panic = ran.unwrap_err();
        assert_eq!(panic.downcast_ref::<String>(), Some(&format!("leaf {at}")));
        // No task is still running: the count stays.
        let count = done.load(Relaxed);
        assert!(count < 16);
        thread::sleep(Duration::from_millis(1));
        assert_eq!(done.load(Relaxed), count);
        // The workers still exist.
        assert_eq!(pool.run(|| fibonacci(10)), 55);
    }
}

#[test]
fn forks_spawn_and_tasks_fork() {
    let pool = Pool::new(2).unwrap();
    let sum = pool.run(|| {
        let (one, other) = pool::join(
            || pool.spawn(|| fibonacci(15)).join().unwrap(),
            || pool.run(|| fibonacci(16)),
        );
        one + other
    });
    assert_eq!(sum, 610 + 987);
    let other = Pool::new(2).unwrap();
    assert_eq!(pool.run(|| other.run(|| fibonacci(18))), 2_584);
}

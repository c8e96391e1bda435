//! Stages: each item is served once, no more items exist than there is room for, and stages end.

use std::mem::forget;
use std::panic::panic_any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use antiphon::fiber::{STACK_BYTES, is_fiber, sleep, yield_now};
use antiphon::pool::{
    Builder, Pool,
    policy::{Fifo, Scheme, Share, Steal},
};
use antiphon::stage::{Inlet, Stage};
use antiphon::{Latch, Semaphore};

fn fibers(threads: usize) -> Builder {
    // SAFETY: no fiber waits while it makes a thread-local.
    unsafe { Pool::builder().threads(threads).fibers(STACK_BYTES) }
}

fn pool(threads: usize) -> Arc<Pool> {
    Arc::new(fibers(threads).build().expect("fibers"))
}

/// From one stage to two, and from these to one.
#[test]
fn each_item_goes_each_way_once() {
    const ITEMS: usize = 10_000;
    for threads in [1, 2] {
        let pool = pool(threads);
        let seen: Arc<Vec<AtomicUsize>> =
            Arc::new((0..2 * ITEMS).map(|_| AtomicUsize::new(0)).collect());
        let counts = seen.clone();
        let (collect, collects) = Stage::builder("collect").room(4).on(&pool, move |at: usize| {
            counts[at].fetch_add(1, Relaxed);
        });
        let way = |offset: usize, width| {
            let collect = collect.clone();
            let serve = move |at| collect.send(offset + at);
            Stage::builder("way").room(8).width(width).on(&pool, serve)
        };
        let ((left, lefts), (right, rights)) = (way(0, 1), way(ITEMS, 3));
        drop(collect);
        let (split, splits) = Stage::builder("split").room(2).on(&pool, move |at| {
            assert!(is_fiber());
            left.send(at);
            right.send(at);
        });
        thread::scope(|scope| {
            for part in 0..2 {
                let split = split.clone();
                let items = part * ITEMS / 2..(part + 1) * ITEMS / 2;
                scope.spawn(move || items.for_each(|at| split.send(at)));
            }
            drop(split);
        });
        for (stage, served) in [(splits, 1), (lefts, 1), (rights, 1), (collects, 2)] {
            let stats = stage.join().expect("no panic");
            assert_eq!(stats.served, served * ITEMS as u64);
            assert_eq!((stats.waiting, stats.servers, stats.panicked), (0, 0, 0));
        }
        assert!(seen.iter().all(|seen| seen.load(Relaxed) == 1));
    }
}

#[test]
fn one_that_is_one_wide_keeps_the_order() {
    let pool = pool(2);
    let (order, now) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let orders = order.clone();
    let (inlet, stage) = Stage::builder("order").room(4).width(1).on(&pool, move |at: u32| {
        assert_eq!(now.fetch_add(1, Relaxed), 0, "alone");
        if at.is_multiple_of(7) {
            yield_now();
        }
        orders.lock().unwrap().push(at);
        now.fetch_sub(1, Relaxed);
    });
    (0..5_000).for_each(|at| inlet.send(at));
    drop(inlet);
    stage.join().expect("no panic");
    assert!(order.lock().unwrap().iter().copied().eq(0..5_000));
}

/// A slow stage at the end slows down the sender; no more items are inside than there is room for.
#[test]
fn what_is_slow_is_waited_for_up_to_the_beginning() {
    const BOUND: usize = (4 + 1) + (2 + 2);
    let pool = pool(2);
    let (sent, done) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let dones = done.clone();
    let (last, lasts) = Stage::builder("last").room(4).width(1).on(&pool, move |()| {
        sleep(Duration::from_micros(50));
        dones.fetch_add(1, Release);
    });
    let (first, firsts) =
        Stage::builder("first").room(2).width(2).on(&pool, move |()| last.send(()));
    for _ in 0..500 {
        first.send(());
        let sent = sent.fetch_add(1, Relaxed) + 1;
        // The sender that has been served may have been counted meanwhile.
        assert!(sent <= done.load(Acquire) + BOUND + 1, "{sent} were sent");
    }
    drop(first);
    let stats = firsts.join().expect("no panic");
    assert!(stats.full > 0, "the sender had to wait");
    assert_eq!(lasts.join().expect("no panic").served, 500);
}

/// The servers wait for each other, on one thread: as many must run as the stage is wide.
#[test]
fn it_serves_as_many_at_a_time_as_it_is_wide() {
    const WIDTH: usize = 8;
    let pool = pool(1);
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (nows, mosts, go_on) = (now.clone(), most.clone(), Arc::new(Latch::new(WIDTH as u32)));
    let (inlet, stage) = Stage::builder("wide").room(16).width(WIDTH).on(&pool, move |()| {
        mosts.fetch_max(nows.fetch_add(1, Relaxed) + 1, Relaxed);
        go_on.count_down(1);
        go_on.wait();
        yield_now();
        nows.fetch_sub(1, Relaxed);
    });
    (0..500).for_each(|_| inlet.send(()));
    drop(inlet);
    stage.join().expect("no panic");
    assert_eq!((now.load(Relaxed), most.load(Relaxed)), (0, WIDTH));
}

#[test]
fn who_does_not_wait_has_its_item_back() {
    let pool = pool(1);
    let gate = Arc::new(Semaphore::new(0));
    let (gates, began) = (gate.clone(), Arc::new(Latch::new(1)));
    let begins = began.clone();
    let (inlet, stage) = Stage::builder("shut").room(2).width(1).on(&pool, move |_: u32| {
        begins.count_down(1);
        gates.acquire().forget();
    });
    inlet.send(0);
    began.wait();
    // One item is served, and two wait.
    assert_eq!(inlet.try_send(1), Ok(()));
    assert_eq!(inlet.send_timeout(2, Duration::from_millis(1)), Ok(()));
    assert_eq!(inlet.try_send(3), Err(3));
    assert_eq!(inlet.send_timeout(4, Duration::from_millis(1)), Err(4));
    let stats = inlet.stats();
    assert_eq!((stats.waiting, stats.room, stats.servers, stats.full), (2, 2, 1, 1));
    gate.add_permits(3).expect("few");
    drop(inlet);
    assert_eq!(stage.join().expect("no panic").served, 3);
}

#[test]
fn a_panic_is_its_items() {
    let pool = pool(2);
    let (inlet, stage) = Stage::builder("odd").on(&pool, |at: u32| {
        assert!(at.is_multiple_of(2), "odd: {at}");
    });
    (0..100).for_each(|at| inlet.send(at));
    let stats = loop {
        let stats = inlet.stats();
        if stats.served == 100 {
            break stats;
        }
        thread::yield_now();
    };
    assert_eq!(stats.panicked, 50);
    drop(inlet);
    let panic = stage.join().expect_err("some have panicked");
    assert!(panic.downcast::<String>().expect("a message").starts_with("odd: "));
}

/// Only the first panic is kept; the payload of each panics when it is dropped, too.
#[test]
fn what_others_have_panicked_with_is_dropped() {
    const ITEMS: usize = 10;
    struct Bomb(Arc<AtomicUsize>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
            if !thread::panicking() {
                panic_any(());
            }
        }
    }
    let (pool, dropped) = (pool(1), Arc::new(AtomicUsize::new(0)));
    let last = Bomb(dropped.clone());
    let drops = dropped.clone();
    let (inlet, stage) = Stage::builder("bombs").on(&pool, move |()| {
        let _with = &last;
        panic_any(Bomb(drops.clone()));
    });
    (0..ITEMS).for_each(|_| inlet.send(()));
    drop(inlet);
    // The stage ends, although its closure panics when it is dropped.
    forget(stage.join().expect_err("all have panicked"));
    // All payloads but the first were dropped, and the closure.
    assert_eq!(dropped.load(Relaxed), ITEMS);
}

/// Both stages together have more work than the one thread can do.
#[test]
fn by_their_weights_they_have_shares() {
    const ITEMS: usize = 400;
    let policy = Scheme::new(Fifo, Steal { share: Share::Half });
    // Without backup threads, no seat changes hands: tasks that a thread without a seat makes ready
    // would come from outside.
    let pool = Arc::new(fibers(1).spares(0).build_with(policy).expect("fibers"));
    // A task from outside waits for 61 tasks of the worker's own.
    let (both_began, go_on) = (Arc::new(Latch::new(2)), Arc::new(Latch::new(1)));
    // The number of items of each stage served when all items of one were.
    let counts: Arc<[AtomicUsize; 2]> = Arc::default();
    let first: Arc<Mutex<Option<[usize; 2]>>> = Arc::default();
    let stages = [("light", 1), ("heavy", 4)].map(|(name, weight)| {
        let me = usize::from(weight > 1);
        let (both_began, go_on) = (both_began.clone(), go_on.clone());
        let (counts, first) = (counts.clone(), first.clone());
        let builder = Stage::builder(name).room(ITEMS).width(1).weight(weight);
        let (inlet, stage) = builder.on(&pool, move |()| {
            if counts[me].load(Relaxed) == 0 {
                both_began.count_down(1);
                go_on.wait();
            }
            let began = Instant::now();
            while began.elapsed() < Duration::from_micros(25) {}
            if counts[me].fetch_add(1, Relaxed) + 1 == ITEMS {
                let served = [0, 1].map(|stage| counts[stage].load(Relaxed));
                first.lock().unwrap().get_or_insert(served);
            }
        });
        (0..ITEMS).for_each(|_| inlet.send(()));
        stage
    });
    both_began.wait();
    go_on.count_down(1);
    stages.into_iter().for_each(|stage| _ = stage.join().expect("no panic"));
    let [light, heavy] = first.lock().unwrap().expect("one was the first");
    assert!(2 * light < heavy, "{light} and {heavy}");
}

/// Under a policy that prefers the newest task: that is the next turn of the stage whose turn has
/// just ended.
#[test]
fn one_that_has_always_items_leaves_others_their_turns() {
    const ITEMS: usize = 400;
    let pool = Arc::new(fibers(1).spares(0).build().expect("fibers"));
    let (served, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counts, sees) = (served.clone(), seen.clone());
    let look = move |()| sees.store(counts.load(Relaxed), Relaxed);
    let (other, others) = Stage::builder("other").on(&pool, look);
    let go_on = Arc::new(Latch::new(1));
    let goes_on = go_on.clone();
    let (inlet, stage) = Stage::builder("one").room(ITEMS).width(1).on(&pool, move |()| {
        if served.load(Relaxed) == 0 {
            goes_on.wait();
            other.send(());
        }
        let began = Instant::now();
        while began.elapsed() < Duration::from_micros(50) {}
        served.fetch_add(1, Relaxed);
    });
    (0..ITEMS).for_each(|_| inlet.send(()));
    go_on.count_down(1);
    drop(inlet);
    stage.join().expect("no panic");
    others.join().expect("no panic");
    assert!(seen.load(Relaxed) < ITEMS, "the other had no turn before");
}

/// Ten stages with a pool each, and one pool for the stage that they share.
#[test]
fn pools_are_joined_by_stages() {
    let common = pool(1);
    let sum = Arc::new(AtomicUsize::new(0));
    let sums = sum.clone();
    let (add, adds) = Stage::builder("add").on(&common, move |number: usize| {
        sums.fetch_add(number, Relaxed);
    });
    let silos: Vec<(Inlet<usize>, Stage)> = (0..10)
        .map(|_| {
            let add = add.clone();
            // Only the stage owns this pool.
            Stage::builder("silo").room(4).on(&pool(1), move |number| add.send(number))
        })
        .collect();
    drop(add);
    (0..1_000).for_each(|number| silos[number % 10].0.send(number));
    for (inlet, stage) in silos {
        drop(inlet);
        assert_eq!(stage.join().expect("no panic").served, 100);
    }
    adds.join().expect("no panic");
    assert_eq!(sum.load(Relaxed), 499_500);
}

#[test]
fn what_serves_is_dropped_when_it_is_over() {
    struct Says(Arc<AtomicBool>);
    impl Drop for Says {
        fn drop(&mut self) {
            self.0.store(true, Release);
        }
    }
    let (pool, dropped) = (pool(2), Arc::new(AtomicBool::new(false)));
    for items in [0, 1, 100] {
        dropped.store(false, Relaxed);
        let says = Says(dropped.clone());
        let (inlet, stage) = Stage::builder("says").on(&pool, move |()| _ = &says);
        (0..items).for_each(|_| inlet.send(()));
        assert!(!dropped.load(Acquire));
        drop(inlet);
        // Also in a fiber.
        let stats = pool.spawn(move || stage.join().expect("no panic")).join().expect("no panic");
        assert_eq!(stats.served, items);
        assert!(dropped.load(Acquire));
    }
}

/// Each stage owns the inlet of the next, and they end one after the other, not nested.
#[test]
fn a_long_line_of_stages_ends() {
    const STAGES: usize = 3_000;
    for in_fiber in [false, true] {
        let pool = pool(1);
        let (mut inlet, last) = Stage::builder("last").room(1).width(1).on(&pool, |(): ()| {});
        for _ in 0..STAGES {
            let next = inlet;
            let serve = move |()| next.send(());
            inlet = Stage::builder("stage").room(1).width(1).on(&pool, serve).0;
        }
        inlet.send(());
        while last.stats().served == 0 {
            thread::yield_now();
        }
        if in_fiber {
            pool.spawn(|| drop(inlet)).join().expect("no panic");
        } else {
            drop(inlet);
        }
        assert_eq!(last.join().expect("no panic").served, 1);
    }
}

#[test]
#[should_panic(expected = "needs a pool of fibers")]
fn without_fibers_there_are_none() {
    let pool = Arc::new(Pool::new(1).expect("a thread"));
    let _stage = Stage::builder("threads").on(&pool, |()| {});
}

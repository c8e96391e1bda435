//! Futures that fibers and threads wait for.

use std::cell::Cell;
use std::future::{Future, poll_fn, ready};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use antiphon::Latch;
use antiphon::fiber::{self, block_on};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

use super::{fibers, tokio};

/// Polls the future within the runtime, and keeps no guard of the runtime while it waits.
async fn within<F: Future>(handle: &Handle, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let _within = handle.enter();
        future.as_mut().poll(context)
    })
    .await
}

#[test]
fn what_is_ready_is_had_at_once() {
    assert_eq!(block_on(ready(7)), 7);
    let pool = fibers(1);
    assert_eq!(pool.spawn(|| block_on(async { ready(7).await })).join().unwrap(), 7);
}

/// All fibers are on one thread, so each is suspended where it waits.
#[test]
fn fibers_of_a_thread_wait_for_each_others_futures() {
    let pool = fibers(1);
    let (mut before, first) = oneshot::channel::<u32>();
    let mut fibers = Vec::new();
    for _ in 0..1000 {
        let (sender, receiver) = oneshot::channel();
        fibers.push(pool.spawn(move || {
            assert!(fiber::is_fiber());
            before.send(block_on(receiver).unwrap() + 1).unwrap();
        }));
        before = sender;
    }
    before.send(0).unwrap();
    assert_eq!(block_on(first).unwrap(), 1000);
    fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
}

#[test]
fn a_fiber_waits_for_what_it_has_spawned_there() {
    let (pool, runtime) = (fibers(1), tokio(1));
    let handles: Vec<_> = (0..100)
        .map(|number: u64| {
            let handle = runtime.handle().clone();
            pool.spawn(move || {
                let slept = handle.spawn(async move {
                    tokio::time::sleep(Duration::from_micros(number)).await;
                    number
                });
                block_on(slept).unwrap()
            })
        })
        .collect();
    let sum: u64 = handles.into_iter().map(|handle| handle.join().unwrap()).sum();
    assert_eq!(sum, 4950);
}

/// Shows why a fiber must not keep a guard while it waits: the thread then has another fiber's
/// guard, and Tokio panics if guards are not dropped in reverse order.
#[test]
fn guards_that_are_kept_are_those_of_other_fibers_too() {
    let (pool, runtime) = (fibers(1), tokio(1));
    let (first, second) = (Arc::new(Latch::new(1)), Arc::new(Latch::new(1)));
    let entered = |waits: Arc<Latch>, opens: Arc<Latch>| {
        let handle = runtime.handle().clone();
        pool.spawn(move || {
            let found = Handle::try_current().is_ok();
            let within = handle.enter();
            opens.count_down(1);
            waits.wait();
            drop(within);
            found
        })
    };
    // Each fiber waits for the next, which has begun by then, and the last fiber for this thread.
    let last = Arc::new(Latch::new(1));
    let begins_first = entered(second.clone(), first.clone());
    first.wait();
    let begins_second = entered(last.clone(), second.clone());
    assert!(begins_first.join().is_err(), "dropped out of order");
    last.count_down(1);
    assert!(begins_second.join().unwrap(), "it was within when it began");
}

#[test]
fn a_future_is_polled_within_the_runtime_by_several_fibers_of_a_thread() {
    let (pool, runtime) = (fibers(1), tokio(1));
    let handles: Vec<_> = (1..=50)
        .map(|number| {
            let handle = runtime.handle().clone();
            pool.spawn(move || {
                let time = Duration::from_micros(number * 100);
                let begun = Instant::now();
                // The future looks for the runtime's timer when it is made and polled.
                block_on(within(&handle, async move { tokio::time::sleep(time).await }));
                assert!(begun.elapsed() >= time);
                assert!(Handle::try_current().is_err());
            })
        })
        .collect();
    handles.into_iter().for_each(|handle| handle.join().unwrap());
}

#[test]
fn a_future_that_wakes_itself_lets_others_run() {
    let pool = fibers(1);
    let told = Arc::new(AtomicU32::new(0));
    let waits = pool.spawn({
        let told = told.clone();
        move || {
            block_on(poll_fn(|context| {
                context.waker().wake_by_ref();
                if told.load(Relaxed) == 0 { Poll::Pending } else { Poll::Ready(()) }
            }));
        }
    });
    pool.spawn(move || told.store(1, Relaxed)).join().unwrap();
    waits.join().unwrap();
}

/// A waker that outlives its wait wakes no task, or wakes one spuriously.
#[test]
fn wakers_may_come_late_and_be_the_same() {
    let kept = Cell::new(None::<Waker>);
    for round in 0..100 {
        let mut polls = 0;
        block_on(poll_fn(|context| {
            polls += 1;
            let waker = context.waker().clone();
            assert!(waker.will_wake(context.waker()));
            if let Some(late) = kept.replace(Some(waker)) {
                late.wake();
            }
            if polls > round % 3 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }));
    }
}

/// Fibers and threads acquire permits of one Tokio semaphore, as futures.
#[test]
fn no_wake_is_lost_between_threads() {
    const EACH: u32 = 2_000;
    let pool = fibers(2);
    let (semaphore, inside) = (Arc::new(Semaphore::new(2)), Arc::new(AtomicU32::new(0)));
    let work = || {
        let (semaphore, inside) = (semaphore.clone(), inside.clone());
        move || {
            for _ in 0..EACH {
                let permit = block_on(semaphore.acquire()).unwrap();
                assert!(inside.fetch_add(1, Relaxed) < 2);
                fiber::yield_now();
                inside.fetch_sub(1, Relaxed);
                drop(permit);
            }
        }
    };
    let fibers: Vec<_> = (0..6).map(|_| pool.spawn(work())).collect();
    thread::scope(|scope| (0..2).for_each(|_| _ = scope.spawn(work())));
    fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
}

/// The fiber unwinds, and the future is dropped with it.
#[test]
fn a_future_that_panics_is_a_panic_of_the_caller() {
    let pool = fibers(1);
    let (sender, receiver) = oneshot::channel::<()>();
    let panics = pool.spawn(|| {
        block_on(async move {
            let _dropped = receiver;
            tokio::task::yield_now().await;
            panic!("of the future's")
        })
    });
    assert!(panics.join().is_err());
    assert!(sender.is_closed());
}

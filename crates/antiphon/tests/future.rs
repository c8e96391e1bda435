//! Futures on pools: each is polled after a wake-up, by one worker at a time, and its handle
//! returns its output.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use antiphon::pool::{
    JoinHandle, Pool,
    policy::{Fifo, Scheme, Share, Steal},
};

/// Lets others run.
async fn pause() {
    let mut paused = false;
    poll_fn(|context| {
        if paused {
            return Poll::Ready(());
        }
        paused = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn futures_await_tasks_and_each_other() {
    for threads in [1, 3] {
        let pool = Arc::new(Pool::new(threads).unwrap());
        let sum = pool.spawn_future({
            let pool = pool.clone();
            async move {
                let all: Vec<JoinHandle<u64>> = (0..2_000)
                    .map(|number| {
                        let task = pool.spawn(move || number);
                        pool.spawn_future(async move {
                            pause().await;
                            task.await.unwrap()
                        })
                    })
                    .collect();
                let mut sum = 0;
                for handle in all {
                    sum += handle.await.unwrap();
                }
                sum
            }
        });
        assert_eq!(sum.join().unwrap(), 1_999_000);
    }
}

/// Counts the workers that poll at the same time.
#[test]
fn one_polls_at_a_time_and_no_wake_is_lost() {
    const WAKES: u32 = 20_000;
    let pool = Pool::new(3).unwrap();
    let (waker, said, polls) = (
        Arc::new(Mutex::new(None::<Waker>)),
        Arc::new(AtomicU32::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let future = {
        let (waker, said) = (waker.clone(), said.clone());
        poll_fn(move |context| {
            assert!(!polls.swap(true, Relaxed), "two at a time");
            *waker.lock().unwrap() = Some(context.waker().clone());
            let done = said.load(Relaxed) == 2 * WAKES;
            polls.store(false, Relaxed);
            if done { Poll::Ready(()) } else { Poll::Pending }
        })
    };
    let handle = pool.spawn_future(future);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..WAKES {
                    said.fetch_add(1, Relaxed);
                    let waker = waker.lock().unwrap().clone();
                    waker.inspect(Waker::wake_by_ref);
                }
            });
        }
    });
    handle.join().unwrap();
}

/// Wake-ups are never refused, although the queues have almost no room.
#[test]
fn a_small_pool_drives_many() {
    let policy = Scheme::new(Fifo, Steal { share: Share::Half }).capacity(2, 2);
    let pool = Pool::with_policy(2, policy).unwrap();
    let futures = (0..20_000_u64).map(|number| {
        pool.spawn_future(async move {
            pause().await;
            pause().await;
            number
        })
    });
    let handles: Vec<_> = futures.collect();
    let sum: u64 = handles.into_iter().map(|handle| handle.join().unwrap()).sum();
    assert_eq!(sum, 20_000 * 19_999 / 2);
}

#[test]
fn a_panic_is_the_handles() {
    let pool = Pool::new(1).unwrap();
    let handle = pool.spawn_future(async {
        pause().await;
        assert_eq!(thread::current().name(), None, "a worker has a name");
    });
    let panic = handle.join().unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("a worker has a name"));
    assert_eq!(pool.spawn_future(async { 1 }).join().unwrap(), 1);
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn a_handle_can_be_polled_and_then_waited_for() {
    let pool = Pool::new(1).unwrap();
    let go = Arc::new(AtomicBool::new(false));
    let waits = go.clone();
    let mut handle = pool.spawn(move || {
        while !waits.load(Relaxed) {
            thread::yield_now();
        }
        5
    });
    let flag = Arc::new(Flag(AtomicBool::new(false)));
    let waker = Waker::from(flag.clone());
    assert!(Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
    go.store(true, Relaxed);
    assert_eq!(handle.join().unwrap(), 5);
    // Dropped with a waker in it.
    let mut handle = pool.spawn(|| ());
    let _: Poll<_> = pin!(&mut handle).poll(&mut Context::from_waker(&waker));
    drop(handle);
}

/// Records that it was dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn a_future_that_nothing_can_wake_is_dropped() {
    let dropped = Arc::new(AtomicBool::new(false));
    let held = Dropped(dropped.clone());
    let pool = Pool::new(2).unwrap();
    let handle = pool.spawn_future(async move {
        let _held = held;
        std::future::pending::<()>().await;
    });
    assert!(handle.join().is_err());
    assert!(dropped.load(Relaxed));
}

#[test]
fn a_future_may_outlive_its_pool() {
    let dropped = Arc::new(AtomicBool::new(false));
    let held = Dropped(dropped.clone());
    let waker = Arc::new(Mutex::new(None::<Waker>));
    let pool = Pool::new(2).unwrap();
    let left = waker.clone();
    let mut polled = false;
    let handle = pool.spawn_future(poll_fn(move |context| {
        let _held = &held;
        assert!(!polled, "without a pool");
        polled = true;
        *left.lock().unwrap() = Some(context.waker().clone());
        Poll::<()>::Pending
    }));
    drop(pool);
    assert!(!dropped.load(Relaxed));
    waker.lock().unwrap().take().unwrap().wake();
    assert!(handle.join().is_err());
    assert!(dropped.load(Relaxed));
}

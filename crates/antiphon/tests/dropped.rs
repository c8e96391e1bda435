//! Pools that are dropped while tasks block or hog: all their tasks run, and the drop ends.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use antiphon::pool::{self, Pool};

/// Time given to the thread that drops a pool to begin the drop.
const BEGUN: Duration = Duration::from_millis(50);
/// Longer than any operation that should end.
const FOR_EVER: Duration = Duration::from_secs(60);

/// Drops the pool; fails if the drop does not end.
fn dropped<T: Send + 'static>(pool: T) {
    let (says, said) = mpsc::channel();
    thread::spawn(move || {
        drop(pool);
        says.send(())
    });
    said.recv_timeout(FOR_EVER).expect("the pool is at its end");
}

/// Queued tasks run, and also those that the hog spawns when all others have ended.
#[test]
fn a_pool_may_be_dropped_while_a_hog_has_no_seat() {
    let pool = Arc::new(Pool::new(1).unwrap());
    let (done, (says, said)) = (Arc::new(AtomicU64::new(0)), mpsc::channel());
    let (of, counts) = (Arc::downgrade(&pool), done.clone());
    let hog = pool.spawn(move || {
        let pool = of.upgrade().unwrap();
        pool::blocking(|| {
            drop(pool);
            says.send(()).unwrap();
            thread::sleep(Duration::from_millis(50));
        });
        of.upgrade().map(|pool| drop(pool.spawn(move || counts.fetch_add(1, Relaxed)))).is_some()
    });
    said.recv().unwrap();
    dropped(pool);
    let has_spawned = hog.join().unwrap();
    assert_eq!(done.load(Relaxed), u64::from(has_spawned));
}

/// A task without a seat wakes another, which only its pool can run, and waits for it.
#[test]
fn who_has_no_seat_may_wait_for_its_pool() {
    let pool = Pool::new(1).unwrap();
    let gate = Arc::new((AtomicBool::new(false), Mutex::new(None::<Waker>), Condvar::new()));
    let opens = gate.clone();
    let behind = pool.spawn_future(std::future::poll_fn(move |context| {
        let (is_open, waker, called) = &*gate;
        if is_open.load(Relaxed) {
            return Poll::Ready(42);
        }
        *waker.lock().unwrap() = Some(context.waker().clone());
        called.notify_all();
        Poll::Pending
    }));
    let blocks = pool.spawn(move || {
        let (is_open, waker, called) = &*opens;
        let waker = pool::blocking(|| {
            thread::sleep(2 * BEGUN);
            let polled = called.wait_while(waker.lock().unwrap(), |waker| waker.is_none());
            polled.unwrap().take().unwrap()
        });
        is_open.store(true, Relaxed);
        waker.wake();
        behind.join().unwrap()
    });
    dropped(pool);
    assert_eq!(blocks.join().unwrap(), 42);
}

/// The tasks that wait behind the blocked one also run.
#[test]
fn who_blocks_gives_its_seat_away_though_the_pool_is_dropped() {
    let pool = Pool::new(1).unwrap();
    let (ask, asked) = mpsc::channel();
    let waits = pool.spawn(move || {
        thread::sleep(2 * BEGUN);
        pool::blocking(|| asked.recv())
    });
    let sends = pool.spawn(move || ask.send(42).unwrap());
    dropped(pool);
    sends.join().unwrap();
    assert_eq!(waits.join().unwrap(), Ok(42));
}

/// The hog waits for a task behind it, and never calls the pool: the watchdog must run to the end.
#[test]
fn a_hog_is_seen_though_the_pool_is_dropped() {
    let pool = Pool::builder().threads(1).patience(2 * BEGUN).build().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let ends = over.clone();
    let hog = pool.spawn(move || {
        let begun = Instant::now();
        while !over.load(Relaxed) && begun.elapsed() < FOR_EVER {
            thread::yield_now();
        }
        over.load(Relaxed)
    });
    let behind = pool.spawn(move || ends.store(true, Relaxed));
    dropped(pool);
    behind.join().unwrap();
    assert!(hog.join().unwrap(), "what was behind the hog was run after it");
}

/// The last owner of the pool is one of its own tasks, which has no seat.
#[test]
fn a_task_that_blocks_may_drop_its_pool() {
    let pool = Arc::new(Pool::new(2).unwrap());
    let (gives, given) = mpsc::channel::<Arc<Pool>>();
    let (says, said) = mpsc::channel();
    drop(pool.spawn(move || {
        pool::blocking(|| drop(given.recv().unwrap()));
        says.send(()).unwrap();
    }));
    gives.send(pool).unwrap();
    said.recv_timeout(FOR_EVER).expect("it is at its end");
}

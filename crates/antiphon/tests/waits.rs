//! Barriers, semaphores and once cells, used as a Rust user does.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use antiphon::{
    Barrier, LazyLock, Once, OnceLock, Semaphore, guard::SemaphorePermit, guard::TooManyPermits,
};

#[test]
fn sizes_are_as_promised() {
    assert_eq!((size_of::<Barrier>(), size_of::<Semaphore>(), size_of::<Once>()), (32, 16, 4));
    assert_eq!(size_of::<OnceLock<u32>>(), 8);
}

#[test]
fn a_barrier_is_used_again_and_has_one_leader() {
    static BARRIER: Barrier = Barrier::new(4);
    let leaders = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    leaders.fetch_add(BARRIER.wait().is_leader().into(), Relaxed);
                }
            });
        }
    });
    assert_eq!(leaders.load(Relaxed), 100);
}

#[test]
fn who_gives_up_at_a_barrier_has_not_come() {
    let barrier = Barrier::new(2);
    assert!(barrier.wait_for(Duration::from_millis(1)).is_none());
    let in_time = || loop {
        if let Some(result) = barrier.wait_for(Duration::from_millis(1)) {
            break result.is_leader();
        }
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| barrier.wait().is_leader());
        assert_ne!(in_time(), other.join().expect("it does not panic"));
    });
}

#[test]
fn permits_are_given_back_unless_they_are_forgotten() {
    static SEMAPHORE: Semaphore = Semaphore::new(3);
    let permits = SEMAPHORE.acquire_many(2);
    assert_eq!((permits.num_permits(), SEMAPHORE.available_permits()), (2, 1));
    assert!(SEMAPHORE.try_acquire_many(2).is_none());
    assert!(SEMAPHORE.try_acquire_many_for(2, Duration::from_millis(2)).is_none());
    let one = SEMAPHORE.try_acquire().expect("one is left");
    assert!(SEMAPHORE.try_acquire().is_none());
    assert!(SEMAPHORE.try_acquire_for(Duration::from_millis(2)).is_none());
    drop(permits);
    one.forget();
    assert_eq!(SEMAPHORE.available_permits(), 2);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| SEMAPHORE.acquire_many(3).forget());
        assert_eq!(SEMAPHORE.add_permits(1), Ok(()));
        waiter.join().unwrap();
    });
    assert_eq!(SEMAPHORE.available_permits(), 0);
}

#[test]
fn permits_beyond_the_most_are_refused() {
    let semaphore = Semaphore::new(Semaphore::MAX_PERMITS);
    assert_eq!(semaphore.add_permits(1), Err(TooManyPermits));
    let permit = semaphore.acquire();
    assert_eq!(semaphore.add_permits(1), Ok(()));
    let given = panic::catch_unwind(AssertUnwindSafe(|| drop(permit)));
    assert!(given.is_err(), "its place was taken");
    assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS);
}

#[test]
fn a_value_is_made_once_and_dropped_once() {
    struct Counted<'a>(&'a AtomicU32);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let (made, dropped) = (AtomicU32::new(0), AtomicU32::new(0));
    let lock = OnceLock::new();
    assert!(lock.get().is_none());
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                lock.get_or_init(|| {
                    made.fetch_add(1, Relaxed);
                    thread::sleep(Duration::from_millis(2));
                    Counted(&dropped)
                });
            });
        }
    });
    assert!(lock.set(Counted(&dropped)).is_err());
    assert_eq!((made.load(Relaxed), dropped.load(Relaxed)), (1, 1), "the one that came too late");
    drop(lock);
    assert_eq!(dropped.load(Relaxed), 2);
    drop(OnceLock::<Counted>::new());
    assert_eq!(dropped.load(Relaxed), 2);
}

#[test]
fn a_value_may_be_taken_out_and_set_again() {
    let mut lock = OnceLock::from(Arc::new(1));
    *lock.get_mut().unwrap() = Arc::new(2);
    let taken = lock.take().unwrap();
    assert_eq!((Arc::strong_count(&taken), *taken), (1, 2));
    assert!(lock.get().is_none() && lock.take().is_none());
    assert_eq!(lock.get_or_try_init(|| Err("not now")), Err("not now"));
    assert_eq!(lock.set(Arc::new(3)), Ok(()));
    assert_eq!(lock.into_inner().as_deref(), Some(&3));
}

#[test]
fn a_value_whose_making_panics_is_made_by_the_next() {
    static TRIES: AtomicU32 = AtomicU32::new(0);
    static VALUE: LazyLock<u32> = LazyLock::new(|| match TRIES.fetch_add(1, Relaxed) {
        0 => panic::resume_unwind(Box::new(())),
        tries => tries,
    });
    assert!(panic::catch_unwind(|| *VALUE).is_err());
    assert_eq!((*VALUE, *VALUE, TRIES.load(Relaxed)), (1, 1, 2));
}

/// As in the standard library: a cell of a value that only one thread may use is not shared.
#[test]
fn they_are_sent_and_shared_as_their_values_allow() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_sync::<OnceLock<u32>>();
    is_sync::<LazyLock<u32>>();
    is_send::<OnceLock<std::cell::Cell<u32>>>();
    is_send::<SemaphorePermit<'_>>();
    is_sync::<SemaphorePermit<'_>>();
}

//! `lock_api::RawMutex`.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use lock_api::{Mutex, MutexGuard, RawMutex, RawMutexTimed};

use super::{SHORT, elsewhere};

pub fn owners_come_one_after_the_other<R: RawMutex + Send + Sync>() {
    const EACH: u64 = 3_000;
    let count = Mutex::<R, u64>::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..EACH).for_each(|_| *count.lock() += 1));
        }
    });
    assert_eq!(count.into_inner(), 4 * EACH);
}

pub fn a_try_fails_on_a_locked_lock_alone<R: RawMutex + Send + Sync>() {
    let mutex = Mutex::<R, _>::new(());
    let guard = mutex.try_lock().expect("it is free");
    assert!(mutex.is_locked());
    assert!(elsewhere(|| mutex.try_lock().is_none()));
    drop(guard);
    assert!(!mutex.is_locked());
    assert!(elsewhere(|| mutex.try_lock().is_some()));
}

pub fn a_forgotten_guard_leaves_it_locked<R: RawMutex + Send + Sync>() {
    let mutex = Mutex::<R, _>::new(3);
    mem::forget(mutex.lock());
    // Moves the locked mutex.
    let mutex = Box::new(mutex);
    assert!(mutex.is_locked());
    assert!(elsewhere(|| mutex.try_lock().is_none()));
    assert_eq!(mutex.into_inner(), 3);
}

pub fn a_guard_may_be_dropped_elsewhere<R>()
where
    R: RawMutex<Guard: Send> + Send + Sync,
{
    let mutex = Mutex::<R, _>::new(1);
    let mut guard = mutex.lock();
    elsewhere(move || *guard += 1);
    assert_eq!(*mutex.try_lock().expect("unlocked by another thread"), 2);
}

pub fn unlocked_lets_others_in_and_locks_again<R: RawMutex + Send + Sync>() {
    let mutex = Mutex::<R, _>::new(0);
    let mut guard = mutex.lock();
    MutexGuard::unlocked(&mut guard, || elsewhere(|| *mutex.lock() = 1));
    assert_eq!(*guard, 1);
    assert!(mutex.is_locked());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        MutexGuard::unlocked(&mut guard, || std::panic::resume_unwind(Box::new(())));
    }));
    assert!(panicked.is_err() && mutex.is_locked(), "locked again whatever happened");
    drop(guard);
    assert!(!mutex.is_locked());
}

pub fn a_mapped_guard_unlocks<R: RawMutex + Send + Sync>() {
    let mutex = Mutex::<R, _>::new((1, "a".to_owned()));
    let mut name = MutexGuard::map(mutex.lock(), |pair| &mut pair.1);
    name.push('b');
    assert!(mutex.is_locked());
    drop(name);
    assert_eq!(mutex.try_lock().expect("unlocked").1, "ab");
}

pub fn a_refused_map_keeps_the_guard<R: RawMutex + Send + Sync>() {
    let mutex = Mutex::<R, _>::new(vec![1]);
    let Err(guard) = MutexGuard::try_map(mutex.lock(), |list| list.get_mut(1)) else {
        panic!("there is no second element");
    };
    assert!(mutex.is_locked());
    drop(guard);
    assert!(!mutex.is_locked());
}

pub fn timed_attempts_end_in_time<R>()
where
    R: RawMutexTimed<Duration = Duration, Instant = Instant> + Send + Sync,
{
    let mutex = Mutex::<R, _>::new(());
    let past = Instant::now();
    drop(mutex.try_lock_until(past).expect("it is free, whatever the time"));
    drop(mutex.try_lock_for(Duration::ZERO).expect("it is free"));
    let guard = mutex.lock();
    elsewhere(|| {
        assert!(mutex.try_lock_until(past).is_none());
        let begun = Instant::now();
        assert!(mutex.try_lock_for(SHORT).is_none());
        assert!(begun.elapsed() >= SHORT, "gave up early");
        let deadline = Instant::now() + SHORT;
        assert!(mutex.try_lock_until(deadline).is_none());
        assert!(Instant::now() >= deadline, "gave up early");
    });
    thread::scope(|scope| {
        let waiter = scope.spawn(|| mutex.try_lock_for(Duration::MAX).is_some());
        thread::sleep(SHORT);
        drop(guard);
        assert!(waiter.join().expect("no panic"), "the end of time is not the past");
    });
}

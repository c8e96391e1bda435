//! Locks and events, used as a Rust user does.

use std::thread;
use std::time::{Duration, Instant};

use antiphon::{
    Condvar, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard, SpinMutex,
    guard::RwLockUpgradableReadGuard,
};

static COUNT: Mutex<u64> = Mutex::new(0);
static SPUN: SpinMutex<u64> = SpinMutex::new(0);

#[test]
fn statics_count() {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    *COUNT.lock() += 1;
                    *SPUN.lock() += 1;
                }
            });
        }
    });
    assert_eq!((*COUNT.lock(), *SPUN.lock()), (40_000, 40_000));
}

#[test]
fn sizes_are_as_promised() {
    assert_eq!(size_of::<Mutex<()>>(), 8);
    assert_eq!(size_of::<Mutex<u64>>(), 16);
    assert_eq!(size_of::<SpinMutex<u32>>(), 8);
    assert_eq!(size_of::<Condvar>(), 16);
    assert_eq!(size_of::<RwLock<()>>(), 16);
}

#[test]
fn timed_locks_and_waits_end() {
    let mutex = Mutex::new(());
    let condvar = Condvar::new();
    let mut guard = mutex.lock();
    let begun = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| assert!(mutex.try_lock_for(Duration::from_millis(5)).is_none()));
    });
    assert!(condvar.wait_for(&mut guard, Duration::from_millis(5)).timed_out());
    assert!(begun.elapsed() >= Duration::from_millis(10));
    // A timeout in the far future must not be taken for the past.
    thread::scope(|scope| {
        let waiter = scope.spawn(|| mutex.try_lock_for(Duration::MAX).is_some());
        thread::sleep(Duration::from_millis(5));
        drop(guard);
        assert!(waiter.join().unwrap());
    });
}

/// A queue of one element, with many threads on both sides.
#[test]
fn a_channel_of_one_loses_nothing() {
    const EACH: u64 = 2_000;
    let slot = Mutex::new(None::<u64>);
    let (filled, emptied) = (Condvar::new(), Condvar::new());
    let sum = Mutex::new(0);
    thread::scope(|scope| {
        for sender in 0..3 {
            let (slot, filled, emptied) = (&slot, &filled, &emptied);
            scope.spawn(move || {
                for item in 0..EACH {
                    let mut guard = slot.lock();
                    emptied.wait_while(&mut guard, |slot| slot.is_some());
                    *guard = Some(sender * EACH + item);
                    drop(guard);
                    filled.notify_one();
                }
            });
        }
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let mut guard = slot.lock();
                    filled.wait_while(&mut guard, |slot| slot.is_none());
                    *sum.lock() += guard.take().unwrap();
                    drop(guard);
                    emptied.notify_one();
                }
            });
        }
    });
    let items = 3 * EACH;
    assert_eq!(*sum.lock(), items * (items - 1) / 2);
}

#[test]
fn a_panic_does_not_poison() {
    let mutex = Mutex::new(1);
    thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let _guard = mutex.lock();
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(holder.join().is_err());
    });
    assert_eq!(*mutex.lock(), 1);
}

#[test]
fn a_readers_writer_lock_in_all_its_ways() {
    let lock = RwLock::new(0);
    let (one, two) = (lock.read(), lock.read());
    assert_eq!((*one, *two), (0, 0));
    assert!(lock.try_write().is_none() && lock.is_locked() && !lock.is_locked_exclusive());
    assert!(lock.try_write_for(Duration::from_millis(2)).is_none());
    drop((one, two));
    let upgradable = lock.upgradable_read();
    assert!(lock.try_upgradable_read().is_none(), "one at a time");
    let reader = lock.try_read().expect("readers may come");
    let Err(upgradable) = RwLockUpgradableReadGuard::try_upgrade(upgradable) else {
        panic!("became the writer beside a reader");
    };
    drop(reader);
    let mut writer = RwLockUpgradableReadGuard::upgrade(upgradable);
    *writer += 1;
    assert!(lock.try_read().is_none() && lock.is_locked_exclusive());
    assert!(lock.try_read_for(Duration::from_millis(2)).is_none());
    let reader = RwLockWriteGuard::downgrade(writer);
    assert_eq!((*reader, *lock.read()), (1, 1));
    drop(reader);
    assert_eq!(lock.into_inner(), 1);
}

/// A value that threads may send but not share needs exclusion, so a readers-writer lock of it may
/// not be shared; guards may be sent where references may.
#[test]
fn guards_are_sent_and_shared_as_their_values_allow() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<RwLock<u32>>();
    is_sync::<RwLock<u32>>();
    is_send::<RwLock<std::cell::Cell<u32>>>();
    is_send::<RwLockReadGuard<'_, u32>>();
    is_sync::<RwLockReadGuard<'_, u32>>();
    is_sync::<RwLockWriteGuard<'_, u32>>();
}

//! `lock_api::RawRwLock` and the traits that add to it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use lock_api::{
    RawRwLock, RawRwLockDowngrade, RawRwLockTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade,
    RawRwLockUpgradeTimed, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
};

use super::{SHORT, elsewhere};

pub fn writers_come_one_after_the_other<R: RawRwLock + Send + Sync>() {
    const EACH: u64 = 2_000;
    let pair = RwLock::<R, (u64, u64)>::new((0, 0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let mut pair = pair.write();
                    pair.0 += 1;
                    pair.1 += 1;
                }
            });
            scope.spawn(|| {
                for _ in 0..EACH {
                    let pair = pair.read();
                    assert_eq!(pair.0, pair.1);
                }
            });
        }
    });
    assert_eq!(pair.into_inner(), (2 * EACH, 2 * EACH));
}

pub fn readers_come_together<R: RawRwLock + Send + Sync>() {
    let lock = RwLock::<R, _>::new(());
    let reader = lock.read();
    assert!(lock.is_locked() && !lock.is_locked_exclusive());
    elsewhere(|| {
        assert!(lock.try_read().is_some());
        assert!(lock.try_write().is_none());
        let _other = lock.read();
    });
    drop(reader);
    let writer = lock.try_write().expect("it is free");
    assert!(lock.is_locked() && lock.is_locked_exclusive());
    elsewhere(|| assert!(lock.try_read().is_none() && lock.try_write().is_none()));
    drop(writer);
    assert!(!lock.is_locked());
}

pub fn a_downgrade_lets_no_writer_in<R>()
where
    R: RawRwLockUpgradeDowngrade + RawRwLockDowngrade + Send + Sync,
{
    let lock = RwLock::<R, _>::new(0);
    let arrived = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut first = lock.write();
        let second = scope.spawn(|| {
            arrived.store(true, Relaxed);
            *lock.write() += 10;
        });
        while !arrived.load(Relaxed) {
            thread::yield_now();
        }
        *first = 1;
        let upgradable = RwLockWriteGuard::downgrade_to_upgradable(first);
        assert_eq!(*upgradable, 1);
        let reader = RwLockUpgradableReadGuard::downgrade(upgradable);
        assert_eq!(*reader, 1, "a writer came in between");
        assert!(!second.is_finished());
        drop(reader);
    });
    let reader = RwLockWriteGuard::downgrade(lock.write());
    assert_eq!(*reader, 11);
    assert!(elsewhere(|| lock.try_read().is_some()));
}

pub fn one_upgradable_reader_at_a_time<R: RawRwLockUpgrade + Send + Sync>() {
    let lock = RwLock::<R, _>::new(());
    let upgradable = lock.upgradable_read();
    elsewhere(|| {
        assert!(lock.try_upgradable_read().is_none() && lock.try_write().is_none());
        assert!(lock.try_read().is_some(), "readers may come");
    });
    drop(upgradable);
    assert!(lock.try_upgradable_read().is_some());
}

/// A value that an upgradable reader has read is unchanged when it becomes the writer.
pub fn an_upgrade_sees_what_was_written_before<R: RawRwLockUpgrade + Send + Sync>() {
    const EACH: u64 = 1_000;
    let count = RwLock::<R, u64>::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let upgradable = count.upgradable_read();
                    let seen = *upgradable;
                    *RwLockUpgradableReadGuard::upgrade(upgradable) = seen + 1;
                    assert!(*count.read() > seen);
                }
            });
        }
    });
    assert_eq!(count.into_inner(), 3 * EACH);
}

pub fn mapped_readers_and_writers_unlock<R: RawRwLock + Send + Sync>() {
    let lock = RwLock::<R, _>::new((1, 2));
    *RwLockWriteGuard::map(lock.write(), |pair| &mut pair.1) += 1;
    let part = RwLockReadGuard::map(lock.read(), |pair| &pair.1);
    assert_eq!(*part, 3);
    assert!(lock.try_write().is_none());
    drop(part);
    let refused = RwLockReadGuard::try_map(lock.read(), |_| None::<&u8>);
    assert!(refused.is_err() && lock.is_locked());
    drop(refused);
    assert!(lock.try_write().is_some());
}

pub fn timed_attempts_end_in_time<R>()
where
    R: RawRwLockUpgradeTimed + RawRwLockTimed<Duration = Duration, Instant = Instant> + Send + Sync,
{
    let lock = RwLock::<R, _>::new(());
    let past = Instant::now();
    assert!(lock.try_write_until(past).is_some());
    assert!(lock.try_read_until(past).is_some());
    assert!(lock.try_upgradable_read_until(past).is_some());
    let writer = lock.write();
    elsewhere(|| {
        let begun = Instant::now();
        assert!(lock.try_write_for(SHORT).is_none());
        assert!(begun.elapsed() >= SHORT, "gave up early");
        assert!(lock.try_read_for(SHORT).is_none());
        assert!(begun.elapsed() >= 2 * SHORT, "gave up early");
        assert!(lock.try_upgradable_read_for(SHORT).is_none());
        assert!(begun.elapsed() >= 3 * SHORT, "gave up early");
    });
    drop(writer);
    let reader = lock.read();
    elsewhere(|| {
        let begun = Instant::now();
        assert!(lock.try_write_until(begun + SHORT).is_none());
        assert!(begun.elapsed() >= SHORT, "gave up early");
        let upgradable = lock.try_upgradable_read_for(SHORT).expect("beside a reader");
        let refused = RwLockUpgradableReadGuard::try_upgrade_for(upgradable, SHORT);
        assert!(refused.is_err() && begun.elapsed() >= 2 * SHORT);
    });
    drop(reader);
    assert!(!lock.is_locked(), "who gave up has left nothing behind");
}

pub fn a_refused_upgrade_keeps_what_there_was<R>()
where
    R: RawRwLockUpgradeTimed + RawRwLockTimed<Duration = Duration, Instant = Instant> + Send + Sync,
{
    let lock = RwLock::<R, _>::new(0);
    let reader = lock.read();
    let upgradable = lock.try_upgradable_read().expect("beside a reader");
    let Err(upgradable) = RwLockUpgradableReadGuard::try_upgrade(upgradable) else {
        panic!("became the writer beside a reader");
    };
    let until = Instant::now() + SHORT;
    let Err(upgradable) = RwLockUpgradableReadGuard::try_upgrade_until(upgradable, until) else {
        panic!("became the writer beside a reader");
    };
    assert!(elsewhere(|| lock.try_upgradable_read().is_none() && lock.try_read().is_some()));
    drop(reader);
    let writer = RwLockUpgradableReadGuard::try_upgrade(upgradable);
    assert!(writer.is_ok() && lock.is_locked_exclusive());
}

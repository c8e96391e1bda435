//! Tests of the readers-writer lock with real threads.

mod common;

#[path = "../../linux/tests/support/mod.rs"]
mod support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _, Deadline, Platform};
use antiphon_sync::lock::{
    GroupReaders, GroupWriters, Recursive, Refused, RwForm, ShflRwLock, Standard,
};
use antiphon_sync::policy::{Numa, Policy};
use common::page::Page;
use common::readers::{Inside, sharing};
use common::sound::Sound;
use common::validate::{Guarded, exclusion};
use support::arena;

type Lock<F = Standard, Q = Numa> = ShflRwLock<Linux, Q, F>;

const _: () = assert!(size_of::<Lock>() == 16 && align_of::<Lock>() == 8);

fn in_us(us: u64) -> Deadline {
    Deadline { clock: Clock::Monotonic, ns: Linux::now(Clock::Monotonic) + us * 1_000 }
}

fn read<F: RwForm>(lock: &Lock<F>) {
    assert_eq!(lock.read(), Ok(()));
}

fn unlock_read<F: RwForm>(lock: &Lock<F>) {
    // SAFETY: each caller has acquired it for reading.
    unsafe { lock.unlock_read() }
}

fn unlock_write<F: RwForm>(lock: &Lock<F>) {
    // SAFETY: each caller has acquired it for writing.
    unsafe { lock.unlock_write() }
}

#[test]
fn writers_exclude_each_other() {
    exclusion(&Guarded::<Lock>::new(), 2, 100_000, |_| {});
    exclusion(&Guarded::<Lock<Sound>>::new(), 16, 5_000, |_| {});
}

#[test]
fn writers_exclude_readers() {
    fn check<F: RwForm, Q: Policy>(threads: usize, rounds: u64) {
        for share in [2, 10, 100] {
            sharing(&Guarded::<Lock<F, Q>>::new(), threads, rounds, share, |_| {});
        }
    }
    check::<Standard, Numa>(2, 50_000);
    check::<Standard, Numa>(16, 5_000);
    check::<Sound, Numa>(8, 5_000);
    check::<Recursive, Numa>(8, 5_000);
    check::<Recursive<Sound>, Numa>(8, 5_000);
    check::<Sound, GroupReaders>(8, 5_000);
    check::<Sound, GroupWriters>(8, 5_000);
}

/// All readers that wait are in at the same time once the writer has left: each stays until the
/// last has come.
#[test]
fn readers_that_wait_come_in_together() {
    const READERS: usize = 8;
    let (lock, inside) = (Lock::<Sound>::NEW, Inside::new());
    let all = Barrier::new(READERS);
    lock.write();
    thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                read(&lock);
                inside.enter();
                all.wait();
                inside.leave();
                unlock_read(&lock);
            });
        }
        thread::sleep(Duration::from_millis(20));
        unlock_write(&lock);
    });
    assert_eq!(inside.most(), READERS as u32);
}

/// All waiting readers come in beside a writer that becomes a reader, and stays.
#[test]
fn a_downgrade_lets_readers_in() {
    let lock = Lock::<Sound>::NEW;
    let both = Barrier::new(2);
    lock.write();
    thread::scope(|scope| {
        scope.spawn(|| {
            read(&lock);
            both.wait();
            unlock_read(&lock);
        });
        thread::sleep(Duration::from_millis(20));
        // SAFETY: acquired above.
        unsafe { lock.downgrade() };
        both.wait();
        unlock_read(&lock);
    });
    assert!(lock.write_uncontended());
}

/// A signalled head that has not come does not keep other threads from writing at once; a head that
/// the lock is reserved for does.
#[test]
fn a_free_lock_is_written_at_the_second_look() {
    const FAIR: u64 = 1 << 2;
    const NAMED: u64 = 7 << 8;
    let lock = Lock::<Standard>::NEW;
    // SAFETY: the state is the first eight bytes of the lock.
    let state = unsafe { &*std::ptr::from_ref(&lock).cast::<std::sync::atomic::AtomicU64>() };
    for (said, had) in [(NAMED, true), (NAMED | FAIR, false)] {
        state.store(said, Relaxed);
        assert!(!lock.write_uncontended());
        assert_eq!(lock.write_at_once(), had);
        assert_eq!(lock.is_locked_by_writer(), had);
    }
}

/// Readers whose sections overlap without end, and a writer that waits.
#[test]
fn readers_starve_no_writer() {
    const WRITES: u32 = 100;
    let lock = Lock::<Standard>::NEW;
    let done = AtomicU32::new(0);
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while done.load(Relaxed) < WRITES && begun.elapsed() < Duration::from_secs(60) {
                    read(&lock);
                    thread::sleep(Duration::from_micros(200));
                    unlock_read(&lock);
                }
            });
        }
        while done.load(Relaxed) < WRITES && lock.write_until(in_us(60_000_000)) {
            done.fetch_add(1, Relaxed);
            unlock_write(&lock);
        }
    });
    assert_eq!(done.load(Relaxed), WRITES);
}

/// Writers that come back at once, and a reader that waits.
#[test]
fn writers_starve_no_reader() {
    const READS: u32 = 100;
    let lock = Lock::<Standard>::NEW;
    let done = AtomicU32::new(0);
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while done.load(Relaxed) < READS && begun.elapsed() < Duration::from_secs(60) {
                    lock.write();
                    unlock_write(&lock);
                }
            });
        }
        while done.load(Relaxed) < READS && lock.read_until(in_us(60_000_000)).is_ok() {
            done.fetch_add(1, Relaxed);
            unlock_read(&lock);
        }
    });
    assert_eq!(done.load(Relaxed), READS);
}

/// A reader may read again although a writer waits; a plain read of the usual form may not.
#[test]
fn reads_may_be_recursive() {
    fn with_a_waiting_writer<F: RwForm>(then: fn(&Lock<F>)) {
        let lock = Lock::<F>::NEW;
        read(&lock);
        thread::scope(|scope| {
            scope.spawn(|| {
                lock.write();
                unlock_write(&lock);
            });
            while !lock.has_waiters() {
                thread::yield_now();
            }
            // Long enough for the writer to sleep.
            thread::sleep(Duration::from_millis(5));
            then(&lock);
            unlock_read(&lock);
        });
        assert!(lock.write_uncontended());
    }
    with_a_waiting_writer::<Sound>(|lock| {
        assert_eq!(lock.read_until(in_us(1_000)), Err(Refused::Busy));
        assert_eq!(lock.try_read(), Err(Refused::Busy));
        assert_eq!(lock.read_recursive(), Ok(()));
        unlock_read(lock);
    });
    with_a_waiting_writer::<Recursive<Sound>>(|lock| {
        read(lock);
        assert_eq!(lock.try_read(), Ok(()));
        unlock_read(lock);
        unlock_read(lock);
    });
}

#[test]
fn timed_waiters_give_up_and_leave_a_sound_lock() {
    let lock = Lock::<Standard>::NEW;
    lock.write();
    thread::scope(|scope| {
        for number in 0..4 {
            let lock = &lock;
            scope.spawn(move || {
                for _ in 0..20 {
                    let begun = Instant::now();
                    match number % 3 {
                        0 => assert!(!lock.write_until(in_us(2_000))),
                        1 => assert_eq!(lock.read_until(in_us(2_000)), Err(Refused::Busy)),
                        _ => assert!(!lock.upgradable_until(in_us(2_000))),
                    }
                    assert!(begun.elapsed() >= Duration::from_millis(1));
                }
            });
        }
    });
    unlock_write(&lock);
    assert!(lock.write_until(in_us(0)), "a free lock is had whatever the deadline");
    unlock_write(&lock);
    assert_eq!(lock.read_until(in_us(0)), Ok(()));
    unlock_read(&lock);
}

/// An abandoned upgrade leaves a reader, and lets in the threads that it kept out.
#[test]
fn an_upgrade_may_be_given_up() {
    let lock = Lock::<Sound>::NEW;
    let waiting = AtomicBool::new(false);
    lock.upgradable();
    read(&lock);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !waiting.load(Relaxed) {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(2));
            read(&lock);
            unlock_read(&lock);
        });
        waiting.store(true, Relaxed);
        // SAFETY: acquired above.
        assert!(!unsafe { lock.upgrade_until(in_us(20_000)) });
    });
    unlock_read(&lock);
    // SAFETY: acquired above, and not upgraded.
    assert!(unsafe { lock.upgrade_until(in_us(0)) });
    unlock_write(&lock);
}

/// Waiters of all kinds, with and without deadlines: each thread comes in or gives up, and at the
/// end the lock is free and fast.
#[test]
fn timed_and_untimed_waiters_mix() {
    let guarded = Guarded::<Lock>::new();
    let stop = AtomicBool::new(false);
    let written = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 0..8 {
            let (guarded, stop, written) = (&guarded, &stop, &written);
            let lock = &guarded.lock;
            scope.spawn(move || {
                while !stop.load(Relaxed) {
                    let deadline = in_us(u64::from(Linux::random()) % 200);
                    let (reads, had) = match number % 4 {
                        0 => (true, lock.read().is_ok()),
                        1 => (true, lock.read_until(deadline).is_ok()),
                        2 => (false, lock.write_until(deadline)),
                        _ => {
                            lock.write();
                            (false, true)
                        }
                    };
                    match (reads, had) {
                        (_, false) => {}
                        (true, _) => {
                            guarded.look();
                            unlock_read(lock);
                        }
                        (false, _) => {
                            guarded.step();
                            written.fetch_add(1, Relaxed);
                            unlock_write(lock);
                        }
                    }
                }
            });
        }
        thread::sleep(Duration::from_millis(500));
        stop.store(true, Relaxed);
    });
    assert_eq!(guarded.total(), written.load(Relaxed));
    assert!(guarded.lock.write_uncontended());
}

/// The last reader's successor may unmap the lock while that reader is still in `unlock_read`
/// (RW-3).
#[test]
fn unlock_touches_nothing_after_the_release() {
    for round in 0..2_000 {
        let page = Page::map();
        // SAFETY: all zero is a free lock; it is used only until it is unmapped below.
        let lock: &Lock<Sound> = unsafe { page.as_ref() };
        let reads = round % 2 == 0;
        if reads {
            read(lock)
        } else {
            lock.write()
        }
        let waiting = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                waiting.wait();
                lock.write();
                unlock_write(lock);
                // SAFETY: no thread may access it any more (the point of this test).
                unsafe { page.unmap() };
            });
            waiting.wait();
            if round % 3 == 0 {
                // Long enough for the waiter to sleep.
                thread::sleep(Duration::from_micros(100));
            }
            if reads { unlock_read(lock) } else { unlock_write(lock) }
        });
    }
}

/// A child of `fork` inherits a lock that its thread holds, and the names of waiters that do not
/// exist there.
#[test]
fn the_child_of_a_fork_goes_on_with_what_it_holds() {
    for reads in [true, false] {
        let lock = Lock::<Standard>::NEW;
        if reads {
            read(&lock)
        } else {
            lock.write()
        }
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    lock.write();
                    unlock_write(&lock);
                });
            }
            thread::sleep(Duration::from_millis(20));
            // SAFETY: the child uses nothing but the lock, and ends by `_exit`.
            let child = unsafe { libc::fork() };
            if child == 0 {
                if reads {
                    unlock_read(&lock)
                } else {
                    unlock_write(&lock)
                }
                let mut sound = lock.write_until(in_us(5_000_000));
                unlock_write(&lock);
                sound &= lock.read_until(in_us(5_000_000)).is_ok();
                unlock_read(&lock);
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(i32::from(!sound)) };
            }
            assert!(child > 0);
            let mut status = -1;
            // SAFETY: our own child.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            if reads {
                unlock_read(&lock)
            } else {
                unlock_write(&lock)
            }
            assert_eq!(status, 0);
        });
    }
}

#[test]
fn a_lock_takes_no_node_until_it_contends() {
    let before = arena().high_water();
    for _ in 0..10_000 {
        let lock = Lock::<Standard>::NEW;
        read(&lock);
        unlock_read(&lock);
        lock.write();
        unlock_write(&lock);
    }
    let after = arena().high_water();
    // Other tests run beside this one; they take a few dozen.
    assert!(after - before < 1_000, "{before} to {after}");
}

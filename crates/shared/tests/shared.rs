//! Tests with several processes and one mapping: exclusion, notifications, permits, and processes
//! that are killed in the middle.

mod processes;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use antiphon_shared::{Barrier, Condvar, Mutex, RwLock, Semaphore, Shared, TooManyPermits};

use processes::{LONG, child, exits_well, kill, wait_for};

/// The memory that the processes share. All zero at first.
#[repr(C)]
struct Common {
    mutex: Mutex<[u64; 2]>,
    changed: Condvar,
    semaphore: Semaphore,
    rwlock: RwLock<[u64; 2]>,
    note: AtomicU32,
}

fn map() -> &'static Common {
    // SAFETY: zero bytes are valid for each field, as `Shared` requires.
    unsafe { processes::map() }
}

#[test]
fn processes_exclude_each_other() {
    const ROUNDS: u64 = 20_000;
    let common = map();
    let work = || {
        for _ in 0..ROUNDS {
            let Ok(mut pair) = common.mutex.lock() else { return false };
            if pair[0] != pair[1] {
                return false;
            }
            pair[0] += 1;
            std::hint::black_box(&mut *pair);
            pair[1] += 1;
        }
        true
    };
    let children = [child(work), child(work)];
    thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    });
    assert!(children.into_iter().all(exits_well));
    assert_eq!(*common.mutex.lock().unwrap(), [4 * ROUNDS; 2]);
}

#[test]
fn notifications_and_permits_cross_processes() {
    const ROUNDS: u64 = 2_000;
    let common = map();
    let partner = child(|| {
        for round in 0..ROUNDS {
            let Ok(mut pair) = common.mutex.lock() else { return false };
            while pair[0] == round {
                pair = match common.changed.wait(pair) {
                    Ok(pair) => pair,
                    Err(_) => return false,
                };
            }
            pair[1] += 1;
            drop(pair);
            if common.semaphore.release(1).is_err() {
                return false;
            }
        }
        true
    });
    for round in 1..=ROUNDS {
        let mut pair = common.mutex.lock().unwrap();
        pair[0] += 1;
        drop(pair);
        common.changed.notify_one();
        common.semaphore.acquire();
        assert_eq!(*common.mutex.lock().unwrap(), [round; 2]);
    }
    assert!(exits_well(partner));
    assert_eq!(common.semaphore.available_permits(), 0);
    assert!(!common.semaphore.try_acquire());
    assert!(!common.semaphore.try_acquire_for(Duration::from_millis(2)));
}

#[test]
fn who_waits_for_a_killed_process_is_told() {
    let common = map();
    let victim = child(|| {
        let Ok(mut pair) = common.mutex.lock() else { return false };
        pair[0] = 7;
        common.note.store(1, Relaxed);
        loop {
            thread::sleep(LONG);
        }
    });
    wait_for(&common.note, 1);
    assert!(common.mutex.try_lock().is_none());
    assert!(common.mutex.try_lock_for(Duration::from_millis(120)).is_none(), "it lives");
    thread::scope(|scope| {
        let waiters = [(); 2].map(|()| {
            scope.spawn(|| match common.mutex.try_lock_for(LONG).expect("found in time") {
                Ok(pair) => *pair == [8, 8],
                Err(died) => {
                    let mut pair = died.recover();
                    let half_done = *pair == [7, 0];
                    *pair = [8, 8];
                    half_done
                }
            })
        });
        thread::sleep(Duration::from_millis(20));
        kill(victim);
        assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
    });
    assert!(common.mutex.try_lock().is_some_and(|locked| locked.is_ok()));
}

#[test]
fn who_was_killed_is_dead_before_its_parent_has_waited_for_it() {
    let common = map();
    let victim = child(|| {
        std::mem::forget((common.mutex.lock(), common.rwlock.write()));
        common.note.store(1, Relaxed);
        loop {
            thread::sleep(LONG);
        }
    });
    wait_for(&common.note, 1);
    // SAFETY: a child that was not waited for, and is not waited for here; the structure is a
    // local, for which any bytes are valid.
    unsafe {
        assert_eq!(libc::kill(victim, libc::SIGKILL), 0);
        let mut ended: libc::siginfo_t = std::mem::zeroed();
        let how = libc::WEXITED | libc::WNOWAIT;
        assert_eq!(libc::waitid(libc::P_PID, victim.cast_unsigned(), &raw mut ended, how), 0);
    }
    let found = common.mutex.try_lock_for(LONG);
    assert!(found.expect("found in time").is_err(), "the owner was killed");
    let found = common.rwlock.try_write_for(LONG);
    assert!(found.expect("found in time").is_err(), "the writer was killed");
    assert!(!exits_well(victim));
}

#[test]
fn a_killed_writer_that_waited_keeps_no_reader_out_of_a_free_lock() {
    let common = map();
    let Ok(reads) = common.rwlock.read() else { panic!("nobody has died") };
    let victim = child(|| {
        common.note.store(1, Relaxed);
        common.rwlock.write().is_ok()
    });
    wait_for(&common.note, 1);
    let begun = Instant::now();
    while common.rwlock.try_read().is_some() {
        assert!(begun.elapsed() < LONG, "the writer does not wait");
        thread::sleep(Duration::from_millis(1));
    }
    kill(victim);
    drop(reads);
    // Less than the longest sleep between two checks.
    assert!(common.rwlock.try_read_for(Duration::from_millis(5)).is_some());
    assert!(common.rwlock.try_read().is_some());
}

#[test]
fn each_owner_is_told_until_one_recovers() {
    let common = map();
    let lock_and_die = || std::mem::forget(common.mutex.lock());
    thread::spawn(lock_and_die).join().unwrap();
    let died = common.mutex.lock().expect_err("the owner is a thread that has ended");
    assert_eq!(died.to_string(), "an owner of the mutex has died while it held the mutex");
    drop(died.into_guard());
    drop(common.mutex.lock().expect_err("nobody has recovered it").recover());
    assert!(common.mutex.lock().is_ok());
}

#[test]
fn a_killed_waiter_takes_no_wake_with_it() {
    let common = map();
    // The victim consumes the available wakes, and is killed in between.
    let victim = child(|| {
        common.note.store(1, Relaxed);
        loop {
            common.semaphore.acquire();
            if common.semaphore.release(1).is_err() {
                return false;
            }
        }
    });
    wait_for(&common.note, 1);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| common.semaphore.try_acquire_for(LONG));
        thread::sleep(Duration::from_millis(10));
        kill(victim);
        assert_eq!(common.semaphore.release(1), Ok(()));
        assert!(waiter.join().unwrap());
    });
    assert_eq!(common.semaphore.release(Semaphore::MAX_PERMITS), Ok(()));
    assert_eq!(common.semaphore.release(1), Err(TooManyPermits));
}

#[test]
fn rounds_of_a_barrier_cross_processes() {
    const ROUNDS: u32 = 2_000;
    let common = map();
    let barrier = share_barrier(3);
    // Between two waits all processes are in the same round.
    let work = || {
        (1..=ROUNDS).all(|round| {
            common.note.fetch_add(1, Relaxed);
            let led = barrier.wait().is_leader();
            let fine = common.note.load(Relaxed) == 3 * round;
            if led {
                let _ = common.semaphore.release(1);
            }
            barrier.wait();
            fine
        })
    };
    let children = [child(work), child(work)];
    assert!(work());
    assert!(children.into_iter().all(exits_well));
    assert_eq!(common.semaphore.available_permits(), ROUNDS, "one leader a round");
}

#[test]
fn who_waits_at_a_barrier_for_a_killed_process_may_give_up() {
    let common = map();
    let barrier = share_barrier(2);
    let victim = child(|| {
        common.note.store(1, Relaxed);
        loop {
            thread::sleep(LONG);
        }
    });
    wait_for(&common.note, 1);
    kill(victim);
    // Twice: neither time counts.
    assert!(barrier.wait_for(Duration::from_millis(2)).is_none());
    assert!(barrier.wait_for(Duration::from_millis(2)).is_none());
    let partner = child(|| {
        let _ = barrier.wait();
        true
    });
    assert!(barrier.wait_for(LONG).is_some());
    assert!(exits_well(partner));
}

fn share_barrier(threads: u32) -> &'static Barrier {
    processes::place(Barrier::new(threads))
}

#[test]
fn writers_of_any_process_are_alone() {
    const ROUNDS: u64 = 5_000;
    let common = map();
    let write = || {
        (0..ROUNDS).all(|_| {
            let Ok(mut pair) = common.rwlock.write() else { return false };
            pair[0] += 1;
            std::hint::black_box(&mut *pair);
            pair[1] += 1;
            pair[0] == pair[1]
        })
    };
    let read = || {
        (0..ROUNDS).all(|_| {
            common.rwlock.read().is_ok_and(|pair| pair[0] == std::hint::black_box(&pair)[1])
        })
    };
    let children = [child(write), child(read)];
    thread::scope(|scope| {
        let threads = [scope.spawn(write), scope.spawn(read)];
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    });
    assert!(children.into_iter().all(exits_well));
    assert_eq!(*common.rwlock.read().unwrap(), [2 * ROUNDS; 2]);
}

#[test]
fn readers_and_writers_are_told_of_a_killed_writer() {
    let common = map();
    let victim = child(|| {
        let Ok(mut pair) = common.rwlock.write() else { return false };
        pair[0] = 7;
        common.note.store(1, Relaxed);
        loop {
            thread::sleep(LONG);
        }
    });
    wait_for(&common.note, 1);
    assert!(common.rwlock.try_read().is_none() && common.rwlock.try_write().is_none());
    assert!(common.rwlock.try_read_for(Duration::from_millis(120)).is_none(), "it lives");
    kill(victim);
    let died = common.rwlock.try_read_for(LONG).expect("found in time").expect_err("told");
    assert_eq!(died.to_string(), "a writer has died while it held the lock");
    assert_eq!(*died.into_guard(), [7, 0]);
    let died = common.rwlock.write().expect_err("nobody has recovered it");
    *died.recover() = [8, 8];
    assert_eq!(*common.rwlock.read().unwrap(), [8, 8]);
}

#[test]
fn a_killed_reader_keeps_writers_out_and_a_killed_waiter_nobody() {
    let common = map();
    let here = common.rwlock.read().unwrap();
    let writer = child(|| {
        common.note.store(1, Relaxed);
        common.rwlock.write().is_ok()
    });
    wait_for(&common.note, 1);
    let begun = Instant::now();
    while common.rwlock.try_read().is_some() {
        assert!(begun.elapsed() < LONG, "it doesn't wait");
        thread::sleep(Duration::from_millis(1));
    }
    // A thread that reads again doesn't wait for ever, and a dead writer blocks no thread.
    drop(common.rwlock.read().unwrap());
    kill(writer);
    drop(common.rwlock.read().unwrap());
    drop(here);
    assert!(common.rwlock.try_write_for(LONG).is_some_and(|locked| locked.is_ok()));

    let reader = child(|| {
        std::mem::forget(common.rwlock.read());
        true
    });
    assert!(exits_well(reader));
    assert!(common.rwlock.try_write_for(Duration::from_millis(120)).is_none());
    assert!(common.rwlock.read().is_ok());
}

#[test]
fn they_are_as_small_as_promised_and_written_once() {
    assert_eq!((size_of::<Mutex<()>>(), size_of::<Condvar>(), size_of::<Semaphore>()), (4, 8, 8));
    assert_eq!((size_of::<RwLock<()>>(), size_of::<Barrier>()), (4, 8));
    let mut semaphore = Semaphore::new(2);
    // SAFETY: alive and used by no other code.
    let semaphore: &Semaphore = unsafe { Shared::from_ptr(&raw mut semaphore) };
    assert!(semaphore.try_acquire() && semaphore.try_acquire() && !semaphore.try_acquire());
    // SAFETY: no guard is leaked.
    let mutex = unsafe { Mutex::new(5) };
    assert_eq!(*mutex.lock().unwrap(), 5);
    let changed = Condvar::new();
    let guard = mutex.lock().unwrap();
    let (guard, notified) = changed.wait_for(guard, Duration::from_millis(2));
    assert!(!notified && mutex.try_lock().is_none());
    drop(guard);
    assert!(mutex.try_lock().is_some());
    // SAFETY: no guard is leaked.
    let rwlock = unsafe { RwLock::new(5) };
    assert_eq!(*rwlock.read().unwrap() + *rwlock.try_read().unwrap().unwrap(), 10);
    assert!(rwlock.try_write().is_some_and(|locked| locked.is_ok()));
}

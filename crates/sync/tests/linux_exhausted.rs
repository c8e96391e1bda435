//! Tests of the locks when no waiter node is free: a contending thread barges, and none hangs.

#[path = "../../linux/tests/support/mod.rs"]
mod support;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;

use antiphon_linux::Linux;
use antiphon_platform::Clock;
use antiphon_sync::lock::{Lock, ShflMutex, ShflSpin};
use antiphon_sync::policy;
use antiphon_sync::wait::{Barrier, Condvar, Once, Semaphore};
use support::{FORKS, REFUSE, after, arena, filter, in_child};

/// Makes the kernel refuse memory that is wiped in a child, so that no nodes can be allocated.
fn refuse_nodes() -> bool {
    filter(&[libc::SYS_madvise], REFUSE) && arena().take().is_none() && arena().take().is_none()
}

/// Checks that owners are alone, even if they give their CPU away.
fn excludes<L: Lock>(threads: usize, rounds: u64) -> bool {
    let lock = L::NEW;
    let (owned, clashes) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..rounds {
                    lock.lock();
                    let clash = owned.swap(true, Relaxed);
                    clashes.fetch_add(u32::from(clash), Relaxed);
                    thread::yield_now();
                    owned.store(false, Relaxed);
                    // SAFETY: locked above.
                    unsafe { lock.unlock() };
                }
            });
        }
    });
    clashes.load(Relaxed) == 0 && arena().take().is_none()
}

#[test]
fn locks_without_nodes_exclude() {
    assert!(in_child(FORKS[0].1, || {
        refuse_nodes()
            && excludes::<ShflMutex<Linux>>(4, 2_000)
            && excludes::<ShflSpin<Linux>>(3, 2_000)
    }));
}

#[test]
fn a_timed_wait_without_a_node_ends() {
    assert!(in_child(FORKS[0].1, || {
        let lock = ShflMutex::<Linux>::NEW;
        lock.lock();
        refuse_nodes()
            && thread::scope(|scope| {
                let late = || !lock.lock_until(after(Clock::Monotonic, 1_000_000));
                let waiters = [scope.spawn(late), scope.spawn(late)];
                waiters.into_iter().all(|waiter| waiter.join().unwrap_or(false))
            })
    }));
}

#[test]
fn a_condvar_without_nodes_ends_its_waits() {
    assert!(in_child(FORKS[0].1, || {
        let (lock, condvar) = (ShflMutex::<Linux>::NEW, Condvar::<Linux>::NEW);
        // SAFETY: locked below.
        let unlock = || unsafe { lock.unlock() };
        refuse_nodes() && {
            lock.lock();
            // Several times, because each wait may end spuriously.
            for _ in 0..3 {
                condvar.wait(None, unlock, || lock.lock());
            }
            unlock();
            lock.try_lock()
        }
    }));
}

#[test]
fn a_barrier_a_semaphore_and_a_once_without_nodes_let_go() {
    const THREADS: u32 = 4;
    const ROUNDS: u32 = 20;
    assert!(in_child(FORKS[0].1, || {
        let barrier = Barrier::<Linux>::new(THREADS);
        let semaphore = Semaphore::<Linux, policy::None>::new(1);
        let once = Once::<Linux>::NEW;
        let (leaders, runs) = (AtomicU32::new(0), AtomicU32::new(0));
        let run = || {
            runs.fetch_add(1, Relaxed);
            thread::yield_now();
        };
        refuse_nodes()
            && thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        for _ in 0..ROUNDS {
                            leaders.fetch_add(barrier.wait().into(), Relaxed);
                            once.call_once(run);
                            semaphore.acquire();
                            thread::yield_now();
                            assert_eq!(semaphore.release(1), Ok(()));
                        }
                    });
                }
                true
            })
            && {
                barrier.retire();
                (leaders.load(Relaxed), runs.load(Relaxed)) == (ROUNDS, 1)
            }
    }));
}

//! Tests of what real programs do with locks: they free them, fork while holding them, lock them in
//! signal handlers, and give up on them a million times.

mod common;

#[path = "../../linux/tests/support/mod.rs"]
mod support;

use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _, Deadline};
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::wait::Condvar;
use common::page::Page;
use support::arena;

type Mutex = ShflMutex<Linux>;

fn in_us(us: u64) -> Deadline {
    Deadline { clock: Clock::Monotonic, ns: Linux::now(Clock::Monotonic) + us * 1_000 }
}

fn unlock(lock: &Mutex) {
    // SAFETY: each caller owns it.
    unsafe { lock.unlock() }
}

#[test]
fn a_held_lock_may_be_moved_and_dropped() {
    let lock = Mutex::NEW;
    lock.lock();
    let moved = Box::new(lock);
    assert!(!moved.try_lock());
    unlock(&moved);
    moved.lock();
    drop(moved);
}

/// The next owner may unmap the lock while the last one is still inside `unlock` (MUTEX-3).
#[test]
fn unlock_touches_nothing_after_the_release() {
    for round in 0..3_000 {
        let page = Page::map();
        // SAFETY: all zero is a free lock; it is used only until it is unmapped below.
        let lock: &Mutex = unsafe { page.as_ref() };
        lock.lock();
        let waiting = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                waiting.wait();
                lock.lock();
                unlock(lock);
                // SAFETY: no thread may access it any more (the point of this test).
                unsafe { page.unmap() };
            });
            waiting.wait();
            if round % 3 == 0 {
                // Long enough for the waiter to sleep.
                thread::sleep(Duration::from_micros(100));
            }
            unlock(lock);
        });
    }
}

#[test]
fn a_signal_handler_may_lock_in_the_middle_of_a_wait() {
    static OUTER: Mutex = Mutex::NEW;
    static INNER: Mutex = Mutex::NEW;
    static HANDLED: AtomicU32 = AtomicU32::new(0);
    static STOP: AtomicBool = AtomicBool::new(false);

    extern "C" fn handler(_: libc::c_int) {
        // A handler that interrupts the owner of INNER must not wait for it.
        if INNER.lock_until(in_us(20)) {
            unlock(&INNER);
        }
        HANDLED.fetch_add(1, Ordering::Relaxed);
    }

    // SAFETY: the handler uses only atomics, our locks and system calls.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()), 0);
    }
    let total = AtomicU64::new(0);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let (sender, receiver) = std::sync::mpsc::channel();
                scope.spawn({
                    let total = &total;
                    move || {
                        // SAFETY: asks for the calling thread's own handle.
                        sender.send(unsafe { libc::pthread_self() }).unwrap();
                        for _ in 0..3_000 {
                            OUTER.lock();
                            let now = total.load(Ordering::Relaxed);
                            std::hint::black_box(());
                            total.store(now + 1, Ordering::Relaxed);
                            unlock(&OUTER);
                        }
                        // Stays until no more signals are sent.
                        while !STOP.load(Ordering::Relaxed) {
                            thread::sleep(Duration::from_millis(1));
                        }
                    }
                });
                receiver.recv().unwrap()
            })
            .collect();
        for _ in 0..300 {
            for &worker in &workers {
                // SAFETY: the workers run until STOP.
                unsafe { libc::pthread_kill(worker, libc::SIGUSR1) };
            }
            thread::sleep(Duration::from_micros(200));
        }
        STOP.store(true, Ordering::Relaxed);
    });
    assert_eq!(total.load(Ordering::Relaxed), 9_000);
    assert!(HANDLED.load(Ordering::Relaxed) > 0);
}

#[test]
fn timed_out_waits_leave_two_nodes_a_thread() {
    const THREADS: u32 = 4;
    let lock = Mutex::NEW;
    lock.lock();
    let stop = AtomicBool::new(false);
    let before = arena().high_water();
    thread::scope(|scope| {
        // A live head, behind which the abandoned nodes pile up.
        scope.spawn(|| {
            lock.lock();
            unlock(&lock);
        });
        thread::sleep(Duration::from_millis(20));
        let workers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        assert!(!lock.lock_until(in_us(1)));
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        let taken = arena().high_water() - before;
        // Two abandoned and two cached nodes for each thread; the other tests' threads take some
        // too.
        assert!(taken < 4 * THREADS + 100, "{taken} nodes");
        unlock(&lock);
    });
    // The head has passed the abandoned nodes: the lock is as if they had never existed.
    assert!(lock.try_lock());
}

/// Runs `child` after `fork`, and expects it to return true.
fn in_child(fork: unsafe extern "C" fn() -> libc::pid_t, child: impl FnOnce() -> bool) {
    // SAFETY: the child runs locks and threads of ours only, and leaves by `_exit`.
    match unsafe { fork() } {
        -1 => panic!("fork failed"),
        0 => {
            // A child that hangs is a failure, not a hung test.
            // SAFETY: no pointer involved.
            unsafe { libc::alarm(20) };
            // Nor may a panic unwind into the parent's test harness.
            let well = panic::catch_unwind(AssertUnwindSafe(child)).unwrap_or(false);
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!well)) }
        }
        pid => {
            let mut status = 0;
            // SAFETY: our own child, our own word.
            assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
            assert_eq!(status, 0, "the child failed or hung");
        }
    }
}

// SAFETY: the signature of `_Fork(3)`.
unsafe extern "C" {
    /// `fork` without the handlers (glibc 2.34).
    fn _Fork() -> libc::pid_t;
}

/// The work of an allocator's `atfork` handlers: the forking thread holds the lock, others wait for
/// it; the child must be able to unlock it, lock it again, and contend for it.
fn fork_with_waiters(fork: unsafe extern "C" fn() -> libc::pid_t) {
    static LOCK: Mutex = Mutex::NEW;
    LOCK.lock();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                LOCK.lock();
                unlock(&LOCK);
            });
        }
        // Until they sleep in the queue.
        thread::sleep(Duration::from_millis(30));
        in_child(fork, || {
            unlock(&LOCK);
            LOCK.lock();
            let done = AtomicU32::new(0);
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        for _ in 0..500 {
                            LOCK.lock();
                            done.fetch_add(1, Ordering::Relaxed);
                            unlock(&LOCK);
                        }
                    });
                }
                thread::sleep(Duration::from_millis(5));
                unlock(&LOCK);
            });
            done.load(Ordering::Relaxed) == 1_500 && LOCK.try_lock()
        });
        unlock(&LOCK);
    });
}

#[test]
fn a_child_can_use_a_lock_that_its_parent_waits_for() {
    fork_with_waiters(libc::fork);
    fork_with_waiters(_Fork);
}

#[test]
fn a_child_can_use_a_condvar_that_its_parent_waits_for() {
    let lock = Mutex::NEW;
    let condvar = Condvar::<Linux>::NEW;
    let go = AtomicBool::new(false);
    let wait = || {
        lock.lock();
        while !go.load(Ordering::Relaxed) {
            condvar.wait(None, || unlock(&lock), || lock.lock());
        }
        unlock(&lock);
    };
    let tell = || {
        lock.lock();
        go.store(true, Ordering::Relaxed);
        unlock(&lock);
        condvar.notify_all();
    };
    thread::scope(|scope| {
        scope.spawn(wait);
        scope.spawn(wait);
        thread::sleep(Duration::from_millis(20));
        in_child(libc::fork, || {
            thread::scope(|scope| {
                scope.spawn(wait);
                scope.spawn(wait);
                thread::sleep(Duration::from_millis(5));
                tell();
            });
            true
        });
        tell();
    });
}

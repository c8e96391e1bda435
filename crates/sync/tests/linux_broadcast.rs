//! Broadcasts that move waiters into the queue of their mutex, on real threads.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _, Deadline};
use antiphon_sync::lock::{Published, ShflMutex};
use antiphon_sync::policy::Numa;
use antiphon_sync::wait::Condvar;

type Mutex = ShflMutex<Linux>;

fn in_us(us: u64) -> Deadline {
    Deadline { clock: Clock::Monotonic, ns: Linux::now(Clock::Monotonic) + us * 1_000 }
}

/// A barrier: the last thread to come releases all. Written only under the mutex.
struct Barrier<M> {
    mutex: M,
    all_here: Condvar<Linux>,
    here: AtomicU32,
    round: AtomicU32,
}

const THREADS: u32 = 8;

/// Meets the others; every second time with deadlines in the waits, and the broadcast after the
/// unlock.
macro_rules! meet {
    ($barrier:expr, $number:expr) => {{
        let barrier = $barrier;
        barrier.mutex.lock();
        let round = barrier.round.load(Relaxed);
        let odd = round % 2 == 1;
        let here = barrier.here.load(Relaxed) + 1;
        barrier.here.store(here, Relaxed);
        if here == THREADS {
            barrier.here.store(0, Relaxed);
            barrier.round.store(round + 1, Relaxed);
            if odd {
                // SAFETY: locked above.
                unsafe { barrier.mutex.unlock() };
                barrier.all_here.notify_all();
            } else {
                barrier.all_here.notify_all();
                // SAFETY: locked above.
                unsafe { barrier.mutex.unlock() };
            }
        } else {
            while barrier.round.load(Relaxed) == round {
                let deadline = odd.then(|| in_us(u64::from($number * 10)));
                // SAFETY: locked above, and again by each wait.
                unsafe { barrier.all_here.wait_with(&barrier.mutex, deadline) };
            }
            // SAFETY: locked above, and again by each wait.
            unsafe { barrier.mutex.unlock() };
        }
    }};
}

macro_rules! meets {
    ($mutex:ty, $rounds:expr) => {{
        let barrier = Barrier {
            mutex: <$mutex>::NEW,
            all_here: Condvar::NEW,
            here: AtomicU32::new(0),
            round: AtomicU32::new(0),
        };
        thread::scope(|scope| {
            for number in 0..THREADS {
                let barrier = &barrier;
                scope.spawn(move || {
                    for _ in 0..$rounds {
                        meet!(barrier, number);
                    }
                });
            }
        });
        assert_eq!(barrier.round.load(Relaxed), $rounds);
        assert!(!barrier.mutex.is_locked() && !barrier.all_here.has_waiters());
    }};
}

#[test]
fn nobody_is_lost_at_a_barrier() {
    meets!(Mutex, 2_000);
}

#[test]
fn nobody_is_lost_where_the_head_never_sleeps() {
    meets!(ShflMutex<Linux, Numa, Published>, 200);
}

/// Some wait with the mutex named, some with closures, some with another mutex: all are notified.
#[test]
fn a_broadcast_reaches_waiters_of_all_kinds() {
    let (mutex, other) = (Mutex::NEW, Mutex::NEW);
    let changed = Condvar::<Linux>::NEW;
    let go = AtomicU32::new(0);
    let wait = |kind: u32| {
        let mutex = if kind == 2 { &other } else { &mutex };
        mutex.lock();
        while go.load(Relaxed) == 0 {
            if kind == 1 {
                // SAFETY: locked above.
                changed.wait(None, || unsafe { mutex.unlock() }, || mutex.lock());
            } else {
                // SAFETY: locked above.
                unsafe { changed.wait_with(mutex, None) };
            }
        }
        // SAFETY: locked above, and again by the wait.
        unsafe { mutex.unlock() };
    };
    for _ in 0..100 {
        go.store(0, Relaxed);
        thread::scope(|scope| {
            for number in 0..9 {
                let wait = &wait;
                scope.spawn(move || wait(number % 3));
            }
            mutex.lock();
            other.lock();
            go.store(1, Relaxed);
            // SAFETY: locked above.
            unsafe {
                other.unlock();
                mutex.unlock();
            }
            changed.notify_all();
        });
    }
}

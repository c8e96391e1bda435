//! One validation program; every lock plugs in.

use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::thread;

use antiphon_sync::lock::Lock;

/// A lock and the value that it guards: two words that must always be equal.
pub struct Guarded<L> {
    pub lock: L,
    pair: UnsafeCell<(u64, u64)>,
}

// SAFETY: the pair is accessed only with the lock held; the tests check that this works.
unsafe impl<L: Lock> Sync for Guarded<L> {}

impl<L: Lock> Guarded<L> {
    pub const fn new() -> Self {
        Self { lock: L::NEW, pair: UnsafeCell::new((0, 0)) }
    }

    /// One critical section: the pair must be equal before, and is unequal for a moment in between.
    ///
    /// The caller holds the lock.
    pub fn step(&self) {
        // SAFETY: the lock is held.
        let pair = unsafe { &mut *self.pair.get() };
        assert_eq!(pair.0, pair.1, "two owners at a time");
        pair.0 += 1;
        std::hint::black_box(&mut *pair);
        pair.1 += 1;
    }

    /// One reader's section: the pair must be equal. Returns the number of critical sections so
    /// far.
    ///
    /// The caller holds the lock, perhaps with other readers.
    pub fn look(&self) -> u64 {
        // SAFETY: the lock is held, so no writer is in.
        let pair = unsafe { &*self.pair.get() };
        let first = std::hint::black_box(pair).0;
        assert_eq!(first, std::hint::black_box(pair).1, "a writer is in");
        first
    }

    pub fn total(&self) -> u64 {
        self.lock.lock();
        // SAFETY: the lock is held.
        let total = unsafe { (*self.pair.get()).0 };
        // SAFETY: locked above.
        unsafe { self.lock.unlock() };
        total
    }
}

/// `threads` threads do `rounds` critical sections each, every seventh by `try_lock`; `enter` is
/// called by each thread with its number first.
pub fn exclusion<L: Lock>(guarded: &Guarded<L>, threads: usize, rounds: u64, enter: fn(usize)) {
    let barrier = Barrier::new(threads);
    let before = guarded.total();
    thread::scope(|scope| {
        for number in 0..threads {
            let barrier = &barrier;
            scope.spawn(move || {
                enter(number);
                barrier.wait();
                for round in 0..rounds {
                    if round % 7 == 0 {
                        while !guarded.lock.try_lock() {
                            thread::yield_now();
                        }
                    } else {
                        guarded.lock.lock();
                    }
                    guarded.step();
                    // SAFETY: locked above.
                    unsafe { guarded.lock.unlock() };
                }
            });
        }
    });
    assert_eq!(guarded.total() - before, threads as u64 * rounds);
    assert!(guarded.lock.try_lock(), "a free lock can be tried");
    assert!(!guarded.lock.try_lock(), "a held lock can't");
    // SAFETY: locked by the first try.
    unsafe { guarded.lock.unlock() };
}

//! One validation program for locks that readers share.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use antiphon_platform::Platform;
use antiphon_sync::lock::{RwForm, ShflRwLock};
use antiphon_sync::policy::Policy;

use super::validate::Guarded;

/// `threads` threads do `rounds` sections each; one in `share` is a write, alternately plain,
/// tried, downgraded and upgraded. `enter` is called by each thread with its number first.
pub fn sharing<P: Platform, Q: Policy, F: RwForm>(
    guarded: &Guarded<ShflRwLock<P, Q, F>>,
    threads: usize,
    rounds: u64,
    share: u64,
    enter: fn(usize),
) {
    let barrier = Barrier::new(threads);
    let writes = (0..rounds).filter(|round| round % share == 0).count() as u64;
    thread::scope(|scope| {
        for number in 0..threads {
            let barrier = &barrier;
            scope.spawn(move || {
                enter(number);
                barrier.wait();
                for round in 0..rounds {
                    if round % share == 0 {
                        write(guarded, round / share);
                    } else {
                        read(guarded, round);
                    }
                }
            });
        }
    });
    assert_eq!(guarded.total(), threads as u64 * writes);
    assert!(guarded.lock.write_uncontended(), "free at the end, and kept for nobody");
    // SAFETY: acquired above.
    unsafe { guarded.lock.unlock_write() };
}

fn write<P: Platform, Q: Policy, F: RwForm>(guarded: &Guarded<ShflRwLock<P, Q, F>>, turn: u64) {
    let lock = &guarded.lock;
    match turn % 4 {
        0 => lock.write(),
        1 => {
            while !lock.try_write() {
                thread::yield_now();
            }
        }
        2 => {
            lock.upgradable();
            let before = guarded.look();
            // SAFETY: acquired above.
            unsafe { lock.upgrade() };
            assert_eq!(guarded.look(), before, "a writer came in between");
        }
        _ => {
            lock.write();
            guarded.step();
            let mine = guarded.look();
            // SAFETY: acquired above.
            unsafe { lock.downgrade() };
            assert_eq!(guarded.look(), mine, "a writer came in between");
            // SAFETY: downgraded above.
            return unsafe { lock.unlock_read() };
        }
    }
    guarded.step();
    // SAFETY: acquired above.
    unsafe { lock.unlock_write() };
}

fn read<P: Platform, Q: Policy, F: RwForm>(guarded: &Guarded<ShflRwLock<P, Q, F>>, turn: u64) {
    let lock = &guarded.lock;
    if turn.is_multiple_of(7) {
        while lock.try_read().is_err() {
            thread::yield_now();
        }
    } else {
        assert_eq!(lock.read(), Ok(()));
    }
    guarded.look();
    // SAFETY: acquired above.
    unsafe { lock.unlock_read() };
}

/// The largest number of readers that were in at the same time.
pub struct Inside {
    now: AtomicU32,
    most: AtomicU32,
}

impl Inside {
    pub const fn new() -> Self {
        Self { now: AtomicU32::new(0), most: AtomicU32::new(0) }
    }

    pub fn enter(&self) {
        let now = self.now.fetch_add(1, Relaxed) + 1;
        self.most.fetch_max(now, Relaxed);
    }

    pub fn leave(&self) {
        self.now.fetch_sub(1, Relaxed);
    }

    pub fn most(&self) -> u32 {
        self.most.load(Relaxed)
    }
}

//! Broadcasts of a condition variable, whose waiters are all woken at once: threads of all other
//! CPUs, and threads of every fourth, which the kernel may reach by fewer commands.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_metal::Metal;
use antiphon_metal::kernel::thread::{self, JoinHandle};
use antiphon_metal::kernel::{cpu, schedule};
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::wait::Condvar;

struct Herd {
    mutex: ShflMutex<Metal>,
    condvar: Condvar<Metal>,
    /// The last round that was broadcast. Both are changed with the mutex held.
    round: AtomicU64,
    /// How many waits have begun.
    begun: AtomicU64,
}

/// Returns how many waits have ended, and how many must.
pub fn run(rounds: u64) -> (u64, u64) {
    let all = herd(rounds, |number| number != 0);
    let few = herd(rounds, |number| number % 4 == 1);
    (all.0 + few.0, all.1 + few.1)
}

/// A thread of each chosen CPU waits for each round.
fn herd(rounds: u64, is_chosen: impl Fn(u32) -> bool) -> (u64, u64) {
    let herd = Arc::new(Herd {
        mutex: ShflMutex::NEW,
        condvar: Condvar::NEW,
        round: AtomicU64::new(0),
        begun: AtomicU64::new(0),
    });
    let spawn = |number: u32| {
        let herd = herd.clone();
        let body = move || (1..=rounds).filter(|&round| herd.wait(round)).count() as u64;
        thread::spawn_on(number, body).expect("memory for a thread")
    };
    let chosen = (0..cpu::count()).filter(|&number| is_chosen(number));
    let waiters: Vec<_> = chosen.map(spawn).collect();
    let count = waiters.len() as u64;
    for round in 1..=rounds {
        // Relaxed: the mutex orders.
        while herd.begun.load(Relaxed) < count * round {
            core::hint::spin_loop();
            schedule::yield_now();
        }
        herd.with(|| herd.round.store(round, Relaxed));
        herd.condvar.notify_all();
    }
    (waiters.into_iter().map(JoinHandle::join).sum(), count * rounds)
}

impl Herd {
    fn with(&self, f: impl FnOnce()) {
        self.mutex.lock();
        f();
        // SAFETY: locked above.
        unsafe { self.mutex.unlock() };
    }

    /// Waits for a broadcast of `round`; returns whether that was the last one.
    fn wait(&self, round: u64) -> bool {
        let mut seen = 0;
        self.with(|| {
            self.begun.fetch_add(1, Relaxed);
            // SAFETY: the mutex is held, and is held again.
            let unlock = || unsafe { self.mutex.unlock() };
            while self.round.load(Relaxed) < round {
                self.condvar.wait(None, unlock, || self.mutex.lock());
            }
            seen = self.round.load(Relaxed);
        });
        seen == round
    }
}

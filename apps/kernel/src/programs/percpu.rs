//! Waits in the lists of the waiters' CPUs, for `stress`: broadcasts, each of which ends each wait
//! once; and items that are announced one by one, to waiters of which half give up now and then.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_metal::Metal;
use antiphon_metal::kernel::condvar::Condvar;
use antiphon_metal::kernel::thread::{self, JoinHandle};
use antiphon_metal::kernel::{cpu, schedule};
use antiphon_metal::x86::clock;
use antiphon_sync::lock::ShflMutex;

/// For how long a waiter waits that gives up, in nanoseconds.
const PATIENCE_NS: u64 = 2_000;

/// A condition. All but the condition variable is changed with the mutex held.
struct Shared {
    mutex: ShflMutex<Metal>,
    condvar: Condvar,
    /// The last round that was broadcast; or the number of items.
    value: AtomicU64,
    /// How many waits have begun.
    begun: AtomicU64,
    /// Whether no more items come.
    is_over: AtomicU64,
}

/// Returns how many waits have ended by a broadcast, and how many items were taken; and how many
/// must be.
pub fn run(rounds: u64, threads: u32) -> (u64, u64) {
    let cpus: Vec<u32> = (0..cpu::count()).flat_map(|cpu| (0..threads).map(move |_| cpu)).collect();
    let few: Vec<u32> = cpus.iter().copied().filter(|number| number % 4 == 1).collect();
    let waited = [broadcasts(rounds, &cpus), broadcasts(rounds, &few), items(rounds, &cpus)];
    waited.into_iter().fold((0, 0), |(ended, must), one| (ended + one.0, must + one.1))
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            mutex: ShflMutex::NEW,
            condvar: Condvar::new(),
            value: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            is_over: AtomicU64::new(0),
        })
    }

    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        self.mutex.lock();
        let result = f();
        // SAFETY: locked above.
        unsafe { self.mutex.unlock() };
        result
    }

    /// Waits with the mutex held; returns whether it was notified.
    fn wait(&self, deadline_ns: Option<u64>) -> bool {
        // SAFETY: the caller has locked the mutex.
        let unlock = || unsafe { self.mutex.unlock() };
        self.condvar.wait(deadline_ns, unlock, || self.mutex.lock())
    }

    /// Waits for a broadcast of `round`; returns how many waits that took.
    fn wait_for(&self, round: u64) -> u64 {
        self.with(|| {
            // Relaxed, here and below: the mutex orders.
            self.begun.fetch_add(1, Relaxed);
            let mut waits = 0;
            while self.value.load(Relaxed) < round {
                waits += u64::from(self.wait(None));
            }
            waits
        })
    }

    /// Takes an item; `false` if no more come.
    fn take(&self, gives_up: bool) -> bool {
        self.with(|| {
            while self.value.load(Relaxed) == 0 && self.is_over.load(Relaxed) == 0 {
                let deadline_ns = gives_up.then(|| clock::now_ns() + PATIENCE_NS);
                let _ = self.wait(deadline_ns);
            }
            let items = self.value.load(Relaxed);
            self.value.store(items.saturating_sub(1), Relaxed);
            items > 0
        })
    }
}

/// A thread for each entry of `cpus`, which is the number of its CPU.
fn spawn(cpus: &[u32], body: impl Fn(u64) -> u64 + Clone + Send + 'static) -> Vec<JoinHandle<u64>> {
    let spawn = |(number, &cpu): (u64, &u32)| {
        let body = body.clone();
        thread::spawn_on(cpu, move || body(number)).expect("memory for a thread")
    };
    (0..).zip(cpus).map(spawn).collect()
}

fn broadcasts(rounds: u64, cpus: &[u32]) -> (u64, u64) {
    let shared = Shared::new();
    let ours = shared.clone();
    let waiters = spawn(cpus, move |_| (1..=rounds).map(|round| ours.wait_for(round)).sum());
    let count = cpus.len() as u64;
    for round in 1..=rounds {
        while shared.begun.load(Relaxed) < count * round {
            core::hint::spin_loop();
            schedule::yield_now();
        }
        // All that have begun wait: they had the mutex until then.
        shared.with(|| shared.value.store(round, Relaxed));
        shared.condvar.notify_all();
    }
    (waiters.into_iter().map(JoinHandle::join).sum(), count * rounds)
}

fn items(rounds: u64, cpus: &[u32]) -> (u64, u64) {
    let shared = Shared::new();
    let ours = shared.clone();
    let take = move |number: u64| {
        let mut taken = 0;
        while ours.take(number % 2 == 1) {
            taken += 1;
        }
        taken
    };
    let takers = spawn(cpus, take);
    for round in 0..rounds {
        shared.with(|| shared.value.fetch_add(1, Relaxed));
        shared.condvar.notify_one();
        if round % 8 == 0 {
            // Until all wait: a notification that was lost would leave an item.
            while shared.with(|| shared.value.load(Relaxed)) > 0 {
                core::hint::spin_loop();
                schedule::yield_now();
            }
        }
    }
    shared.with(|| shared.is_over.store(1, Relaxed));
    shared.condvar.notify_all();
    (takers.into_iter().map(JoinHandle::join).sum(), rounds)
}

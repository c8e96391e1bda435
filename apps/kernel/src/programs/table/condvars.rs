//! Condition variables: a thread of each CPU waits, and notes the time when it runs again. How that
//! of `antiphon-sync` wakes it is a mode of the kernel; with the kernel's own, its CPU does.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Release};

use antiphon_metal::Metal;
use antiphon_metal::kernel::condvar as percpu;
use antiphon_metal::kernel::cpu;
use antiphon_metal::kernel::thread::{self, JoinHandle};
use antiphon_metal::x86::{apic, clock, vectors};
use antiphon_sync::wait::Condvar;

use super::mechanism::{Mechanism, note};

/// A condition variable.
pub trait Waits: Send + Sync + 'static {
    /// Creates one that no thread waits for.
    fn new() -> Self;

    /// Waits, calls `begun` when a notification can't be missed any more, and notes when it came.
    fn wait(&self, begun: impl FnOnce());
    fn notify_one(&self);
    fn notify_all(&self);
}

impl Waits for Condvar<Metal> {
    fn new() -> Self {
        Self::NEW
    }

    fn wait(&self, begun: impl FnOnce()) {
        let entry = self.prepare();
        begun();
        while !entry.sleep(None) {}
        note();
        // SAFETY: the same condition variable has prepared the entry. The result is known: a
        // notification.
        let _ = unsafe { self.finish(entry) };
    }

    fn notify_one(&self) {
        self.notify_one();
    }

    fn notify_all(&self) {
        self.notify_all();
    }
}

impl Waits for percpu::Condvar {
    fn new() -> Self {
        Self::new()
    }

    fn wait(&self, begun: impl FnOnce()) {
        let _ = self.wait(None, begun, note);
    }

    fn notify_one(&self) {
        self.notify_one();
    }

    fn notify_all(&self) {
        self.notify_all();
    }
}

/// The waiters, and the words that they wait for.
pub struct Condvars<C> {
    shared: Arc<Shared<C>>,
    waiters: Vec<JoinHandle<()>>,
    /// The time between two ticks of an idle CPU, over which trials are spread; 0 if it has none.
    tick_ns: u64,
    trials: usize,
}

struct Shared<C> {
    /// For each CPU, the condition variable for which only its thread waits.
    own: Vec<C>,
    all: C,
    /// For each of them, the number of times that threads were about to wait; the common one last.
    begun: Vec<AtomicU32>,
}

impl<C: Waits> Shared<C> {
    /// Waits once: for the condition variable of CPU `index`, or for the common one.
    fn wait(&self, index: usize) {
        let condvar = self.own.get(index).unwrap_or(&self.all);
        // Release: pairs with the acquire in `ready`.
        condvar.wait(|| _ = self.begun[index].fetch_add(1, Release));
    }
}

impl<C: Waits> Condvars<C> {
    /// Starts a thread on each other CPU, which waits `trials` times alone, and then `trials` times
    /// together with the others.
    pub fn new(trials: usize, tick_ns: u64) -> Self {
        // CPUs that were halted in the earlier mode must check again.
        apic::send_to_others(vectors::KICK);
        let count = cpu::count() as usize;
        let shared = Arc::new(Shared {
            own: (0..count).map(|_| C::new()).collect(),
            all: C::new(),
            begun: (0..=count).map(|_| AtomicU32::new(0)).collect(),
        });
        let waiter = |number: u32| {
            let shared = shared.clone();
            let body = move || {
                (0..trials).for_each(|_| shared.wait(number as usize));
                (0..trials).for_each(|_| shared.wait(count));
            };
            thread::spawn_on(number, body).expect("memory for a thread")
        };
        let waiters = (1..cpu::count()).map(waiter).collect();
        Self { shared, waiters, tick_ns, trials }
    }

    /// Waits until `times` waits for `index` have begun.
    fn wait(&self, index: usize, times: usize, trial: usize) {
        // Acquire: pairs with the release in `Shared::wait`.
        while (self.shared.begun[index].load(Acquire) as usize) < times {
            core::hint::spin_loop();
        }
        clock::delay_ns(self.tick_ns * trial as u64 / self.trials as u64);
    }
}

impl<C: Waits> Mechanism for Condvars<C> {
    fn ready(&self, target: u32, trial: usize) {
        self.wait(target as usize, trial + 1, trial);
    }

    fn unicast(&self, target: u32) {
        self.shared.own[target as usize].notify_one();
    }

    fn has_own(&self) -> bool {
        false
    }

    fn ready_all(&self, trial: usize) {
        let count = self.shared.own.len();
        self.wait(count, (trial + 1) * (count - 1), trial);
    }

    fn broadcast(&self) {
        self.shared.all.notify_all();
    }
}

impl<C> Drop for Condvars<C> {
    fn drop(&mut self) {
        core::mem::take(&mut self.waiters).into_iter().for_each(JoinHandle::join);
    }
}

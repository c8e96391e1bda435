//! A store to a cache line that receivers read: only the coherence network notifies them. Each
//! receiver has its CPU to itself meanwhile.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicUsize};

use antiphon_metal::kernel::cpu::{self, Apart};
use antiphon_metal::kernel::thread::{self, JoinHandle};
use antiphon_metal::x86::cpu::{restore, watch_with_interrupts, without_interrupts};

use super::mechanism::{Mechanism, note};

/// The way in which a receiver waits for its line.
#[derive(Clone, Copy)]
pub enum Wait {
    /// It reads it again and again.
    Poll,
    /// The processor watches the line (MONITOR, MWAIT). The caller has checked that it can.
    Watch,
}

/// A line for each CPU, and one for all.
pub struct Line {
    shared: Arc<Shared>,
    receivers: Vec<JoinHandle<()>>,
}

struct Shared {
    wait: Wait,
    /// The number of stores to each line, the common one last.
    told: Vec<Apart<AtomicUsize>>,
    /// The number of times that receivers were about to read each line.
    begun: Vec<AtomicU32>,
}

impl Shared {
    /// Waits until the line was written to `times` times.
    fn wait(&self, index: usize, times: usize) {
        let line = &self.told[index].0;
        self.begun[index].fetch_add(1, Release);
        // Acquire: pairs with the release in `tell`.
        let told = || line.load(Acquire) >= times;
        while !told() {
            match self.wait {
                Wait::Poll => core::hint::spin_loop(),
                Wait::Watch => {
                    let were_on = without_interrupts();
                    // SAFETY: the caller of `new` has checked that the processor has MONITOR and
                    // MWAIT. The line is a reference's.
                    unsafe { watch_with_interrupts(line, told) };
                    restore(were_on);
                }
            }
        }
        note();
    }

    fn tell(&self, index: usize) {
        let line = &self.told[index].0;
        // Relaxed: only the sender writes it. Release: pairs with the acquire in `wait`.
        line.store(line.load(Relaxed) + 1, Release);
    }

    fn ready(&self, index: usize, times: usize) {
        // Acquire: pairs with the release in `wait`.
        while (self.begun[index].load(Acquire) as usize) < times {
            core::hint::spin_loop();
        }
    }
}

impl Line {
    /// Starts a thread on each other CPU, which waits `trials` times alone, and then `trials` times
    /// together with the others.
    pub fn new(wait: Wait, trials: usize) -> Self {
        let count = cpu::count() as usize;
        let shared = Arc::new(Shared {
            wait,
            told: (0..=count).map(|_| Apart(AtomicUsize::new(0))).collect(),
            begun: (0..=count).map(|_| AtomicU32::new(0)).collect(),
        });
        let receiver = |number: u32| {
            let shared = shared.clone();
            let body = move || {
                (1..=trials).for_each(|trial| shared.wait(number as usize, trial));
                (1..=trials).for_each(|trial| shared.wait(count, trial));
            };
            thread::spawn_on(number, body).expect("memory for a thread")
        };
        let receivers = (1..cpu::count()).map(receiver).collect();
        Self { shared, receivers }
    }
}

impl Mechanism for Line {
    fn ready(&self, target: u32, trial: usize) {
        self.shared.ready(target as usize, trial + 1);
    }

    fn unicast(&self, target: u32) {
        self.shared.tell(target as usize);
    }

    fn has_own(&self) -> bool {
        false
    }

    fn ready_all(&self, trial: usize) {
        let count = self.shared.told.len() - 1;
        self.shared.ready(count, (trial + 1) * (count - 1));
    }

    fn broadcast(&self) {
        self.shared.tell(self.shared.told.len() - 1);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        core::mem::take(&mut self.receivers).into_iter().for_each(JoinHandle::join);
    }
}

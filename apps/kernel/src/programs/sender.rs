//! The sender's part of a wake: what `notify_one` takes until it returns.
//!
//! It is measured apart from the whole path, whose figure ends at the waiter: a model of many CPUs
//! needs both parts (`antiphon-lab sim events`).

use alloc::sync::Arc;
use alloc::vec::Vec;

use antiphon_metal::Metal;
use antiphon_metal::kernel::thread;
use antiphon_metal::x86::clock;
use antiphon_metal::x86::cpu::tsc_unordered;
use antiphon_sync::wait::Condvar;

/// Wakes a thread of CPU 1 `trials` times. `settle_ns` is the time that its CPU gets to halt again.
pub fn notify_one(trials: usize, settle_ns: u64) -> Vec<u64> {
    let condvar = Arc::new(Condvar::<Metal>::NEW);
    let ours = condvar.clone();
    let waiter = thread::spawn_on(1, move || {
        for _ in 0..trials {
            let entry = ours.prepare();
            while !entry.sleep(None) {}
            // SAFETY: the same condition variable has prepared the entry.
            let _ = unsafe { ours.finish(entry) };
        }
    });
    let trial = |_| {
        clock::delay_ns(settle_ns);
        let began = tsc_unordered();
        condvar.notify_one();
        let sent = tsc_unordered();
        core::hint::spin_loop();
        sent - began
    };
    let trials = (0..trials).map(trial).collect();
    waiter.expect("memory for a thread").join();
    trials
}

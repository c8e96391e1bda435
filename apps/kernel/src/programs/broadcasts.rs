//! Broadcasts for `stress`: each CPU broadcasts one action, and is itself interrupted right after
//! each broadcast. The total is wrong if a CPU runs its own broadcasts, or another's twice.

use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_metal::kernel::{cpu, message, thread};

/// Runs of the action on all CPUs.
static RUNS: AtomicU64 = AtomicU64::new(0);

fn count(_: usize) {
    RUNS.fetch_add(1, Relaxed);
}

fn nothing(_: usize) {}

/// Makes about `rounds` broadcasts. Returns the number of runs of their action, and the number that
/// there must be.
pub fn run(rounds: u64) -> (u64, u64) {
    let cpus = u64::from(cpu::count());
    let each = (rounds / cpus).max(1);
    let expected = cpus * each * (cpus - 1);
    let action = message::register_broadcast(count, 0).expect("an action of the kernel");
    let own = message::register(nothing, 0).expect("an action of the kernel");
    let body = move || {
        for _ in 0..each {
            message::broadcast(action);
            message::post(cpu::number(), own);
        }
    };
    let threads: Vec<_> = (0..cpu::count())
        .map(|number| thread::spawn_on(number, body).expect("memory for a thread"))
        .collect();
    threads.into_iter().for_each(thread::JoinHandle::join);
    let mut looks = 0;
    while RUNS.load(Relaxed) < expected && looks < 1000 {
        thread::sleep_ns(20_000);
        looks += 1;
    }
    message::unregister_broadcast(action).expect("it is registered");
    message::unregister(own).expect("it is registered");
    (RUNS.load(Relaxed), expected)
}

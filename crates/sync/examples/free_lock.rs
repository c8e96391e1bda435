//! What a free lock costs: nanoseconds of a lock and an unlock of the mutex, the spinlock, the
//! readers-writer lock (to write), and the mutex with the light unlock; the least of many turns. To
//! compare two versions, run their programs in turn. `cargo run --release -p antiphon-sync
//! --example free_lock`

use std::hint::black_box;
use std::time::Instant;

use antiphon_linux::Linux;
use antiphon_linux::light::enable_light;
use antiphon_sync::lock::{Lock, ShflMutex, ShflRwLock, ShflSpin};

const TURNS: usize = 60;
const PAIRS: u32 = 20_000;

fn least_ns<L: Lock>() -> f64 {
    let lock = L::NEW;
    let lock = black_box(&lock);
    let turn = || {
        let begin = Instant::now();
        for _ in 0..PAIRS {
            lock.lock();
            // SAFETY: locked above.
            unsafe { lock.unlock() };
        }
        begin.elapsed().as_nanos() as f64 / f64::from(PAIRS)
    };
    (0..TURNS).map(|_| turn()).fold(f64::MAX, f64::min)
}

fn main() {
    println!("mutex {:.3} ns", least_ns::<ShflMutex<Linux>>());
    println!("spinlock {:.3} ns", least_ns::<ShflSpin<Linux>>());
    println!("writer {:.3} ns", least_ns::<ShflRwLock<Linux>>());
    match enable_light() {
        Ok(()) => println!("mutex, light {:.3} ns", least_ns::<ShflMutex<Linux>>()),
        Err(unsupported) => println!("no light unlock here: {unsupported:?}"),
    }
}

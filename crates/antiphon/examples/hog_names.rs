//! A pool's report of hogs: a pool of fibers, with one fiber that computes a sum and never lets
//! others run, and one that waits beside it.
//!
//! `cargo run --release -p antiphon --features name_hogs --example hog_names`

use std::hint::black_box;
use std::time::{Duration, Instant};

use antiphon::fiber::{STACK_BYTES, sleep};
use antiphon::pool::{Pool, recording::Part};

const PATIENCE: Duration = Duration::from_millis(10);

#[inline(never)]
fn sums_for(time: Duration) -> u64 {
    let (begun, mut sum) = (Instant::now(), 0_u64);
    while begun.elapsed() < time {
        sum = (0..1_000).fold(sum, |sum, number| sum.wrapping_mul(31).wrapping_add(number));
    }
    black_box(sum)
}

fn main() -> std::io::Result<()> {
    // SAFETY: no fiber waits while it makes a thread-local.
    let fibers = unsafe { Pool::builder().threads(1).name("demo").fibers(STACK_BYTES) };
    let pool = fibers.patience(PATIENCE).name_hogs(true).build()?;
    let beside = pool.spawn(|| {
        for _ in 0..20 {
            sleep(PATIENCE / 10);
        }
    });
    sleep(PATIENCE / 2);
    let hog = pool.spawn(|| sums_for(PATIENCE * 10));
    for task in [beside, pool.spawn(move || drop(hog.join()))] {
        task.join().expect("no panic");
    }
    for hog in pool.hogs() {
        println!("{hog}");
    }
    let recording = pool.recording();
    println!("{}\n", recording.latency(PATIENCE));
    for task in recording.worst(Part::Hogged, 3) {
        let spent = Part::ALL.map(|part| {
            format!("{} {:.1?}", part.name(), Duration::from_nanos(task.spent_ns(part)))
        });
        println!("task {}: {}", task.number, spent.join(", "));
    }
    Ok(())
}

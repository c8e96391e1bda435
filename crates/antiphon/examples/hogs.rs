//! Measures how long short tasks wait in a pool of two threads while none, one or all workers are
//! in tasks of a second, with backup threads and without; and the cost of an empty task.
//!
//! `cargo run --release -p antiphon --example hogs`

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use antiphon::pool::Pool;

const HOG: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_millis(10);
const PACE: Duration = Duration::from_micros(100);

/// Returns the sorted times from spawn to begin of tasks spawned each `PACE` while the hogs run.
fn waits(spares: usize, hogs: usize) -> std::io::Result<Vec<Duration>> {
    let pool = Pool::builder().threads(2).spares(spares).patience(PATIENCE).build()?;
    let (began, begun) = mpsc::channel();
    for _ in 0..hogs {
        let began = began.clone();
        drop(pool.spawn(move || {
            let start = Instant::now();
            began.send(()).expect("main waits");
            while start.elapsed() < HOG {
                std::hint::spin_loop();
            }
        }));
    }
    begun.iter().take(hogs).for_each(drop);
    let start = Instant::now();
    let mut handles = Vec::new();
    while start.elapsed() < HOG {
        let spawned = Instant::now();
        handles.push(pool.spawn(move || spawned.elapsed()));
        thread::sleep(PACE);
    }
    let mut waits: Vec<_> =
        handles.into_iter().map(|handle| handle.join().expect("it does not panic")).collect();
    waits.sort_unstable();
    Ok(waits)
}

/// Returns the cost of spawning, running and joining a task: the best of several rounds.
fn cost() -> std::io::Result<Duration> {
    const TASKS: u32 = 1_000;
    let pool: &'static Pool = Box::leak(Box::new(Pool::new(1)?));
    let round = || {
        let start = Instant::now();
        let handles: Vec<_> = (0..TASKS).map(|_| pool.spawn(|| ())).collect();
        handles.into_iter().for_each(|handle| handle.join().expect("it does not panic"));
        start.elapsed() / TASKS
    };
    Ok(pool.run(|| (0..2_000).map(|_| round()).min()).unwrap_or_default())
}

fn main() -> std::io::Result<()> {
    println!("a task that does nothing: {:?}\n", cost()?);
    println!("{:>6} {:>6} {:>12} {:>12} {:>12}", "hogs", "spares", "p50", "p99", "p99.99");
    for (hogs, spares) in [(0, 2), (1, 0), (1, 2), (2, 0), (2, 2)] {
        let waits = waits(spares, hogs)?;
        let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
        let [p50, p99, most] = [0.5, 0.99, 0.9999].map(at).map(|wait| format!("{wait:.1?}"));
        println!("{hogs:>6} {spares:>6} {p50:>12} {p99:>12} {most:>12}");
    }
    Ok(())
}

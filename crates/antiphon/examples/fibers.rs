//! Measures the costs of fibers: making and joining a fiber, yielding, waiting for each other, and
//! the memory of many waiting fibers.
//!
//! ```text
//! cargo run --release -p antiphon --example fibers -- [FIBERS [TIMES]]
//! ```
//!
//! Both default to a million. TIMES is the number of operations in each measurement but that of
//! memory, rounded down to thousands.

use std::env;
use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use antiphon::fiber::{self, yield_now, yield_soft};
use antiphon::pool::{Builder, Pool};
use antiphon::{Event, Latch};

const MILLION: u32 = 1_000_000;
/// The number of fibers that exist at a time.
const BATCH: u32 = 1000;

fn main() {
    let mut arguments = env::args().skip(1);
    let mut number = |least, what| match arguments.next().map(|text| text.parse()) {
        None => MILLION,
        Some(Ok(number)) if number >= least => number,
        Some(_) => {
            eprintln!("fibers: {what} is a number from {least} on; usage: fibers [FIBERS [TIMES]]");
            std::process::exit(2);
        }
    };
    let (fibers, times) = (number(1, "FIBERS"), number(BATCH, "TIMES"));
    of_tasks(times);
    let pool = of_fibers().threads(1).build().expect("a pool");
    yields(&pool, "yield_now", times, yield_now);
    yields(&pool, "yield_soft", times, yield_soft);
    events(&pool, times);
    drop(pool);
    wait(fibers as usize);
}

/// Measures the time to make, run and join a task.
fn of_tasks(times: u32) {
    let per_one = |took: Duration| took.as_nanos() / u128::from(times / BATCH * BATCH);
    for (name, builder) in [("closures", Pool::builder()), ("fibers", of_fibers())] {
        let pool = Arc::new(builder.threads(1).build().expect("a pool"));
        let inner = pool.clone();
        let took = pool.spawn(move || {
            let began = Instant::now();
            for _ in 0..times / BATCH {
                inner.scope(|scope| (0..BATCH).for_each(|n| scope.spawn(move || _ = black_box(n))));
            }
            began.elapsed()
        });
        let took = took.join().expect("no panic");
        println!("{name}: {} ns to spawn and run one of a scope", per_one(took));
        let inner = pool.clone();
        let took = pool.spawn(move || {
            let began = Instant::now();
            for _ in 0..times / BATCH {
                let all: Vec<_> = (0..BATCH).map(|n| inner.spawn(move || black_box(n))).collect();
                all.into_iter().for_each(|task| _ = task.join());
            }
            began.elapsed()
        });
        let took = took.join().expect("no panic");
        println!("{name}: {} ns to spawn and join one", per_one(took));
    }
}

/// Measures the time of a wake-up from one fiber to another, and back.
fn events(pool: &Pool, times: u32) {
    let (ping, pong) = (Event::new(), Event::new());
    let began = Instant::now();
    pool.scope(|scope| {
        scope.spawn(|| {
            (0..times).for_each(|_| {
                ping.wait();
                pong.set();
            })
        });
        scope.spawn(|| {
            (0..times).for_each(|_| {
                ping.set();
                pong.wait();
            })
        });
    });
    println!(
        "an event from one to the other: {} ns",
        began.elapsed().as_nanos() / (2 * u128::from(times))
    );
}

fn of_fibers() -> Builder {
    // SAFETY: no fiber waits while it makes a thread-local.
    unsafe { Pool::builder().fibers(fiber::STACK_BYTES) }
}

/// Measures the time of a yield, with several numbers of fibers.
fn yields(pool: &Pool, name: &str, times: u32, yields: impl Fn() + Send + Copy) {
    for count in [1, 2, 100, BATCH] {
        let began = Instant::now();
        pool.scope(|scope| {
            for _ in 0..count {
                scope.spawn(move || (0..times / count).for_each(|_| yields()));
            }
        });
        let took = began.elapsed().as_nanos() / u128::from(times / count * count);
        println!("{name}: {took} ns, {count} fibers");
    }
}

/// Measures the memory of `fibers` waiting fibers.
fn wait(fibers: usize) {
    let pool = of_fibers().threads(2).room(1 << 20).build();
    let pool = pool.expect("a pool");
    let (open, here) = (Arc::new(Latch::new(1)), Arc::new(AtomicUsize::new(0)));
    let (before, began) = (resident(), Instant::now());
    for _ in 0..fibers {
        let (open, here) = (open.clone(), here.clone());
        drop(pool.spawn(move || {
            here.fetch_add(1, Relaxed);
            open.wait();
            here.fetch_sub(1, Relaxed);
        }));
    }
    while here.load(Relaxed) < fibers {
        thread::yield_now();
    }
    let bytes = resident() - before;
    println!(
        "{fibers} that wait: {:.2} GB resident, {} bytes each, after {:?}",
        bytes as f64 / 1e9,
        bytes / fibers.max(1),
        began.elapsed()
    );
    let began = Instant::now();
    open.count_down(1);
    while here.load(Relaxed) > 0 {
        thread::yield_now();
    }
    println!("all have gone on after {:?}", began.elapsed());
}

/// Returns the resident memory of the process, in bytes.
fn resident() -> usize {
    let told = fs::read_to_string("/proc/self/statm").expect("a file of the kernel's");
    let pages = told.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    4096 * pages.expect("a number")
}

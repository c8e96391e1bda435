//! What fibers cost: to make and join one, to yield, to wait for each other; and what so many that
//! wait take of memory.
//!
//! ```text
//! cargo run --release -p antiphon --example fibers -- [FIBERS]
//! ```

use std::env;
use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use antiphon::fiber::{self, yield_now, yield_soft};
use antiphon::pool::{Builder, Pool};
use antiphon::{Event, Latch};

const TIMES: u32 = 1_000_000;

fn main() {
    let arg = env::args().nth(1);
    let fibers = arg.map_or(Ok(1_000_000), |arg| arg.parse::<usize>());
    let Ok(fibers) = fibers else {
        eprintln!("fibers: how many fibers are to wait? A number");
        std::process::exit(2);
    };
    for (name, builder) in [("closures", Pool::builder()), ("fibers", of_fibers())] {
        let pool = Arc::new(builder.threads(1).build().expect("a pool"));
        let inner = pool.clone();
        let took = pool.spawn(move || {
            let began = Instant::now();
            for _ in 0..TIMES / 1000 {
                inner.scope(|scope| (0..1000).for_each(|n| scope.spawn(move || _ = black_box(n))));
            }
            began.elapsed()
        });
        let took = took.join().expect("no panic");
        println!(
            "{name}: {} ns to spawn and run one of a scope",
            took.as_nanos() / u128::from(TIMES)
        );
        let inner = pool.clone();
        let took = pool.spawn(move || {
            let began = Instant::now();
            for _ in 0..TIMES / 1000 {
                let all: Vec<_> = (0..1000).map(|n| inner.spawn(move || black_box(n))).collect();
                all.into_iter().for_each(|task| _ = task.join());
            }
            began.elapsed()
        });
        let took = took.join().expect("no panic");
        println!("{name}: {} ns to spawn and join one", took.as_nanos() / u128::from(TIMES));
    }
    let pool = of_fibers().threads(1).build().expect("a pool");
    yields(&pool, "yield_now", yield_now);
    yields(&pool, "yield_soft", yield_soft);
    let (ping, pong) = (Event::new(), Event::new());
    let began = Instant::now();
    pool.scope(|scope| {
        scope.spawn(|| {
            (0..TIMES).for_each(|_| {
                ping.wait();
                pong.set();
            })
        });
        scope.spawn(|| {
            (0..TIMES).for_each(|_| {
                ping.set();
                pong.wait();
            })
        });
    });
    println!(
        "an event from one to the other: {} ns",
        began.elapsed().as_nanos() / u128::from(2 * TIMES)
    );
    drop(pool);
    wait(fibers);
}

fn of_fibers() -> Builder {
    // SAFETY: no thread-local is made by what waits.
    unsafe { Pool::builder().fibers(fiber::STACK_BYTES) }
}

/// So many fibers in turn.
fn yields(pool: &Pool, name: &str, yields: impl Fn() + Send + Copy) {
    for count in [1, 2, 100, 1000] {
        let began = Instant::now();
        pool.scope(|scope| {
            for _ in 0..count {
                scope.spawn(move || (0..TIMES / count).for_each(|_| yields()));
            }
        });
        let took = began.elapsed().as_nanos() / u128::from(TIMES);
        println!("{name}: {took} ns, {count} fibers");
    }
}

/// So many that wait.
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

/// Bytes of memory that the process has.
fn resident() -> usize {
    let told = fs::read_to_string("/proc/self/statm").expect("a file of the kernel's");
    let pages = told.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    4096 * pages.expect("a number")
}

//! A program to inspect while it runs: requests that wait for one of two connections, and a report
//! that now and then computes a long sum, all on the same threads.
//!
//! `cargo run --release -p antiphon --features name_hogs --example looked_at -- 60` runs for that
//! number of seconds; meanwhile run `antiphon top`.

use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

use antiphon::fiber::{STACK_BYTES, sleep};
use antiphon::pool::Pool;
use antiphon::{Semaphore, look};

static CONNECTIONS: Semaphore = Semaphore::new(2);

const PATIENCE: Duration = Duration::from_millis(10);
const QUERY: Duration = Duration::from_millis(2);
const BETWEEN: Duration = Duration::from_micros(1500);

fn answers_a_request() {
    let _connection = CONNECTIONS.acquire();
    sleep(QUERY);
}

#[inline(never)]
fn sums_up(time: Duration) -> u64 {
    let (begun, mut sum) = (Instant::now(), 0_u64);
    while begun.elapsed() < time {
        sum = (0..1_000).fold(sum, |sum, number| sum.wrapping_mul(31).wrapping_add(number));
    }
    black_box(sum)
}

fn main() -> io::Result<()> {
    let seconds = std::env::args().nth(1).map_or(Ok(60), |text| text.parse());
    let seconds = seconds.map_err(|_| io::Error::other("how many seconds? a whole number"))?;
    let end = Instant::now() + Duration::from_secs(seconds);
    look::open()?;
    // SAFETY: no fiber waits while it makes a thread-local.
    let fibers = unsafe { Pool::builder().threads(2).name("server").fibers(STACK_BYTES) };
    let pool = fibers.patience(PATIENCE).spares(0).name_hogs(true).build()?;
    let report = pool.spawn(move || {
        while Instant::now() < end {
            sums_up(5 * PATIENCE);
            sleep(20 * PATIENCE);
        }
    });
    while Instant::now() < end {
        drop(pool.spawn(answers_a_request));
        sleep(BETWEEN);
    }
    report.join().map_err(|_| io::Error::other("the report has panicked"))
}

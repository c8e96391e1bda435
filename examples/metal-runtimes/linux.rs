//! The system under the program on Linux.

use std::fmt::Arguments;
use std::process::exit;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use antiphon::pool::Pool;
use antiphon_metal::options::Options;

use crate::fibonacci::Counted;

pub use antiphon::pool::join;

/// The size of the tree: some milliseconds, far more than it takes to wake a thread.
pub const SIZE: u64 = 26;

/// The program. Its options are the command line's words.
pub fn main() {
    let words: Vec<_> = std::env::args().skip(1).collect();
    match crate::measure(Options(&words.join(" "))) {
        Some(true) => {}
        Some(false) => {
            eprintln!("a result is wrong");
            exit(1);
        }
        None => {
            eprintln!(
                "options: n=N up to 30, rounds=N up to 64, cpus=N; and threads can be started"
            );
            exit(2);
        }
    }
}

pub fn print(line: &Arguments<'_>) {
    println!("{line}");
}

/// Nanoseconds since the first call.
pub fn now() -> u64 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let passed = BEGAN.get_or_init(Instant::now).elapsed();
    u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)
}

/// Nothing: threads run at once.
#[inline]
pub fn pause() {}

/// A number of the calling thread.
pub fn thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static OWN: u64 = NEXT.fetch_add(1, Relaxed);
    }
    OWN.with(|own| *own)
}

/// `cpus=N`, or all CPUs.
pub fn workers(options: Options<'_>) -> usize {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    options.number("cpus", all as u64).map_or(all, |cpus| cpus as usize)
}

/// The system does that.
pub fn share_cpus() {}

/// Nothing was ported.
pub fn print_ports() {}

/// Our pool.
pub struct Ours(Pool);

impl Ours {
    pub fn start(workers: usize) -> Option<Self> {
        Pool::new(workers.max(1)).ok().map(Self)
    }

    pub fn run(&self, tree: impl FnOnce() -> Counted + Send + 'static) -> Counted {
        self.0.run(tree)
    }
}

//! Measures how well the signs of crowding distinguish a busy machine from an idle one.
//!
//! Threads of this program spin while another one works, with 0, 2 and 8 busy processes as
//! neighbours, and read the signs after each spin. The output has the shares of `true` answers. In
//! rows without neighbours and with no more threads than CPUs, these are false alarms, if the
//! machine is otherwise idle. `CPU got` is the share of the requested CPU time that each waiter
//! got, `others` the number of CPUs that other processes used, including the neighbours. A negative
//! `nice` hides other load on the machine.
//!
//! ```sh
//! cargo run --release -p antiphon-linux --example crowded
//! ```

use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

use antiphon_linux::{Linux, U8, crowding};
use antiphon_platform::{Atomic, Budget, Hint, Hints as _};

const SPIN: Budget = Budget::ns(20_000);
const RUN: Duration = Duration::from_millis(1_000);
/// Lengths of gaps between two readings of a spinner's clock, in µs.
const GAPS_US: [u128; 4] = [15, 50, 200, 500];

/// The work of a waiter between two spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    /// Spins again.
    Nothing,
    /// Sleeps for 50 µs, like a parked waiter.
    Sleep,
    /// Computes for 200 µs, like a thread that contends occasionally.
    Work,
}

/// The observations of all waiters together.
#[derive(Default)]
struct Seen {
    /// Number of CPUs that other processes used meanwhile.
    others: f64,
    asked: u64,
    spinners: u64,
    preempted: u64,
    switched: u64,
    any: u64,
    /// Gaps longer than each of [`GAPS_US`]; watched for half of the time.
    gaps: [u64; GAPS_US.len()],
    cpu: Duration,
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("busy") {
        antiphon_linux::end_with_parent();
        loop {
            core::hint::spin_loop();
        }
    }
    println!(
        "{:>10} {:>7} {:>8} | {:>8} {:>9} {:>8} {:>7} | gaps/s > {:?} µs | CPU got others",
        "neighbours", "waiters", "between", "spinners", "preempted", "switched", "crowded", GAPS_US
    );
    for neighbours in [0, 2, 8] {
        let children: Vec<_> = (0..neighbours).map(|_| busy()).collect();
        thread::sleep(Duration::from_millis(200));
        for waiters in [1, 3] {
            for between in [Between::Nothing, Between::Sleep, Between::Work] {
                let seen = measure(waiters, between);
                print_row(neighbours, &seen, waiters, between);
            }
        }
        for mut child in children {
            child.kill().expect("a busy child can be killed");
            child.wait().expect("a killed child ends");
        }
    }
    cost();
}

fn busy() -> Child {
    let own = std::env::current_exe().expect("this program has a file");
    Command::new(own).arg("busy").spawn().expect("a second copy starts")
}

fn measure(waiters: usize, between: Between) -> Seen {
    let begin = (busy_time(), cpu_time(libc::CLOCK_PROCESS_CPUTIME_ID));
    let over = AtomicBool::new(false);
    let each: Vec<_> = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                core::hint::spin_loop();
            }
        });
        let waiters: Vec<_> =
            (0..waiters).map(|_| scope.spawn(|| wait_until(&over, between))).collect();
        thread::sleep(RUN);
        over.store(true, Relaxed);
        waiters.into_iter().map(|waiter| waiter.join().expect("a waiter ends")).collect()
    });
    let own = cpu_time(libc::CLOCK_PROCESS_CPUTIME_ID) - begin.1;
    let others = busy_time().saturating_sub(begin.0).saturating_sub(own);
    let all = Seen { others: others.as_secs_f64() / RUN.as_secs_f64(), ..Seen::default() };
    each.into_iter().fold(all, Seen::and)
}

impl Seen {
    fn and(mut self, one: Self) -> Self {
        self.asked += one.asked;
        self.spinners += one.spinners;
        self.preempted += one.preempted;
        self.switched += one.switched;
        self.any += one.any;
        self.cpu += one.cpu;
        for (sum, one) in self.gaps.iter_mut().zip(one.gaps) {
            *sum += one;
        }
        self
    }
}

/// CPU time that all processes together have used.
fn busy_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/stat").expect("procfs");
    let ticks: Vec<u64> =
        stat.split_whitespace().skip(1).map_while(|word| word.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq: all but the idle ones, in hundredths.
    let busy = [0, 1, 2, 5, 6].into_iter().filter_map(|which| ticks.get(which)).sum::<u64>();
    Duration::from_millis(10 * busy)
}

fn wait_until(over: &AtomicBool, between: Between) -> Seen {
    let word = U8::ZERO;
    let mut seen = Seen::default();
    while !over.load(Relaxed) {
        Linux::hint(Hint::SpinBegin);
        let spin = word.spin_while(Acquire, SPIN, |value| value == 0);
        assert_eq!(spin, Err(0));
        Linux::hint(Hint::SpinEnd);
        let signs = crowding();
        seen.asked += 1;
        seen.spinners += u64::from(signs.spinners);
        seen.preempted += u64::from(signs.preempted);
        seen.switched += u64::from(signs.switched);
        seen.any += u64::from(signs.spinners || signs.preempted || signs.switched);
        match between {
            Between::Nothing => watch_gaps(&mut seen.gaps),
            Between::Sleep => thread::sleep(Duration::from_micros(50)),
            Between::Work => work(Duration::from_micros(200)),
        }
    }
    seen.cpu = cpu_time(libc::CLOCK_THREAD_CPUTIME_ID);
    seen
}

/// Spins as long again and counts the gaps.
fn watch_gaps(gaps: &mut [u64; GAPS_US.len()]) {
    let begin = Instant::now();
    let mut last = begin;
    while last - begin < Duration::from_nanos(u64::from(SPIN.ns)) {
        core::hint::spin_loop();
        let now = Instant::now();
        for (count, limit) in gaps.iter_mut().zip(GAPS_US) {
            *count += u64::from((now - last).as_micros() > limit);
        }
        last = now;
    }
}

/// Uses that much CPU time, however long it takes.
fn work(time: Duration) {
    let now = || cpu_time(libc::CLOCK_THREAD_CPUTIME_ID);
    let begin = now();
    while now() - begin < time {
        core::hint::spin_loop();
    }
}

fn cpu_time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is a writable local.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn print_row(neighbours: usize, seen: &Seen, waiters: usize, between: Between) {
    let percent = |of: u64| format!("{:.1}%", 100.0 * of as f64 / seen.asked as f64);
    let all = RUN.as_secs_f64() * waiters as f64;
    let gaps: Vec<_> = seen.gaps.iter().map(|&gaps| format!("{:.0}", gaps as f64 / all)).collect();
    println!(
        "{neighbours:>10} {waiters:>7} {:>8} | {:>8} {:>9} {:>8} {:>7} | {:>20} | {:>6.0}% {:>6.2}",
        format!("{between:?}").to_lowercase(),
        percent(seen.spinners),
        percent(seen.preempted),
        percent(seen.switched),
        percent(seen.any),
        if between == Between::Nothing { gaps.join(" ") } else { "-".into() },
        100.0 * seen.cpu.as_secs_f64() / all,
        seen.others,
    );
}

/// Measures the cost of a call of `crowded`.
fn cost() {
    const TIMES: u32 = 1_000_000;
    let begin = Instant::now();
    let crowded = (0..TIMES).filter(|_| Linux::crowded()).count();
    let ask = begin.elapsed() / TIMES;
    let begin = Instant::now();
    for _ in 0..TIMES {
        Linux::hint(Hint::SpinBegin);
        Linux::hint(Hint::SpinEnd);
    }
    let hints = begin.elapsed() / TIMES;
    println!("crowded(): {ask:?} (true {crowded} of {TIMES} times); two hints: {hints:?}");
}

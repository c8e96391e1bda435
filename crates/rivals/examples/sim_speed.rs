//! How fast the simulator is: the host's CPU time for 5 simulated milliseconds of one contended
//! lock, and simulated memory operations a second of that time.
//!
//! `cargo run --release -p antiphon-rivals --example sim_speed [LOCK]`

use antiphon_rivals::classic::{Clh, Futex, Mcs, McsStp, Tas, Ticket, Ttas};
use antiphon_sim::{Machine, Outcome, Pace, Sim, contend};
use antiphon_sync::lock::{Lock, ShflMutex, ShflSpin};

const LIMIT_NS: u64 = 5_000_000;
const PACE: Pace = Pace { section_ns: 50, away_ns: 200 };

fn run<L: Lock>(threads: usize) -> Outcome {
    // SAFETY: what is given back was taken.
    let unlock = |lock: &L| unsafe { lock.unlock() };
    contend(Machine::eight_sockets(), threads, PACE, LIMIT_NS, L::NEW, (L::lock, unlock))
        .expect("the locks don't deadlock")
}

/// The CPU time that this thread has had: a busy host takes none of it away.
fn cpu_seconds() -> f64 {
    // The account is brought up to date when the thread gives its CPU away.
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux host");
    let ns = stat.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok());
    ns.expect("a number of nanoseconds") / 1e9
}

/// The most memory that this process has had, in MB.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kb.unwrap_or(0) / 1024
}

fn main() {
    type Row = (&'static str, fn(usize) -> Outcome);
    let rows: [Row; 9] = [
        ("tas", run::<Tas<Sim>>),
        ("ttas", run::<Ttas<Sim>>),
        ("ticket", run::<Ticket<Sim>>),
        ("mcs", run::<Mcs<Sim>>),
        ("mcs-stp", run::<McsStp<Sim>>),
        ("clh", run::<Clh<Sim>>),
        ("futex", run::<Futex<Sim>>),
        ("shfl-spin", run::<ShflSpin<Sim>>),
        ("shfl-mutex", run::<ShflMutex<Sim>>),
    ];
    let wanted = std::env::args().nth(1);
    let (mut operations, mut seconds) = (0, 0.0);
    for (name, run) in rows {
        if wanted.as_deref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        print!("{name:12}");
        for threads in [1, 192, 768] {
            let begun = cpu_seconds();
            let outcome = run(threads);
            let took = cpu_seconds() - begun;
            let counts = &outcome.counts;
            let all = counts.hits
                + counts.local_transfers
                + counts.remote_transfers
                + counts.memory_reads;
            print!("  {threads}: {took:.3} s, {:.1} M/s", all as f64 / took / 1e6);
            print!(" ({} acquisitions)", outcome.total_operations());
            if threads == 192 {
                operations += all;
                seconds += took;
            }
        }
        println!();
    }
    let rate = operations as f64 / seconds / 1e6;
    println!("192 threads, all of these: {operations} operations in {seconds:.2} s, {rate:.1} M/s");
    println!("memory: {} MB at most", peak_mb());
}

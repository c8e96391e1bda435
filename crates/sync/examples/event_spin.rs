//! Cost and latency of waits for an event, by how long the waiter spins before it sleeps: by the
//! cost of a sleep that the platform has measured, for 20 µs, or not at all.
//!
//! A thread tells another one, each on a CPU of its own, so long after that began to wait. CPU time
//! is all of the receiver's, and the sender's while it tells. The forms take turns. `cargo run
//! --release -p antiphon-sync --example event_spin`

use std::hint::spin_loop;
use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use antiphon_linux::{Linux, pin, survey, usable};
use antiphon_platform::{Hints as _, Platform};
use antiphon_sync::lock::{Form, Standard};
use antiphon_sync::policy::Distance;
use antiphon_sync::wait::{CrowdForm, Event, Unpolled};

const GAPS_US: [u64; 8] = [3, 10, 15, 20, 30, 50, 150, 1_000];
/// Turns of each form, and for how long one tells; there are twelve events at least.
const TURNS: usize = 15;
const TURN: Duration = Duration::from_millis(15);

/// Like the standard form, but spins for 20 µs whatever a sleep costs.
struct Fixed;

impl Form for Fixed {}

impl CrowdForm for Fixed {
    fn event_spin_ns<P: Platform>() -> u32 {
        20_000
    }
}

/// The result of a turn: each latency, and the CPU time, in nanoseconds.
#[derive(Default)]
struct Seen {
    latency_ns: Vec<u64>,
    cpu_ns: u64,
}

/// Each event's latency, and the CPU time for all of them.
fn turn<F: CrowdForm>(cpus: [u32; 2], gap: Duration) -> Seen {
    let event = Event::<Linux, Distance, F>::NEW;
    let (back_ns, ready, begin) = (AtomicU64::new(0), Barrier::new(2), Instant::now());
    let now_ns = || begin.elapsed().as_nanos() as u64;
    let events = (TURN.as_nanos() / gap.as_nanos()).clamp(12, 500) as usize;
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            pin(cpus[1]).expect("a usable CPU");
            ready.wait();
            let before = cpu_ns();
            for _ in 0..events {
                event.wait();
                // Release: pairs with the acquire of the sender.
                back_ns.store(now_ns(), Release);
            }
            cpu_ns() - before
        });
        pin(cpus[0]).expect("a usable CPU");
        ready.wait();
        let mut seen = Seen::default();
        for _ in 0..events {
            let began = Instant::now();
            while began.elapsed() < gap {
                spin_loop();
            }
            let set_ns = now_ns();
            event.set();
            seen.cpu_ns += now_ns() - set_ns;
            let returned_ns = loop {
                // Acquire: pairs with the release of the receiver.
                match back_ns.load(Acquire) {
                    0 => spin_loop(),
                    ns => break ns,
                }
            };
            back_ns.store(0, Relaxed);
            seen.latency_ns.push(returned_ns - set_ns);
        }
        seen.cpu_ns += receiver.join().expect("it does not panic");
        seen
    })
}

/// The CPU time of the calling thread.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours to write, and every Linux has the clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn main() -> ExitCode {
    // Of the whole process: threads that are pinned know of one CPU each.
    survey();
    let [sender, receiver, ..] = usable()[..] else {
        eprintln!("event_spin needs two CPUs: sender and receiver have one each");
        return ExitCode::FAILURE;
    };
    let turns: [fn([u32; 2], Duration) -> Seen; 3] =
        [turn::<Standard>, turn::<Fixed>, turn::<Unpolled>];
    println!("µs: median latency of an event, CPU time for an event (median of {TURNS} turns)");
    println!("{:>6}{:>18}{:>18}{:>18}{:>12}", "gap", "learned", "20 µs", "no spin", "a sleep");
    for gap_us in GAPS_US {
        let mut latency: [Vec<u64>; 3] = Default::default();
        let mut cpu: [Vec<u64>; 3] = Default::default();
        for _ in 0..TURNS {
            for (form, turn) in turns.iter().enumerate() {
                let seen = turn([sender, receiver], Duration::from_micros(gap_us));
                cpu[form].push(seen.cpu_ns / seen.latency_ns.len() as u64);
                latency[form].extend(seen.latency_ns);
            }
        }
        print!("{gap_us:>6}");
        for form in 0..turns.len() {
            let [latency, cpu] =
                [&mut latency[form], &mut cpu[form]].map(|all_ns| median_us(all_ns));
            print!("{latency:>10.2}{cpu:>8.2}");
        }
        println!("{:>12.2}", f64::from(Linux::sleep_cost_ns()) / 1e3);
    }
    ExitCode::SUCCESS
}

fn median_us(all_ns: &mut [u64]) -> f64 {
    all_ns.sort_unstable();
    all_ns[all_ns.len() / 2] as f64 / 1e3
}

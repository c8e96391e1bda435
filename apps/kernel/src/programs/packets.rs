//! `packets`: the packet processing of the dissertation's general case, on the pool, as
//! `antiphon-lab bench packets` runs it on Linux.
//!
//! A task makes packets: it copies one of ten buffers, the `i`th of `2000 + 30 i` bytes, with a
//! newline at each position `p`, `0 < p < 300`, that `20 + i` divides. For each packet it spawns a
//! task, which looks for newlines. `packets=N` is their number (2000 by default).
//!
//! | figure | meaning |
//! |---|---|
//! | `packet` | the time of the whole run for each packet |
//! | `latency` | the median from when a packet was handed over to the end of its task |
//! | `handled`, `newlines`, `numbers` | counted by the tasks; must be those of the maker |

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::{black_box, spin_loop};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_metal::options::Options;
use antiphon_metal::statistics::Summary;
use antiphon_metal::x86::cpu::tsc;
use antiphon_metal::x86::power::Outcome;
use antiphon_metal::{Metal, println};
use antiphon_platform::Platform;
use antiphon_sync::wait::Event;

use crate::programs::pool::{Pool, spawn_detached};

/// Newlines occur only in this many bytes at the start.
const HEAD: usize = 300;
const BUFFERS: usize = 10;

/// A buffer of which packets are copies.
struct Buffer {
    bytes: Vec<u8>,
    newlines: u64,
}

impl Buffer {
    fn new(number: usize) -> Self {
        let step = 20 + number;
        let is_newline = |at: usize| at > 0 && at < HEAD && at.is_multiple_of(step);
        let byte = |at| if is_newline(at) { b'\n' } else { b'-' };
        let newlines = ((HEAD - 1) / step) as u64;
        Self { bytes: (0..2000 + 30 * number).map(byte).collect(), newlines }
    }
}

/// The results of the tasks.
struct Run {
    buffers: Vec<Buffer>,
    packets: u64,
    handled: AtomicU64,
    newlines: AtomicU64,
    numbers: AtomicU64,
    /// For each packet, the time from its handover to the end of its task.
    latencies: Vec<AtomicU64>,
    over: Event<Metal>,
}

impl Run {
    /// Makes all packets, and a task for each; returns the number of newlines in them.
    fn make(self: Arc<Self>) -> u64 {
        let mut newlines = 0;
        for number in 0..self.packets {
            let buffer = &self.buffers[Metal::random() as usize % BUFFERS];
            newlines += buffer.newlines;
            let packet = buffer.bytes.clone();
            let (run, since) = (self.clone(), tsc());
            spawn_detached(move || run.handle(number, &packet, since));
            // The CPUs of an exact run take turns when they pause.
            spin_loop();
        }
        newlines
    }

    fn handle(&self, number: u64, packet: &[u8], since: u64) {
        let newlines = black_box(scan(packet)).len() as u64;
        // Relaxed, all: the addition to `handled` releases them.
        self.newlines.fetch_add(newlines, Relaxed);
        self.numbers.fetch_add(number, Relaxed);
        self.latencies[number as usize].store(tsc() - since, Relaxed);
        // Release: the additions above; pairs with the acquire in `run`.
        if self.handled.fetch_add(1, Release) + 1 == self.packets {
            self.over.set();
        }
        // The CPUs of an exact run take turns when they pause.
        spin_loop();
    }
}

/// Searches all bytes for newlines. Returns their positions.
#[inline(never)]
fn scan(packet: &[u8]) -> Vec<u32> {
    let newlines = packet.iter().enumerate().filter(|&(_, &byte)| byte == b'\n');
    newlines.map(|(at, _)| at as u32).collect()
}

pub fn run(options: Options<'_>) -> Outcome {
    let packets = match options.number("packets", 2000) {
        Ok(packets @ 1..=1_000_000) => packets,
        _ => {
            println!("`packets` is a number from 1 to 1000000");
            return Outcome::Misused;
        }
    };
    let Ok(pool) = Pool::start() else { return Outcome::Failed };
    let run = Arc::new(Run {
        buffers: (0..BUFFERS).map(Buffer::new).collect(),
        packets,
        handled: AtomicU64::new(0),
        newlines: AtomicU64::new(0),
        numbers: AtomicU64::new(0),
        latencies: (0..packets).map(|_| AtomicU64::new(0)).collect(),
        over: Event::NEW,
    });
    let ours = run.clone();
    let began = tsc();
    let newlines = pool.run(move || ours.make());
    run.over.wait();
    let took = tsc() - began;
    // Acquire: what the tasks did; pairs with the releases in `handle`.
    let handled = run.handled.load(Acquire);
    let found = run.newlines.load(Relaxed);
    let numbers = run.numbers.load(Relaxed);
    let mut latencies: Vec<_> = run.latencies.iter().map(|one| one.load(Relaxed)).collect();
    println!("packet={}", took / packets);
    if let Some(summary) = Summary::of(&mut latencies) {
        println!("latency={}", summary.median);
        println!("latency.p99={}", summary.p99);
    }
    let expected = [packets, newlines, packets * (packets - 1) / 2];
    for (name, count, expected) in [
        ("handled", handled, expected[0]),
        ("newlines", found, expected[1]),
        ("numbers", numbers, expected[2]),
    ] {
        println!("{name}={count}");
        println!("{name}.expected={expected}");
    }
    println!("steals={}", pool.stats().steals);
    pool.stop();
    if [handled, found, numbers] == expected { Outcome::Passed } else { Outcome::Failed }
}

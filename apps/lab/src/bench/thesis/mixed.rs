//! The mixed workload: packets, options and conferences at the same time, on the same CPUs; with
//! one policy, or a suitable one for each.
//!
//! | what | how many | its latency is from when |
//! |---|---|---|
//! | packets | 30 each millisecond, a task each | they were due |
//! | options | 1000 each 50 ms, chains of 20 steps; one in a hundred has 2000 | they were due |
//! | frames | 150 conferences of two legs, each 20 ms | they were due at the mixer |

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::Duration;

use antiphon_report::stats::Random;
use serde::{Deserialize, Serialize};

use super::houses::Houses;
use crate::bench::mix;
use crate::bench::mix::cases::Wait;
use crate::bench::mix::conference::Exchange;
use crate::bench::mix::waits::wait_until;
use crate::bench::options::cases::Kernel;
use crate::bench::options::problems::Problem;
use crate::bench::packets::contents::{Buffers, scan};
use crate::bench::pools::figures::Latencies;
use crate::bench::pools::runner::{Kind, Runner};
use crate::bench::pools::tally::{self, count};
use crate::bench::rounds::Outcome;
use crate::compete::work::now_ns;

/// The order for one repetition.
#[derive(Clone, Serialize, Deserialize)]
pub struct Order {
    /// The subject that runs it.
    pub subject: String,
    /// Number of threads.
    pub workers: usize,
    /// Number of frames of each leg, which sets the length of the run.
    pub frames: u32,
    /// Size of the load, as a multiple of the usual one.
    pub part: f64,
    /// The seed of all random choices.
    pub seed: u64,
}

/// The figures of packets, options and frames.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Latencies of packets, options and frames, in this order.
    pub latency: [Latencies; 3],
}

/// Positions of packets, options and frames in the tally.
const STEPS: [usize; 3] = [1, 2, 0];
const PACKETS: usize = STEPS[0];
const OPTIONS: usize = STEPS[1];
const CONFERENCES: u64 = 150;
/// Packets come this many at a time, every `PACKETS_NS` nanoseconds.
const PACKETS_AT_ONCE: u64 = 30;
const PACKETS_NS: u64 = 1_000_000;
const OPTIONS_AT_ONCE: u64 = 1000;
const OPTIONS_NS: u64 = 50_000_000;
/// One option in this many is long.
const LONG_OF: u64 = 100;
const SHORT: usize = 20;
const LONG: usize = 2000;
/// Time after which a packet is due, in nanoseconds.
const PACKET_DUE_NS: u64 = 200_000;
/// Interval between checks whether all is done.
const LOOKS: Duration = Duration::from_millis(1);
/// Time from the beginning to the first item that is due.
const LEAD_NS: u64 = 50_000_000;

/// Returns the time limit of a repetition, in seconds.
pub fn seconds(order: &Order) -> f64 {
    const SLOW: f64 = 10.0;
    f64::from(order.frames) * 0.02 * SLOW
}

/// Carries out one repetition.
///
/// # Errors
///
/// If the subject is unknown, or can't be started.
pub fn measure(order: &Order) -> Result<Outcome<Figures>, String> {
    let Order { workers, frames, part, seed, .. } = *order;
    let some = |all: u64| (all as f64 * part).ceil() as u64;
    let cell = mix::usual(some(CONFERENCES) as u32, frames, workers);
    let parts = cell.conferences as usize * 3 + 2;
    let houses = Box::leak(Box::new(Houses::start(&order.subject, workers, parts)?));
    let options = [SHORT, LONG].map(|depth| Problem::all(Kernel::Binomial, depth, 100.0, seed));
    let load: &'static Load = Box::leak(Box::new(Load {
        buffers: Buffers::general(),
        options,
        begun_ns: now_ns() + LEAD_NS,
        ends_ns: u64::from(frames) * 20_000_000,
        packets_at_once: some(PACKETS_AT_ONCE),
        options_at_once: some(OPTIONS_AT_ONCE),
        seed,
        done: AtomicU64::new(0),
        wrong: AtomicU64::new(0),
    }));
    load.begin(houses);
    let exchange: &'static Exchange = Box::leak(Box::new(Exchange::new(cell, seed, u64::MAX)));
    let (sent, _) = exchange.open(&houses.frames);
    let wanted = load.packets() + load.chains();
    // Acquire: the counts of finished items; pairs with the Release in `end`.
    while load.done.load(Acquire) < wanted {
        thread::sleep(LOOKS);
    }
    let done = tally::take();
    // Relaxed: the load of `done` above orders it.
    let wrong = load.wrong.load(Relaxed);
    if wrong > 0 || done.items != wanted + sent {
        let items = done.items;
        let what = format!("{items} ended for {}, {wrong} of them wrong", wanted + sent);
        return Ok(Outcome::Violation(what));
    }
    let steps = STEPS.map(|step| done.steps.get(step));
    let latency =
        steps.map(|step| step.map(|step| Latencies::of(step, |ns| ns)).unwrap_or_default());
    Ok(Outcome::Figures(Figures { latency }))
}

/// The load of packets and options.
struct Load {
    buffers: Buffers,
    /// Problems of short options, and of long ones.
    options: [Vec<Problem>; 2],
    begun_ns: u64,
    /// Length of the load, in nanoseconds.
    ends_ns: u64,
    packets_at_once: u64,
    options_at_once: u64,
    seed: u64,
    /// Number of packets and options that have ended.
    done: AtomicU64,
    /// Number of these whose result was wrong.
    wrong: AtomicU64,
}

impl Load {
    fn packets(&self) -> u64 {
        self.ends_ns / PACKETS_NS * self.packets_at_once
    }

    fn chains(&self) -> u64 {
        self.ends_ns / OPTIONS_NS * self.options_at_once
    }

    fn begin(&'static self, houses: &'static Houses) {
        // These two tasks wait most of the time; when they don't, they are the most urgent.
        let kind = Kind { stage: 3, level: 0, due_ns: self.begun_ns };
        houses.packets.spawn_as(kind, move || self.make_packets(houses));
        houses.options.spawn_as(kind, move || self.make_options(houses));
    }

    fn make_packets(&'static self, houses: &'static Houses) {
        let mut random = Random(self.seed);
        for tick in 0..self.ends_ns / PACKETS_NS {
            let due_ns = self.begun_ns + tick * PACKETS_NS;
            wait_until(due_ns, Wait::Sleep);
            let kind = Kind { stage: 2, level: 0, due_ns: due_ns + PACKET_DUE_NS };
            for _ in 0..self.packets_at_once {
                let (bytes, newlines) = self.buffers.any(&mut random).begin(None);
                let bytes = bytes.to_vec();
                houses.packets.spawn_as(kind, move || {
                    let found = black_box(scan(&bytes)).len() as u64;
                    self.end(PACKETS, due_ns, found == newlines);
                });
            }
        }
    }

    fn make_options(&'static self, houses: &'static Houses) {
        for tick in 0..self.ends_ns / OPTIONS_NS {
            let due_ns = self.begun_ns + tick * OPTIONS_NS;
            wait_until(due_ns, Wait::Sleep);
            for number in 0..self.options_at_once {
                let lot = Random(self.seed ^ tick << 20 ^ number).draw();
                self.begin_option(houses, lot.is_multiple_of(LONG_OF), due_ns);
            }
        }
    }

    fn begin_option(&'static self, houses: &'static Houses, long: bool, due_ns: u64) {
        let problem = &self.options[usize::from(long)][0];
        let after_ns = if long { OPTIONS_NS } else { OPTIONS_NS / 10 };
        let level = if long { 3 } else { 1 };
        let kind = Kind { stage: u64::from(!long), level, due_ns: due_ns + after_ns };
        houses.options.spawn_as(kind, move || {
            let (mut chain, _) = problem.begin();
            houses.options.repeat(kind, move || {
                let more = chain.step();
                if !more {
                    self.end(OPTIONS, due_ns, problem.is_answer(&chain));
                }
                more
            });
        });
    }

    fn end(&self, step: usize, due_ns: u64, right: bool) {
        let latency = now_ns().saturating_sub(due_ns);
        count(|tally| {
            tally.items += 1;
            let step = tally.step(step);
            step.latencies.record(latency, 1);
            step.sum += latency;
            step.items += 1;
        });
        if !right {
            self.wrong.fetch_add(1, Relaxed);
        }
        // Release: publishes the tally and `wrong`; pairs with the Acquire in `measure`.
        self.done.fetch_add(1, Release);
    }
}

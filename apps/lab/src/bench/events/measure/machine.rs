//! Figures of the machine itself: how much the time of fixed work varies, and the offset between
//! counters.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_report::failure::Failure;

use super::thread::{Line, Part, Trials, between, stamp};
use super::{Figures, Order};
use crate::pinned::{self, Task};

/// Steps of one portion of work, which takes some ten microseconds.
const QUANTUM: u32 = 20_000;

/// Times the same work repeatedly, on the CPU of a receiver.
pub fn noise(order: &Order, places: &[usize]) -> Result<Figures, String> {
    let place = places.get(1).or(places.first()).copied().unwrap_or(0);
    let task: Task<'_, Part> = Box::new(|| {
        let quantum = |counts| {
            let begin = stamp();
            work();
            (counts, between(order.ticks, begin, stamp()))
        };
        let counted = Trials::of(order).map(quantum).filter(|one| one.0);
        Part { latency_ns: counted.map(|(_, ns)| ns).collect(), ..Part::default() }
    });
    let parts = pinned::all(vec![(place, task)]);
    parts.map(Figures::of).map_err(Failure::into_message)
}

fn work() {
    let mut sum = 1_u64;
    for step in 0..QUANTUM {
        sum = black_box(sum.wrapping_mul(3).wrapping_add(u64::from(step)));
    }
}

/// Messages in each direction per trial.
const MESSAGES: usize = 64;

/// Exchanges readings of the counter. The fastest message there bounds from above how far the other
/// counter is ahead, and the fastest one back bounds it from below.
pub fn clock(order: &Order, places: &[usize]) -> Result<Figures, String> {
    let [there, back] = [const { Line(AtomicU64::new(0)) }; 2];
    let (mut ahead, mut behind) = (f64::MAX, f64::MAX);
    // All accesses are Relaxed: a message carries no other data.
    let first: Task<'_, Part> = Box::new(|| {
        let mut latency_ns = Vec::new();
        for counts in Trials::of(order) {
            let mut trip = f64::MAX;
            for _ in 0..MESSAGES {
                let sent = stamp();
                there.0.store(sent, Relaxed);
                let answer = take(&back.0);
                let now = stamp();
                trip = trip.min(between(order.ticks, sent, now));
                ahead = ahead.min(between(order.ticks, sent, answer));
                behind = behind.min(between(order.ticks, answer, now));
            }
            if counts {
                latency_ns.push(trip / 2.0);
            }
        }
        there.0.store(u64::MAX, Relaxed);
        Part { latency_ns, ..Part::default() }
    });
    let second: Task<'_, Part> = Box::new(|| {
        while take(&there.0) != u64::MAX {
            back.0.store(stamp(), Relaxed);
        }
        Part::default()
    });
    let parts = pinned::all(vec![(places[0], first), (places[1], second)]);
    let figures = Figures::of(parts.map_err(Failure::into_message)?);
    Ok(Figures { clock: Some(((ahead - behind) / 2.0, (ahead + behind) / 2.0)), ..figures })
}

/// Waits for a message, and removes it from the line.
fn take(line: &AtomicU64) -> u64 {
    loop {
        match line.load(Relaxed) {
            0 => spin_loop(),
            message => {
                line.store(0, Relaxed);
                return message;
            }
        }
    }
}

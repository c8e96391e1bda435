//! A thread that notifies another one that sleeps or, on a busy CPU, wants to run.

use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};

use antiphon_report::failure::Failure;

use super::sleeper::{Sleeper, introduce};
use super::thread::{Line, Part, Trials, Usage, between, spin, stamp};
use super::{Figures, Order};
use crate::bench::events::cases::Case;
use crate::bench::events::subjects::Mechanism;
use crate::pinned::{self, Task};

struct Shared<M> {
    mechanism: Line<M>,
    /// The time when the receiver got the event, or 0. Relaxed: it publishes no other data, and the
    /// mechanism orders it.
    arrived: Line<AtomicU64>,
    receiver: AtomicI32,
    stop: AtomicBool,
    ready: Barrier,
}

/// Measures events one by one.
pub fn measure<M: Mechanism>(order: &Order, places: &[usize]) -> Result<Figures, String> {
    let busy = order.cell.case == Case::BusyTarget;
    let shared = Shared {
        mechanism: Line(M::new()?),
        arrived: Line::default(),
        receiver: AtomicI32::new(0),
        stop: AtomicBool::new(false),
        ready: Barrier::new(2 + usize::from(busy)),
    };
    type Seen = Result<Part, String>;
    let mut tasks: Vec<(usize, Task<'_, Seen>)> = vec![
        (places[0], Box::new(|| send(&shared, order))),
        (places[1], Box::new(|| Ok(receive(&shared)))),
    ];
    if busy {
        tasks.push((places[1], Box::new(|| Ok(burn(&shared)))));
    }
    let parts = pinned::all(tasks).map_err(Failure::into_message)?;
    parts.into_iter().collect::<Result<_, _>>().map(Figures::of)
}

fn send<M: Mechanism>(shared: &Shared<M>, order: &Order) -> Result<Part, String> {
    let Shared { mechanism: Line(mechanism), arrived: Line(arrived), .. } = shared;
    shared.ready.wait();
    let receiver = Sleeper::of(&shared.receiver).map(|one| [one]);
    let mut part = Part::default();
    let gap_ns = f64::from(order.cell.gap_us) * 1e3;
    for counts in Trials::of(order).take_while(|_| receiver.is_ok()) {
        if let (true, Ok(receiver)) = (M::SLEEPS, &receiver) {
            Sleeper::wait_for(receiver);
        }
        spin(order.ticks, gap_ns);
        let begin = stamp();
        mechanism.signal();
        let end = stamp();
        let then = loop {
            match arrived.load(Relaxed) {
                0 => spin_loop(),
                then => break then,
            }
        };
        arrived.store(0, Relaxed);
        let cost = between(order.ticks, begin, end);
        part.cpu_ns += cost;
        if counts {
            part.latency_ns.push(between(order.ticks, begin, then));
            part.sender_ns.push(cost);
        }
    }
    // Relaxed: the signal orders it.
    shared.stop.store(true, Relaxed);
    mechanism.signal();
    receiver.map(|_| part)
}

fn receive<M: Mechanism>(shared: &Shared<M>) -> Part {
    let Shared { mechanism: Line(mechanism), arrived: Line(arrived), .. } = shared;
    mechanism.enter();
    introduce(&shared.receiver);
    shared.ready.wait();
    let (usage, mut events) = (Usage::now(), 0);
    loop {
        mechanism.wait();
        let now = stamp();
        if shared.stop.load(Relaxed) {
            return usage.part(events);
        }
        arrived.store(now, Relaxed);
        events += 1;
    }
}

/// Keeps the receiver's CPU busy all the time.
fn burn<M>(shared: &Shared<M>) -> Part {
    shared.ready.wait();
    let mut turns = 0_u64;
    while !shared.stop.load(Relaxed) {
        turns = black_box(turns.wrapping_add(1));
    }
    Part::default()
}

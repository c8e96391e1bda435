//! A thread that notifies several sleeping threads at once.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize};
use std::sync::{Barrier, OnceLock};
use std::thread::Thread;

use antiphon_report::failure::Failure;
use antiphon_report::stats::deviation;

use super::sleeper::{Sleeper, introduce};
use super::thread::{Line, Part, Trials, Usage, between, spin, stamp};
use super::{Figures, Order};
use crate::bench::events::subjects::Broadcast;
use crate::pinned::{self, Task};

struct Shared<B> {
    broadcast: Line<B>,
    waiters: Vec<Line<Waiter>>,
    /// Number of waiters that have not arrived in this round.
    left: Line<AtomicUsize>,
    /// The sender sleeps until all have arrived, so that they can use its CPU too.
    sender: OnceLock<Thread>,
    stop: AtomicBool,
    ready: Barrier,
}

#[derive(Default)]
struct Waiter {
    tid: AtomicI32,
    /// Time of its last arrival. Relaxed: `left` orders it.
    arrived: AtomicU64,
}

/// Measures rounds: when the last waiter arrives, and the spread of arrivals.
pub fn measure<B: Broadcast>(order: &Order, places: &[usize]) -> Result<Figures, String> {
    let count = order.cell.waiters;
    let shared = Shared {
        broadcast: Line(B::new(count)?),
        waiters: (0..count).map(|_| Line::default()).collect(),
        left: Line::default(),
        sender: OnceLock::new(),
        stop: AtomicBool::new(false),
        ready: Barrier::new(count + 1),
    };
    let shared = &shared;
    type Seen = Result<Part, String>;
    let mut tasks: Vec<(usize, Task<'_, Seen>)> =
        vec![(places[0], Box::new(move || send(shared, order)))];
    tasks.extend((0..count).map(|waiter| {
        let task: Task<'_, Seen> = Box::new(move || Ok(receive(shared, waiter)));
        (places[(waiter + 1) % places.len()], task)
    }));
    let parts = pinned::all(tasks).map_err(Failure::into_message)?;
    parts.into_iter().collect::<Result<_, _>>().map(Figures::of)
}

fn send<B: Broadcast>(shared: &Shared<B>, order: &Order) -> Result<Part, String> {
    let Shared { broadcast: Line(broadcast), waiters, left: Line(left), .. } = shared;
    shared.sender.get_or_init(std::thread::current);
    shared.ready.wait();
    let sleepers: Result<Vec<_>, _> =
        waiters.iter().map(|waiter| Sleeper::of(&waiter.0.tid)).collect();
    let (mut part, mut round) = (Part::default(), 0);
    for counts in Trials::of(order).take_while(|_| sleepers.is_ok()) {
        sleepers.iter().for_each(|all| Sleeper::wait_for(all));
        spin(order.ticks, f64::from(order.cell.gap_us) * 1e3);
        round += 1;
        // Relaxed: the broadcast orders it.
        left.store(waiters.len(), Relaxed);
        let begin = stamp();
        broadcast.tell(round);
        let end = stamp();
        // Acquire: pairs with the Release of the threads that arrive.
        while left.load(Acquire) > 0 {
            std::thread::park();
        }
        let cost = between(order.ticks, begin, end);
        part.cpu_ns += cost;
        if counts {
            let arrived =
                |waiter: &Line<Waiter>| between(order.ticks, begin, waiter.0.arrived.load(Relaxed));
            let arrivals: Vec<_> = waiters.iter().map(arrived).collect();
            part.latency_ns.extend(arrivals.iter().copied().reduce(f64::max));
            part.sigma_ns.extend(deviation(&arrivals));
            part.sender_ns.push(cost);
        }
    }
    // Relaxed: the broadcast orders it.
    shared.stop.store(true, Relaxed);
    broadcast.tell(round + 1);
    sleepers.map(|_| part)
}

fn receive<B: Broadcast>(shared: &Shared<B>, waiter: usize) -> Part {
    let Shared { broadcast: Line(broadcast), waiters, left: Line(left), .. } = shared;
    let me = &waiters[waiter].0;
    broadcast.enter(waiter);
    introduce(&me.tid);
    shared.ready.wait();
    let (usage, mut events) = (Usage::now(), 0);
    loop {
        broadcast.wait(waiter, events + 1);
        let now = stamp();
        if shared.stop.load(Relaxed) {
            return usage.part(u64::from(events));
        }
        events += 1;
        me.arrived.store(now, Relaxed);
        // Release: pairs with the Acquire of the sender.
        if left.fetch_sub(1, Release) == 1
            && let Some(sender) = shared.sender.get()
        {
            sender.unpark();
        }
    }
}

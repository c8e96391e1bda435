//! How fast messages are: `rates`, on CPUs 0 and 1. Posts a second into one mailbox, and one way to
//! an owner that polls, or waits, beside a bare hand-off by spinning; rounds in turn, medians and
//! their ratios.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

use antiphon_linux::Linux;
use antiphon_runtime::message::{Actions, Mailbox, Message, Park};

type Parking = Mailbox<Linux, Park<Linux>>;

const ROUNDS: usize = 15;
const HAND_OFFS: u64 = 100_000;
const POSTS: u64 = 1_000_000;

#[repr(align(64))]
struct Line(AtomicU64);

fn main() {
    let (mut bare, mut posts) = (vec![], vec![]);
    let (mut polled, mut waited) = ((vec![], vec![]), (vec![], vec![]));
    for _ in 0..ROUNDS {
        let spun = spin_ns();
        bare.push(spun);
        for (owner, (ns, ratios)) in [(poll as Owner, &mut polled), (wait, &mut waited)] {
            let sent = message_ns(owner);
            ns.push(sent);
            ratios.push(sent / spun);
        }
        posts.push(posts_a_second() / 1e6);
    }
    println!("bare hand-off by spinning   {:6.0} ns one way", median(&mut bare));
    for (owner, (ns, ratios)) in [("polls", &mut polled), ("waits", &mut waited)] {
        let (ns, ratio) = (median(ns), median(ratios));
        println!("message, the owner {owner}    {ns:6.0} ns one way, {ratio:.2} of that");
    }
    println!("posts by one into another   {:6.1} million a second", median(&mut posts));
}

/// How an owner looks, until a message has come.
type Owner = fn(&mut Parking);

fn poll(mailbox: &mut Parking) {
    while mailbox.poll().is_empty() {
        std::hint::spin_loop();
    }
}

fn wait(mailbox: &mut Parking) {
    while mailbox.wait(None).is_empty() {}
}

/// Runs both, each on its CPU, begun together; returns the nanoseconds that the first took.
fn timed(first: impl FnOnce(), second: impl FnOnce() + Send) -> f64 {
    let ready = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            ready.wait();
            second();
        });
        pin(0);
        ready.wait();
        let begin = Instant::now();
        first();
        begin.elapsed().as_nanos() as f64
    })
}

fn spin_ns() -> f64 {
    let lines = [Line(AtomicU64::new(0)), Line(AtomicU64::new(0))];
    let wait = |line: &Line, value| {
        while line.0.load(Acquire) != value {
            std::hint::spin_loop();
        }
    };
    let there = || {
        for value in 1..=HAND_OFFS {
            lines[0].0.store(value, Release);
            wait(&lines[1], value);
        }
    };
    let back = || {
        for value in 1..=HAND_OFFS {
            wait(&lines[0], value);
            lines[1].0.store(value, Release);
        }
    };
    timed(there, back) / HAND_OFFS as f64 / 2.0
}

fn message_ns(owner: Owner) -> f64 {
    let actions = Actions::<Linux>::new(1);
    let action = actions.register(|_| {}).expect("room");
    let message = Message { action, payload: [0; 3] };
    let mut boxes = [Parking::new(&actions, 64), Parking::new(&actions, 64)];
    let senders = boxes.each_ref().map(Mailbox::sender);
    let [one, other] = &mut boxes;
    let there = || {
        for _ in 0..HAND_OFFS {
            senders[1].post(message).expect("room");
            owner(one);
        }
    };
    let back = || {
        for _ in 0..HAND_OFFS {
            owner(other);
            senders[0].post(message).expect("room");
        }
    };
    timed(there, back) / HAND_OFFS as f64 / 2.0
}

fn posts_a_second() -> f64 {
    let actions = Actions::<Linux>::new(1);
    let sum = Arc::new(AtomicU64::new(0));
    let added = sum.clone();
    // One thread runs it.
    let add = move |[number, ..]: [u64; 3]| added.store(added.load(Relaxed) + number, Relaxed);
    let action = actions.register(add).expect("room");
    let mut mailbox = Parking::new(&actions, 256);
    let sender = mailbox.sender();
    let take = || {
        let mut came = 0;
        while came < POSTS {
            came += u64::from(mailbox.poll().messages);
        }
    };
    let post = || {
        for number in 0..POSTS {
            let message = Message { action, payload: [number, 0, 0] };
            while sender.post(message).is_err() {
                std::hint::spin_loop();
            }
        }
    };
    let ns = timed(take, post);
    assert_eq!(sum.load(Relaxed), POSTS * (POSTS - 1) / 2);
    POSTS as f64 / ns * 1e9
}

fn pin(cpu: usize) {
    // SAFETY: all zero is the empty set; the kernel reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &raw const set), 0, "two CPUs");
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

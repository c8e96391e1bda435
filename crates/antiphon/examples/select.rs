//! Measures the cost of receiving a message with a select: from one channel, from two that both
//! have a message, and from two if the receiver has to wait for each message. Compares with
//! crossbeam.
//!
//! `cargo run --release -p antiphon --example select` prints the median of 9 interleaved rounds, in
//! nanoseconds per message. `threads` uses two threads; `fibers` uses two fibers of one thread.

use std::thread;
use std::time::Instant;

use antiphon::channel::{self, Receiver, Sender};
use antiphon::fiber::STACK_BYTES;
use antiphon::pool::Pool;
use antiphon::select::Select;

const ROUNDS: usize = 9;
const MESSAGES: usize = 200_000;
const ROOM: usize = 128;

fn main() {
    // SAFETY: no fiber waits while it makes a thread-local.
    let fibers = unsafe { Pool::builder().threads(1).fibers(STACK_BYTES) }.build().expect("fibers");
    let there = |ns: f64| ns / MESSAGES as f64;
    let cases: [(&str, &dyn Fn() -> f64); 9] = [
        ("one channel, always ready", &|| there(ready(|one, _| assert!(one.recv().is_ok())))),
        ("select of two, always ready", &|| there(ready(ours))),
        ("the same, crossbeam", &|| there(ready_crossbeam())),
        ("threads: one channel", &|| there(threads(ROOM, |one, _| assert!(one.recv().is_ok())))),
        ("threads: select of two", &|| there(threads(ROOM, ours))),
        ("the same, crossbeam", &|| there(threads_crossbeam(ROOM))),
        ("fibers: one channel, no room to spare", &|| {
            there(between_fibers(&fibers, 1, |one, _| assert!(one.recv().is_ok())))
        }),
        ("fibers: select of two, no room to spare", &|| there(between_fibers(&fibers, 1, ours))),
        ("fibers: select of two", &|| there(between_fibers(&fibers, ROOM, ours))),
    ];
    let mut all = [const { Vec::new() }; 9];
    for _ in 0..ROUNDS {
        for (times, (_, run)) in all.iter_mut().zip(&cases) {
            times.push(run());
        }
    }
    for ((name, _), mut times) in cases.iter().zip(all) {
        times.sort_by(f64::total_cmp);
        println!("{name:40} {:7.1} ns", times[ROUNDS / 2]);
    }
}

type Ends = [(Sender<usize>, Receiver<usize>); 2];

fn ours(one: &Receiver<usize>, other: &Receiver<usize>) {
    assert!(Select::new().recv(one, |n| n.is_ok()).recv(other, |n| n.is_ok()).wait());
}

fn timed(run: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    run();
    begun.elapsed().as_nanos() as f64
}

/// One thread sends to both channels, and receives.
fn ready(receive: impl Fn(&Receiver<usize>, &Receiver<usize>)) -> f64 {
    let ends: Ends = [0, 1].map(|_| channel::bounded(ROOM));
    timed(|| {
        for number in 0..MESSAGES {
            // Fill both channels. If only one is received from, the other stays filled.
            while ends[0].1.is_empty() {
                ends[0].0.send(number).expect("a receiver");
            }
            while ends[1].1.is_empty() {
                ends[1].0.send(number).expect("a receiver");
            }
            receive(&ends[0].1, &ends[1].1);
        }
    })
}

fn ready_crossbeam() -> f64 {
    let ends = [0, 1].map(|_| crossbeam_channel::bounded(ROOM));
    timed(|| {
        for number in 0..MESSAGES {
            for (sender, receiver) in &ends {
                if receiver.is_empty() {
                    sender.send(number).expect("a receiver");
                }
            }
            crossbeam_channel::select! {
                recv(ends[0].1) -> number => assert!(number.is_ok()),
                recv(ends[1].1) -> number => assert!(number.is_ok()),
            }
        }
    })
}

/// One thread sends to the first channel, and another receives.
fn threads(room: usize, receive: impl Fn(&Receiver<usize>, &Receiver<usize>)) -> f64 {
    let ends: Ends = [0, 1].map(|_| channel::bounded(room));
    timed(|| {
        thread::scope(|scope| {
            let sender = &ends[0].0;
            scope.spawn(|| (0..MESSAGES).for_each(|n| sender.send(n).expect("a receiver")));
            (0..MESSAGES).for_each(|_| receive(&ends[0].1, &ends[1].1));
        });
    })
}

fn threads_crossbeam(room: usize) -> f64 {
    let ends = [0, 1].map(|_| crossbeam_channel::bounded(room));
    timed(|| {
        thread::scope(|scope| {
            let sender = &ends[0].0;
            scope.spawn(|| (0..MESSAGES).for_each(|n| sender.send(n).expect("a receiver")));
            for _ in 0..MESSAGES {
                crossbeam_channel::select! {
                    recv(ends[0].1) -> number => assert!(number.is_ok()),
                    recv(ends[1].1) -> number => assert!(number.is_ok()),
                }
            }
        });
    })
}

/// One fiber sends, and another receives.
fn between_fibers(
    pool: &Pool,
    room: usize,
    receive: impl Fn(&Receiver<usize>, &Receiver<usize>) + Sync,
) -> f64 {
    let ends: Ends = [0, 1].map(|_| channel::bounded(room));
    timed(|| {
        pool.scope(|scope| {
            let (ends, receive) = (&ends, &receive);
            scope.spawn(move || {
                (0..MESSAGES).for_each(|number| ends[0].0.send(number).expect("a receiver"));
            });
            scope.spawn(move || (0..MESSAGES).for_each(|_| receive(&ends[0].1, &ends[1].1)));
        });
    })
}

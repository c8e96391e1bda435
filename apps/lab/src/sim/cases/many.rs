//! Cases with many locks.

use antiphon_platform::Topology as _;
use antiphon_replay::locks::Sections;
use antiphon_sim::{Machine, Sim};

use super::hand::Hand;

/// Number of locks of the hash table, one for each bucket.
pub const BUCKETS: usize = 64;
/// Lock that a thread holds while it resizes.
const RESIZE: usize = 0;

/// A resizing thread locks each bucket in turn, excluding all others from it.
pub fn hash(hand: &Hand) {
    let write = |bucket| hand.under(bucket, || hand.writes(bucket, 2, 50));
    match hand.any(100) {
        0 => {
            hand.take(RESIZE);
            (1..=BUCKETS).for_each(write);
            hand.give(RESIZE);
        }
        1..=10 => write(1 + hand.any(BUCKETS)),
        _ => hand.looks(1 + hand.any(BUCKETS), 2, 50),
    }
    hand.done();
    hand.away(50, 100);
}

/// Levels of locks: no thread holds two of one level.
pub const DEPTH: usize = 12;
/// Number of locks of a level.
pub const WIDTH: usize = 16;

/// One lock, and each of the other eleven levels with a probability of 3/11: four locks on average.
pub fn nested(hand: &Hand) {
    let mut held = Vec::with_capacity(DEPTH);
    for level in 0..DEPTH {
        if level == 0 || hand.any(11) < 3 {
            let lock = level * WIDTH + hand.any(WIDTH);
            hand.take(lock);
            hand.writes(lock, 1, 40);
            held.push(lock);
        }
    }
    for lock in held.into_iter().rev() {
        hand.give(lock);
    }
    hand.done();
    hand.away(500, 1_000);
}

/// Indices of the locks of [`mail`].
const PROCESSES: usize = 0;
const SPOOL: usize = 1;
/// Number of Exim's spool directories.
const DIRECTORIES: usize = 62;
const MEMORY: usize = SPOOL + DIRECTORIES;

/// Number of locks: one list of processes, and one lock for each directory, each socket's memory
/// and each CPU's run queue.
pub fn mail_locks(machine: &Machine) -> usize {
    MEMORY + machine.topology.nodes() as usize + machine.cores() as usize
}

/// A connection's process and its deliverer are forked and end; pages are allocated from the
/// socket's memory; a message is three files that are created in a spool directory and removed; and
/// four times a thread is woken on a CPU.
pub fn mail<L: Sections + ?Sized>(hand: &Hand<L>) {
    let own = MEMORY + Sim::socket().0 as usize;
    let short = |lock: usize, lines: usize, ns: u64, away_ns: u64| {
        hand.under(lock, || hand.writes(lock, lines, ns));
        hand.away(away_ns, away_ns);
    };
    for _ in 0..2 {
        short(PROCESSES, 3, 300, 2_000);
        for _ in 0..4 {
            short(own, 2, 60, 500);
        }
    }
    for _ in 0..3 {
        let directory = SPOOL + hand.any(DIRECTORIES);
        short(directory, 6, 1_500, 1_000);
        short(directory, 6, 1_500, 1_000);
    }
    for _ in 0..4 {
        // The run queues' locks are the last ones.
        let queue = hand.locks() - 1 - hand.any(hand.cpus());
        short(queue, 2, 100, 500);
    }
    hand.done();
}

//! Cases with one lock.
//!
//! Times are in nanoseconds; a thread is away for a uniformly distributed time, so that it does not
//! fall into step with others.

use antiphon_replay::locks::Sections;

use super::hand::Hand;

const LOCK: usize = 0;

/// The directory's lock is held while the name is looked up and the inode is made and entered: the
/// directory's inode, its list of entries and the file system's counters are written. Away: the
/// call, the path up to the directory, the descriptor.
pub fn create<L: Sections + ?Sized>(hand: &Hand<L>) {
    hand.under(LOCK, || hand.writes(LOCK, 6, 1_500));
    hand.done();
    hand.away(500, 1_000);
}

/// The entries of a small directory are read and copied.
pub fn enumerate(hand: &Hand) {
    hand.reads(LOCK, || hand.looks(LOCK, 6, 2_000));
    hand.done();
    hand.away(250, 500);
}

pub fn mixed(hand: &Hand) {
    if hand.any(10) == 0 { create(hand) } else { enumerate(hand) }
}

/// The memory map of a process: its tree and counters are four lines. A page fault clears its page
/// while it read-locks the map.
pub fn mmap(hand: &Hand) {
    if hand.any(32) == 0 {
        hand.under(LOCK, || hand.writes(LOCK, 4, 1_000));
    } else {
        hand.reads(LOCK, || hand.looks(LOCK, 4, 500));
    }
    hand.done();
    hand.away(200, 400);
}

/// References to the tables and the version are taken before the search, and dropped after it.
pub fn leveldb<L: Sections + ?Sized>(hand: &Hand<L>) {
    hand.under(LOCK, || hand.writes(LOCK, 3, 20));
    hand.away(1_250, 500);
    hand.under(LOCK, || hand.writes(LOCK, 3, 20));
    hand.done();
    hand.away(100, 200);
}

/// A long section of an owner that computes. Waiters gain nothing by spinning.
fn long<L: Sections + ?Sized>(hand: &Hand<L>, ns: u64) {
    hand.under(LOCK, || hand.writes(LOCK, 1, ns));
    hand.done();
    hand.away(100, 200);
}

pub fn long_100us<L: Sections + ?Sized>(hand: &Hand<L>) {
    long(hand, 100_000);
}

pub fn long_1ms<L: Sections + ?Sized>(hand: &Hand<L>) {
    long(hand, 1_000_000);
}

pub fn long_10ms<L: Sections + ?Sized>(hand: &Hand<L>) {
    long(hand, 10_000_000);
}

/// The owner sleeps, as in a system call that waits for a disk.
pub fn sleep<L: Sections + ?Sized>(hand: &Hand<L>) {
    hand.under(LOCK, || {
        hand.writes(LOCK, 1, 0);
        hand.sleeps(1_000_000);
    });
    hand.done();
    hand.away(100, 200);
}

pub fn trylock(hand: &Hand) {
    let had = if hand.any(10) < 4 {
        hand.tries(LOCK)
    } else {
        hand.take(LOCK);
        true
    };
    if had {
        hand.writes(LOCK, 2, 100);
        hand.give(LOCK);
    } else {
        hand.away(100, 200);
    }
    hand.done();
    hand.away(200, 400);
}

//! will-it-scale's `lock1` and `lock2`: threads of one process lock a byte of a file and unlock it,
//! by two calls, each of which that benchmark counts as an operation.
//!
//! Sources: `tests/lock1.c` and `tests/lock2.c` of will-it-scale; `fs/locks.c` of Linux 5.9, the
//! kernel of CNA's published tables. How a call uses the locks that all threads share:
//!
//! | | the file's list of locks (`flc_lock`) | the table of descriptors (`file_lock`) |
//! |---|---|---|
//! | locking, nothing there | inserts its entry | reads |
//! | locking, an entry there | finds it: one process is one owner, so that is all | reads |
//! | unlocking, an entry there | removes it, also from the list of the CPU that inserted it | |
//! | unlocking, nothing there | finds the list empty | |
//!
//! Threads come in any order, so each of the four is a quarter of all. An entry has 216 bytes, of
//! which three lines are accessed: its links, its owner, its range. The list's head is declared
//! behind the lock's word.

use antiphon_replay::locks::Sections;
use antiphon_sim::Access;

use super::hand::Hand;

/// Index of the file's list of locks, for `lock2`.
const LIST: usize = 0;
/// Number of locks of `lock2`: the list, and the table of descriptors.
pub const LOCK2: usize = 2;

/// Lines of a thread's own data: for its entry, and for the list of its CPU.
const ENTRY: std::ops::Range<usize> = 0..3;
const OF_CPU: std::ops::Range<usize> = 3..4;

/// Computing time of the section on the list, beside its lines, in nanoseconds: an estimate.
const SECTION_NS: u64 = 40;

/// Time of a single thread's call outside the sections, so that a call takes the published 625 ns.
fn away<L: Sections + ?Sized>(hand: &Hand<L>) {
    hand.done();
    hand.away(280, 560);
}

/// Checks that the descriptor still belongs to the file: one line of the table is read.
fn looks_up<L: Sections + ?Sized>(hand: &Hand<L>, table: usize) {
    hand.under(table, || hand.looks(table, 1, 10));
}

/// Each thread has its own file; the threads share only the table of descriptors.
pub fn lock1<L: Sections + ?Sized>(hand: &Hand<L>) {
    looks_up(hand, 0);
    away(hand);
    away(hand);
}

/// All threads lock one file.
pub fn lock2<L: Sections + ?Sized>(hand: &Hand<L>) {
    locks(hand);
    looks_up(hand, LIST + 1);
    away(hand);
    unlocks(hand);
    away(hand);
}

fn locks<L: Sections + ?Sized>(hand: &Hand<L>) {
    readies(hand);
    hand.under(LIST, || {
        match hand.entry(LIST).get() {
            Some(by) => {
                hand.beside(LIST, Access::Read);
                hand.brought(by, ENTRY, Access::Read);
            }
            None => {
                hand.beside(LIST, Access::Write);
                hand.brought(hand.thread(), ENTRY, Access::Write);
                hand.brought(hand.thread(), OF_CPU, Access::Write);
                hand.entry(LIST).set(Some(hand.thread()));
            }
        }
        hand.works(SECTION_NS);
    });
}

fn unlocks<L: Sections + ?Sized>(hand: &Hand<L>) {
    readies(hand);
    hand.under(LIST, || {
        match hand.entry(LIST).take() {
            Some(by) => {
                hand.beside(LIST, Access::Write);
                hand.brought(by, ENTRY, Access::Write);
                hand.brought(by, OF_CPU, Access::Write);
            }
            None => hand.beside(LIST, Access::Read),
        }
        hand.works(SECTION_NS);
    });
}

/// Both calls have an entry ready before they take the lock. Here it is the thread's own, where the
/// kernel's allocator would next give a thread the entry that it took out.
fn readies<L: Sections + ?Sized>(hand: &Hand<L>) {
    hand.brought(hand.thread(), ENTRY, Access::Write);
}

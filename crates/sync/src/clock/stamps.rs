//! Sources of commit times for a protocol.
//!
//! | rule | says |
//! |---|---|
//! | STAMP-1 | if a commit precedes a reader, the reader sees the read-modify-writes before it |
//! | STAMP-2 | a commit that took its stamp after the reader did not precede it |
//!
//! An optimistic protocol needs no more: no order between two commits that no transaction has read,
//! and no unique stamps.

use core::sync::atomic::Ordering::{AcqRel, Acquire};

use antiphon_platform::{Atomic, AtomicInteger, Platform};

use super::{Order, Ordo};

/// Allocates stamps.
pub trait Stamps {
    /// Returns the stamp of a reader that begins.
    fn now(&self) -> u64;

    /// Returns the stamp of a commit that takes effect; for a caller that has locked the words that
    /// it will write.
    fn next(&self) -> u64;

    /// Returns a reader's stamp that the commit at `stamp` certainly precedes. The caller has seen
    /// an effect of that commit. May spin until such a stamp exists.
    fn after(&self, stamp: u64) -> u64;

    /// Returns whether the commit at `commit` certainly took its stamp before the reader at
    /// `reader`.
    fn precedes(&self, commit: u64, reader: u64) -> bool;
}

/// One counter for all threads: exact, but each commit takes its cache line away from the others.
/// All bits zero is a counter that no thread has used.
#[repr(C, align(128))]
pub struct SharedCounter<P: Platform> {
    count: P::U64,
}

impl<P: Platform> SharedCounter<P> {
    /// A counter that no thread has used.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self { count: P::U64::ZERO }
    }
}

impl<P: Platform> Stamps for SharedCounter<P> {
    fn now(&self) -> u64 {
        // Acquire: pairs with the release in `next`. STAMP-1.
        self.count.load(Acquire)
    }

    fn next(&self) -> u64 {
        // Release: pairs with the acquire in `now`, and acquire with the release of other commits:
        // a later commit sees what those had locked.
        self.count.fetch_add(1, AcqRel) + 1
    }

    fn after(&self, _stamp: u64) -> u64 {
        self.now()
    }

    fn precedes(&self, commit: u64, reader: u64) -> bool {
        commit <= reader
    }
}

/// Both rules follow from CLOCK-2 and the order in which counters are read. A commit does not wait;
/// a thread that reads what was just committed waits, for as long as stamps are uncertain.
impl<P: Platform> Stamps for Ordo<P> {
    fn now(&self) -> u64 {
        Ordo::now(self)
    }

    fn next(&self) -> u64 {
        Ordo::now(self)
    }

    fn after(&self, stamp: u64) -> u64 {
        self.new_time(stamp)
    }

    fn precedes(&self, commit: u64, reader: u64) -> bool {
        self.cmp(commit, reader) == Order::Less
    }
}

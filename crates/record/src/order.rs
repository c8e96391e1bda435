//! In which order locks are taken: the edges of a graph, one for each pair of locks.
//!
//! An edge says that one lock was taken while another was held, where both were taken when that was
//! first seen, and which other locks were held every time. Threads that take two locks in both
//! orders may wait for each other for ever; so may those on any other cycle of edges. Three things
//! look like that and are none:
//!
//! | what | why it is none | how it is told |
//! |---|---|---|
//! | a lock that is only tried | no thread waits for it | no edge leads to it |
//! | a lock where another one stood | they were never there at once | edges have *lives* |
//! | locks that are taken under a third | only its owner gets so far | edges have *guards* |
//!
//! An edge is written by the thread that holds both of its locks, and so is the one back: one
//! thread at a time, unless they have both to read. Those count atomically; if several of them are
//! the first, what is noted may be some of each, and a guard that not all of them had is dropped
//! when the edge is seen next. A lock that is had to read guards nothing.

use core::sync::atomic::Ordering::Relaxed;

use crate::layout::{EdgeRecord, Full};
use crate::table::{find, lookup};
use crate::writer::{RowWriter, Writer, add_as_holder};

impl Writer {
    /// The lock of `taken` was waited for, or might have been, by a thread that held that of
    /// `held`, and is held now. Not to be said of a lock that was only tried: no thread can be
    /// stuck there. `others` are the locks that the thread holds beside the two, the outermost
    /// first.
    pub fn ordered(
        self,
        held: RowWriter,
        taken: RowWriter,
        others: impl Iterator<Item = RowWriter> + Clone,
    ) {
        let Some((from, to)) = self.lock(held).zip(self.lock(taken)) else { return };
        if from == to {
            // Another thread has released it meanwhile.
            return;
        }
        let Some((from_lives, to_lives)) = self.lives(from).zip(self.lives(to)) else { return };
        let Some(edge) = self.edge(from, to) else { return self.dropped(Full::Edges) };
        // A thread that has one of both alone is alone here.
        let alone = if held.is_shared() { taken } else { held };
        add_as_holder(alone, &edge.count, 1);
        let others = others
            .filter(|row| !row.is_shared())
            .filter_map(|row| self.lock(row))
            .filter(|&lock| lock != from);
        // From 1 on, so that zero is an edge of which nothing is known yet.
        let lives = pair(1 + from_lives.load(Relaxed), 1 + to_lives.load(Relaxed));
        if edge.lives.load(Relaxed) == lives {
            keep_guards(edge, others);
        } else if edge.inverted.load(Relaxed) == 0 {
            edge.rows.store(pair(held.number(), taken.number()), Relaxed);
            let guards = others.map(Some).chain(core::iter::repeat(None));
            for (word, guard) in edge.guards.iter().zip(guards) {
                word.store(guard.unwrap_or(0), Relaxed);
            }
            edge.lives.store(lives, Relaxed);
            self.look_back(edge, from, to);
        }
    }

    /// The edge between two locks.
    fn edge(self, from: u64, to: u64) -> Option<&'static EdgeRecord> {
        let edges = &self.map.edges;
        find(edges, pair(from, to), |edge| &edge.key).index().and_then(|index| edges.get(index))
    }

    /// Keeps the edge as it is, and the one back, if that is of the same locks: they may not live
    /// for long, and others that follow on them may keep to one order.
    fn look_back(self, edge: &EdgeRecord, from: u64, to: u64) {
        let edges = &self.map.edges;
        let back = lookup(edges, pair(to, from), |edge| &edge.key);
        let Some(back) = back.and_then(|index| edges.get(index)) else { return };
        if back.lives.load(Relaxed) == edge.lives.load(Relaxed).rotate_left(32) {
            edge.inverted.store(1, Relaxed);
            back.inverted.store(1, Relaxed);
        }
    }
}

/// Keeps those guards that are held now, too.
fn keep_guards(edge: &EdgeRecord, others: impl Iterator<Item = u64> + Clone) {
    for guard in &edge.guards {
        let lock = guard.load(Relaxed);
        if lock != 0 && !others.clone().any(|other| other == lock) {
            guard.store(0, Relaxed);
        }
    }
}

/// Two numbers in one word, each cut to 32 bits.
fn pair(high: u64, low: u64) -> u64 {
    high << 32 | low & u64::from(u32::MAX)
}

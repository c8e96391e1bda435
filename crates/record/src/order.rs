//! The order in which locks are taken, as the edges of a graph, one for each pair of locks.
//!
//! An edge says that one lock was taken while another was held, where both were taken when that was
//! first seen, and which other locks were always held. Threads that take two locks in both orders
//! may wait for each other for ever; so may threads on any other cycle of edges. Three cases look
//! like a cycle but are not one:
//!
//! | case | why it is no deadlock | how it is detected |
//! |---|---|---|
//! | a lock that is only tried | no thread waits for it | no edge leads to it |
//! | a lock at the address of an earlier one | they never existed together | edges have *lives* |
//! | locks that are taken under a third | only its owner gets so far | edges have *guards* |
//!
//! An edge and its reverse are written by a thread that holds both locks: one thread at a time,
//! unless both are held to read. Such readers count atomically; if several are first, the record
//! may mix theirs, and a guard that not all of them held is dropped when the edge is next seen. A
//! lock held to read is not a guard.

use core::sync::atomic::Ordering::Relaxed;

use crate::layout::{EdgeRecord, Full};
use crate::table::{find, lookup};
use crate::writer::{RowWriter, Writer, add_as_holder};

impl Writer {
    /// Records that a thread which held the lock of `held` has taken that of `taken`, for which it
    /// waited or might have waited. Must not be called for a lock that was only tried, where no
    /// thread can be stuck. `others` are the other locks that the thread holds, the outermost
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
        // If one of the two is held exclusively, only one thread can be here.
        let alone = if held.is_shared() { taken } else { held };
        add_as_holder(alone, &edge.count, 1);
        let others = others
            .filter(|row| !row.is_shared())
            .filter_map(|row| self.lock(row))
            .filter(|&lock| lock != from);
        // Counted from 1, so that zero means an edge that is not filled in yet.
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

    /// If the reverse edge is of the same locks, marks both edges as inverted, which keeps them as
    /// they are: the locks may not live long, and later locks at their addresses may be taken in
    /// one order.
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

/// Keeps only the guards that are held now, too.
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

//! Linearizability: whether a single thread that makes the calls one after the other could get the
//! same answers.
//!
//! A history is a set of operations, each with its answer and with the set of operations that had
//! returned before it was called. It is linearizable if its operations have a total order that
//! extends this one and in which a [`Sequential`] object gives the same answers.
//!
//! The search is that of Wing and Gong ("Testing and verifying concurrent objects", 1993) with the
//! memory that Lowe added ("Testing for linearizability", 2017): take any operation without an
//! untaken predecessor, if the object allows it; backtrack when stuck; never visit the same object
//! with the same operations taken twice. It is exponential in the worst case, and meant for one or
//! two dozen operations.
//!
//! [`History`](crate::History) records the operations of a model, where the order is
//! happens-before; [`Tape`] records those of real threads, where the order is time. [`objects`],
//! [`queues`] and [`waits`] have the sequential models of locks, of queues, and of semaphores and
//! barriers.

mod tape;

pub mod objects;
pub mod queues;
pub mod waits;

use std::collections::HashSet;
use std::hash::Hash;

pub use tape::Tape;

/// The largest number of operations of a history.
pub const MOST: usize = 64;

/// A sequential object: its behaviour when used by one thread.
pub trait Sequential: Clone + Eq + Hash {
    /// A call with its arguments.
    type Operation;
    /// A return value.
    type Answer;

    /// Performs `operation` if it is possible now and may return `answer`; returns whether it did.
    /// An operation that would wait is not possible. After `false`, the state of the object is
    /// undefined.
    fn step(&mut self, operation: &Self::Operation, answer: &Self::Answer) -> bool;
}

/// An operation of a history.
#[derive(Clone, Debug)]
pub struct Call<O, A> {
    /// The call with its arguments.
    pub operation: O,
    /// The value that it returned.
    pub answer: A,
    /// The calls that had returned when this call began: one bit each, by their index in the
    /// history.
    pub after: u64,
}

/// An order of `calls` that explains their answers, starting from `initial`, as indices in the
/// history. `None` if there is no such order.
///
/// # Panics
///
/// If there are more than [`MOST`] calls.
pub fn explain<S: Sequential>(
    initial: &S,
    calls: &[Call<S::Operation, S::Answer>],
) -> Option<Vec<usize>> {
    assert!(calls.len() <= MOST, "a history has at most {MOST} operations");
    let mut search = Search { calls, seen: HashSet::new(), order: Vec::new() };
    search.goes_on(initial, 0).then_some(search.order)
}

struct Search<'a, S: Sequential> {
    calls: &'a [Call<S::Operation, S::Answer>],
    /// The states that the search has visited: the calls taken, and the object after them.
    seen: HashSet<(u64, S)>,
    order: Vec<usize>,
}

impl<S: Sequential> Search<'_, S> {
    /// Returns whether the calls that are not in `taken` can follow.
    fn goes_on(&mut self, object: &S, taken: u64) -> bool {
        if taken.count_ones() as usize == self.calls.len() {
            return true;
        }
        for (place, call) in self.calls.iter().enumerate() {
            if taken & 1 << place != 0 || call.after & !taken != 0 {
                continue;
            }
            let mut next = object.clone();
            if !next.step(&call.operation, &call.answer) {
                continue;
            }
            let taken = taken | 1 << place;
            if self.seen.insert((taken, next.clone())) {
                self.order.push(place);
                if self.goes_on(&next, taken) {
                    return true;
                }
                self.order.pop();
            }
        }
        false
    }
}

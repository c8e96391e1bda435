//! Linearizability: whether the calls of all threads on an object can be explained by one thread
//! that makes them one after the other.
//!
//! A history is a set of operations, each with its answer and with those that had returned before
//! it was called. It is linearizable if its operations can be put in one order that keeps that one
//! and in which a [`Sequential`] object gives the same answers.
//!
//! The search is that of Wing and Gong ("Testing and verifying concurrent objects", 1993) with the
//! memory that Lowe has given it ("Testing for linearizability", 2017): take any operation that
//! nothing untaken precedes, if the object allows it; go back when stuck; never look twice at the
//! same object with the same operations taken. It is exponential at worst, and meant for a dozen
//! operations or two.
//!
//! [`History`](crate::History) records the operations of a model, where the order is
//! happens-before; [`Tape`] those of real threads, where it is time. [`objects`], [`queues`] and
//! [`waits`] have what locks, queues, and what else is waited for, look like to one thread.

mod tape;

pub mod objects;
pub mod queues;
pub mod waits;

use std::collections::HashSet;
use std::hash::Hash;

pub use tape::Tape;

/// How many operations a history has at most.
pub const MOST: usize = 64;

/// An object as one thread sees it.
pub trait Sequential: Clone + Eq + Hash {
    /// A call with its arguments.
    type Operation;
    /// A return value.
    type Answer;

    /// Does `operation` if it is possible now and may return `answer`; returns whether it did. An
    /// operation that would wait is not possible. After `false`, the state of the object is
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
    /// The calls that had returned when this one began: a bit each, by their place in the history.
    pub after: u64,
}

/// An order of `calls` that explains their answers, beginning with the object as it is in
/// `initial`: their places in the history, or `None` if there is no such order.
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
    /// Where the search has been in vain, or is: the calls taken, and the object then.
    seen: HashSet<(u64, S)>,
    order: Vec<usize>,
}

impl<S: Sequential> Search<'_, S> {
    /// Whether the calls that are not in `taken` can follow.
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

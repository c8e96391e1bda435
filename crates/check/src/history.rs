//! Linearizability: whether what threads saw of an object can be told as one thread's story.
//!
//! Operations are recorded with what happens before their call and what their return happens
//! before. They are linearizable if they can be put in one order that keeps that order and in
//! which a sequential object gives the same results. (Wing and Gong: "Testing and verifying
//! concurrent objects", 1993, with states that were seen remembered, after Lowe, 2017.) The order
//! that is kept is happens-before, not time: weak memory has no other.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::{self, Debug};
use std::hash::Hash;

use crate::clock::{Clock, Id};
use crate::context;

/// How many operations a history has at most.
const MOST: usize = 16;

/// What was done to an object in one execution: operations `O` and their results `R`.
pub struct History<O, R> {
    calls: RefCell<Vec<Call<O, R>>>,
}

struct Call<O, R> {
    operation: O,
    result: R,
    /// All that happens before the call.
    known: Clock,
    /// The first event of the thread after the return.
    end: Id,
}

impl<O: Debug, R: PartialEq + Debug + Clone> History<O, R> {
    /// A history in which nothing has happened.
    #[must_use]
    pub const fn new() -> Self {
        Self { calls: RefCell::new(Vec::new()) }
    }

    /// Runs `call`, which does `operation` to the object, and records it.
    pub fn record(&self, operation: O, call: impl FnOnce() -> R) -> R {
        let known = context::with(|execution| execution.threads[execution.current].before);
        let result = call();
        let end = context::with(|execution| execution.next_id());
        self.calls.borrow_mut().push(Call { operation, result: result.clone(), known, end });
        result
    }

    /// Checks the history against a sequential object: `apply` does an operation to its state and
    /// returns the result.
    ///
    /// # Panics
    ///
    /// If there is no order of the operations with these results, or there are more than 16.
    pub fn assert_linearizable<S: Clone + Eq + Hash>(
        &self,
        initial: S,
        apply: impl Fn(&mut S, &O) -> R,
    ) {
        let calls = self.calls.borrow();
        assert!(calls.len() <= MOST, "a history has at most {MOST} operations");
        let earlier = |of: usize| {
            let earlier = (0..calls.len()).filter(|&call| {
                let same_thread = calls[call].end.thread == calls[of].end.thread;
                if same_thread { call < of } else { calls[of].known.covers(calls[call].end) }
            });
            earlier.fold(0_u32, |set, call| set | 1 << call)
        };
        let before: Vec<u32> = (0..calls.len()).map(earlier).collect();
        let mut seen = HashSet::new();
        let mut open = vec![(0_u32, initial)];
        while let Some((done, state)) = open.pop() {
            if done.count_ones() as usize == calls.len() {
                return;
            }
            for (number, call) in calls.iter().enumerate() {
                if done & 1 << number != 0 || before[number] & !done != 0 {
                    continue;
                }
                let mut state = state.clone();
                let done = done | 1 << number;
                if apply(&mut state, &call.operation) == call.result
                    && seen.insert((done, state.clone()))
                {
                    open.push((done, state));
                }
            }
        }
        panic!("no order of these operations explains their results: {calls:?}", calls = *calls);
    }
}

impl<O: Debug, R: PartialEq + Debug + Clone> Default for History<O, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O: Debug, R: Debug> Debug for Call<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {}: {:?} = {:?}", self.end.thread, self.operation, self.result)
    }
}

impl<O: Debug, R: Debug> Debug for History<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.calls.borrow().iter()).finish()
    }
}

//! Histories of models, for [`linearizability`](crate::linearizability).
//!
//! The recorded order is happens-before, not time: weak memory has no other order. So unordered
//! calls may be taken in any order; two simultaneous owners of a lock that access the same data are
//! a data race, and not a wrong answer.

use std::cell::RefCell;
use std::fmt::{self, Debug};

use crate::clock::{Clock, Id};
use crate::context;
use crate::linearizability::{Call, MOST, Sequential, explain};

/// The calls to an object in one execution, with operations `O` and answers `A`.
pub struct History<O, A> {
    calls: RefCell<Vec<Made<O, A>>>,
}

struct Made<O, A> {
    operation: O,
    answer: A,
    /// All events that happen before the call.
    known: Clock,
    /// The first event of the thread after the return.
    end: Id,
}

impl<O: Debug + Clone, A: Debug + Clone> History<O, A> {
    /// Creates an empty history.
    #[must_use]
    pub const fn new() -> Self {
        Self { calls: RefCell::new(Vec::new()) }
    }

    /// Runs `call`, which performs `operation` on the object, and records it with its answer.
    pub fn record(&self, operation: O, call: impl FnOnce() -> A) -> A {
        let known = context::with(|execution| execution.threads[execution.current].before);
        let answer = call();
        let end = context::with(|execution| execution.next_id());
        self.calls.borrow_mut().push(Made { operation, answer: answer.clone(), known, end });
        answer
    }

    /// The history so far.
    pub fn calls(&self) -> Vec<Call<O, A>> {
        let made = self.calls.borrow();
        assert!(made.len() <= MOST, "a history has at most {MOST} operations");
        let earlier = |of: usize| {
            let earlier = (0..made.len()).filter(|&call| {
                let same_thread = made[call].end.thread == made[of].end.thread;
                if same_thread { call < of } else { made[of].known.covers(made[call].end) }
            });
            earlier.fold(0, |set, call| set | 1 << call)
        };
        let call = |(place, call): (usize, &Made<O, A>)| Call {
            operation: call.operation.clone(),
            answer: call.answer.clone(),
            after: earlier(place),
        };
        made.iter().enumerate().map(call).collect()
    }

    /// Checks the history against a sequential object.
    ///
    /// # Panics
    ///
    /// If no order of the operations explains these answers, or there are too many operations.
    pub fn assert_linearizable<S>(&self, initial: &S)
    where
        S: Sequential<Operation = O, Answer = A>,
    {
        if explain(initial, &self.calls()).is_none() {
            panic!("no order of these operations explains their answers: {self:?}");
        }
    }
}

impl<O: Debug + Clone, A: Debug + Clone> Default for History<O, A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O: Debug, A: Debug> Debug for Made<O, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {}: {:?} = {:?}", self.end.thread, self.operation, self.answer)
    }
}

impl<O: Debug, A: Debug> Debug for History<O, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.calls.borrow().iter()).finish()
    }
}

//! Recording of the calls of real threads, in the order of time.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Call, MOST, Sequential, explain};

/// A history of real threads, which record their calls themselves.
///
/// A call is before another if it had returned when the other began, by a shared counter. The
/// counter also orders the threads' memory accesses: use the checker to find missing orderings.
#[derive(Debug)]
pub struct Tape<O, A> {
    time: AtomicU64,
    calls: Mutex<Vec<Timed<O, A>>>,
}

#[derive(Debug)]
struct Timed<O, A> {
    operation: O,
    answer: A,
    begin: u64,
    end: u64,
}

impl<O: Clone + Debug, A: Clone + Debug> Tape<O, A> {
    /// Creates an empty tape.
    #[must_use]
    pub const fn new() -> Self {
        Self { time: AtomicU64::new(0), calls: Mutex::new(Vec::new()) }
    }

    /// Runs `call`, which performs `operation` on the object, and records it with its answer.
    pub fn record(&self, operation: O, call: impl FnOnce() -> A) -> A {
        // AcqRel, both: everything before an earlier count happens before a later one.
        let begin = self.time.fetch_add(1, Ordering::AcqRel);
        let answer = call();
        let end = self.time.fetch_add(1, Ordering::AcqRel);
        let timed = Timed { operation, answer: answer.clone(), begin, end };
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(timed);
        answer
    }

    /// The history so far, in the order of the calls' beginnings.
    pub fn calls(&self) -> Vec<Call<O, A>> {
        let mut timed = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        timed.sort_by_key(|call| call.begin);
        assert!(timed.len() <= MOST, "a history has at most {MOST} operations");
        let earlier = |of: &Timed<O, A>| {
            let earlier = timed.iter().enumerate().filter(|(_, call)| call.end < of.begin);
            earlier.fold(0, |set, (place, _)| set | 1 << place)
        };
        let call = |of: &Timed<O, A>| Call {
            operation: of.operation.clone(),
            answer: of.answer.clone(),
            after: earlier(of),
        };
        timed.iter().map(call).collect()
    }

    /// Checks the history against a sequential object.
    ///
    /// # Panics
    ///
    /// If no order of the operations explains these answers, or there are too many operations.
    #[track_caller]
    pub fn assert_linearizable<S>(&self, initial: &S)
    where
        S: Sequential<Operation = O, Answer = A>,
    {
        let calls = self.calls();
        if explain(initial, &calls).is_none() {
            panic!("no order of these operations explains their answers: {self:#?}");
        }
    }
}

impl<O: Clone + Debug, A: Clone + Debug> Default for Tape<O, A> {
    fn default() -> Self {
        Self::new()
    }
}

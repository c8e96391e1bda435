//! Tests of the linearizability checker, on linearizable and other counters.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_check::linearizability::Sequential;
use antiphon_check::{FailureKind, History, Model, Report, U32};
use antiphon_platform::{Atomic, AtomicInteger};

#[derive(Clone, Copy, Debug)]
enum Operation {
    Add,
    Get,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Count(u32);

impl Sequential for Count {
    type Operation = Operation;
    type Answer = u32;

    fn step(&mut self, operation: &Operation, &answer: &u32) -> bool {
        match operation {
            Operation::Add => {
                self.0 += 1;
                answer == 0
            }
            Operation::Get => answer == self.0,
        }
    }
}

/// A read is an operation of 0; a write is any other value. Both return the old value.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Register(u32);

impl Sequential for Register {
    type Operation = u32;
    type Answer = u32;

    fn step(&mut self, &value: &u32, &answer: &u32) -> bool {
        let old = if value == 0 { self.0 } else { std::mem::replace(&mut self.0, value) };
        old == answer
    }
}

/// A counter of two words: threads add to either, and get the sum.
struct Counter {
    words: [U32; 2],
    split: bool,
    atomic: bool,
}

impl Counter {
    fn add(&self, me: usize) -> u32 {
        let word = &self.words[if self.split { me } else { 0 }];
        if self.atomic {
            word.fetch_add(1, Release);
        } else {
            word.store(word.load(Acquire) + 1, Release);
        }
        0
    }

    fn get(&self) -> u32 {
        self.words[0].load(Acquire) + self.words[1].load(Acquire)
    }
}

fn counter(split: bool, atomic: bool) -> Report {
    Model::new("counter").run(|s| {
        let words = [const { U32::ZERO }; 2];
        let counter = s.share(Counter { words, split, atomic });
        let history = s.share(History::new());
        for me in 0..2 {
            s.spawn(move || {
                history.record(Operation::Add, || counter.add(me));
                history.record(Operation::Get, || counter.get());
            });
        }
        s.finally(move || {
            history.record(Operation::Get, || counter.get());
            history.assert_linearizable(&Count(0));
        });
    })
}

#[test]
fn one_word_is_linearizable() {
    counter(false, true).assert_complete();
}

#[test]
fn two_words_are_not() {
    // Each thread sees its own addition and misses the other's.
    let report = counter(true, true);
    let failure = report.assert_fails(FailureKind::Panic);
    assert!(failure.what.contains("thread 1: Get = 1"), "{failure}");
}

#[test]
fn lost_additions_are_found() {
    counter(false, false).assert_fails(FailureKind::Panic);
}

#[test]
fn happens_before_is_kept() {
    // A read that must come after the write may not be ordered before it.
    let stale = |order| {
        Model::new("register").run(move |s| {
            let (word, done) = s.share((U32::ZERO, U32::ZERO));
            let history = s.share(History::new());
            s.spawn(move || {
                history.record(1, || word.swap(1, Relaxed));
                done.store(1, order);
            });
            s.spawn(move || {
                done.wait_while(Acquire, |done| done == 0);
                history.record(0, || 0);
            });
            s.finally(move || {
                history.assert_linearizable(&Register(0));
            });
        })
    };
    stale(Relaxed).assert_complete();
    stale(Release).assert_fails(FailureKind::Panic);
}

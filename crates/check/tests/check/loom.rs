//! A second opinion: loom's outcomes of two-thread programs.
//!
//! Loom enumerates interleavings with its own memory model, whose modification order is the order
//! of execution. So it may show less than this checker, where two threads write the same word; it
//! must never show more, and without such races it must show the same.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::{Arc, Mutex};

use antiphon_check::{Check, Model, U32};
use antiphon_platform::{Atomic, AtomicInteger, Atomics as _};

#[derive(Clone, Copy, Debug)]
enum Step {
    Load(usize, Ordering),
    Store(usize, u32, Ordering),
    Add(usize, Ordering),
    Exchange(usize, u32, u32, Ordering),
    Fence(Ordering),
}

type Program = [&'static [Step]; 2];
type Outcomes = BTreeSet<Vec<u32>>;

fn checked(program: Program) -> Outcomes {
    let all = Mutex::new(Outcomes::new());
    Model::new("two threads")
        .run(|s| {
            let words = s.share([const { U32::ZERO }; 2]);
            let seen = s.share(Mutex::new([vec![], vec![]]));
            for (number, steps) in program.into_iter().enumerate() {
                s.spawn(move || {
                    for &step in steps {
                        let value = match step {
                            Step::Load(word, order) => words[word].load(order),
                            Step::Store(word, value, order) => {
                                words[word].store(value, order);
                                continue;
                            }
                            Step::Add(word, order) => words[word].fetch_add(1, order),
                            Step::Exchange(word, old, new, order) => words[word]
                                .compare_exchange(old, new, order, Relaxed)
                                .unwrap_or_else(|seen| seen + 10),
                            Step::Fence(order) => {
                                Check::fence(order);
                                continue;
                            }
                        };
                        seen.lock().expect("nobody panics")[number].push(value);
                    }
                });
            }
            let all = &all;
            s.finally(move || {
                let outcome = seen.lock().expect("nobody panics").concat();
                all.lock().expect("nobody panics").insert(outcome);
            });
        })
        .assert_complete();
    all.into_inner().expect("nobody panics")
}

fn loomed(program: Program) -> Outcomes {
    use loom::sync::atomic::{AtomicU32, fence};

    let all = Arc::new(Mutex::new(Outcomes::new()));
    let keep = Arc::clone(&all);
    loom::model(move || {
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let threads = program.map(|steps| {
            let words = Arc::clone(&words);
            loom::thread::spawn(move || {
                let mut seen = Vec::new();
                for &step in steps {
                    seen.push(match step {
                        Step::Load(word, order) => words[word].load(order),
                        Step::Store(word, value, order) => {
                            words[word].store(value, order);
                            continue;
                        }
                        Step::Add(word, order) => words[word].fetch_add(1, order),
                        Step::Exchange(word, old, new, order) => words[word]
                            .compare_exchange(old, new, order, Relaxed)
                            .unwrap_or_else(|seen| seen + 10),
                        Step::Fence(order) => {
                            fence(order);
                            continue;
                        }
                    });
                }
                seen
            })
        });
        let outcome = threads.map(|thread| thread.join().expect("nobody panics")).concat();
        keep.lock().expect("nobody panics").insert(outcome);
    });
    std::mem::take(&mut *all.lock().expect("nobody panics"))
}

/// Programs in which no word is stored to by both threads.
const SAME: [Program; 7] = [
    // Store buffering.
    [
        &[Step::Store(0, 1, Relaxed), Step::Load(1, Relaxed)],
        &[Step::Store(1, 1, Relaxed), Step::Load(0, Relaxed)],
    ],
    [
        &[Step::Store(0, 1, Relaxed), Step::Fence(SeqCst), Step::Load(1, Relaxed)],
        &[Step::Store(1, 1, Relaxed), Step::Fence(SeqCst), Step::Load(0, Relaxed)],
    ],
    // Message passing.
    [
        &[Step::Store(0, 1, Relaxed), Step::Store(1, 1, Release)],
        &[Step::Load(1, Acquire), Step::Load(0, Relaxed)],
    ],
    [
        &[Step::Store(0, 1, Relaxed), Step::Store(1, 1, Relaxed)],
        &[Step::Load(1, Acquire), Step::Load(0, Relaxed)],
    ],
    [
        &[Step::Store(0, 1, Relaxed), Step::Fence(Release), Step::Store(1, 1, Relaxed)],
        &[Step::Load(1, Relaxed), Step::Fence(Acquire), Step::Load(0, Relaxed)],
    ],
    // Read-modify-writes.
    [
        &[Step::Add(0, AcqRel), Step::Load(1, Relaxed), Step::Add(0, Relaxed)],
        &[Step::Store(1, 1, Relaxed), Step::Add(0, AcqRel)],
    ],
    [
        &[Step::Exchange(0, 0, 1, AcqRel), Step::Store(1, 1, Relaxed), Step::Add(0, Release)],
        &[Step::Exchange(0, 0, 2, Acquire), Step::Load(1, Relaxed), Step::Load(0, Acquire)],
    ],
];

/// Programs in which both threads store to a word.
const MORE: [Program; 3] = [
    [
        &[Step::Store(0, 1, Relaxed), Step::Store(1, 2, Relaxed), Step::Load(1, Relaxed)],
        &[Step::Store(1, 1, Relaxed), Step::Store(0, 2, Relaxed), Step::Load(0, Relaxed)],
    ],
    [
        &[Step::Store(0, 1, Release), Step::Load(0, Relaxed), Step::Load(0, Relaxed)],
        &[Step::Store(0, 2, Release), Step::Load(0, Relaxed), Step::Load(0, Relaxed)],
    ],
    [
        &[Step::Store(0, 1, Relaxed), Step::Fence(SeqCst), Step::Add(1, Relaxed)],
        &[Step::Store(0, 2, Relaxed), Step::Add(1, Relaxed), Step::Load(0, Relaxed)],
    ],
];

#[test]
fn loom_shows_the_same() {
    for program in SAME {
        assert_eq!(checked(program), loomed(program), "{program:?}");
    }
}

#[test]
fn loom_shows_no_more() {
    for program in MORE {
        let (checked, loomed) = (checked(program), loomed(program));
        assert!(loomed.is_subset(&checked), "{program:?}: {loomed:?}, here {checked:?}");
    }
}

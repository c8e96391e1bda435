//! Textbook programs: the checker shows exactly the outcomes that the memory model allows.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use antiphon_check::{Check, Mode, Model, Report, U32};
use antiphon_platform::{Atomic, AtomicInteger, Atomics as _};

type Thread = fn(&[U32; 3]) -> u32;

/// Runs the threads in the given mode; returns what they returned, in all executions.
fn outcomes_in(mode: Mode, threads: &[Thread]) -> (BTreeSet<Vec<u32>>, Report) {
    let all = RefCell::new(BTreeSet::new());
    let report = Model::new("litmus").mode(mode).run(|s| {
        let words = s.share([const { U32::ZERO }; 3]);
        let results = s.share(RefCell::new(vec![0; threads.len()]));
        for (number, &thread) in threads.iter().enumerate() {
            s.spawn(move || {
                let result = thread(words);
                results.borrow_mut()[number] = result;
            });
        }
        let all = &all;
        s.finally(move || {
            let mut results = results.borrow().clone();
            results.extend(words.iter().map(|word| word.load(Relaxed)));
            all.borrow_mut().insert(results);
        });
    });
    report.assert_complete();
    (all.into_inner(), report)
}

/// The number of different outcomes, equal with and without reduction.
fn outcomes(threads: &[Thread]) -> usize {
    let (outcomes, report) = outcomes_in(Mode::Exhaustive, threads);
    let (all, enumerated) = outcomes_in(Mode::Enumerate, threads);
    println!("{report} / {enumerated}");
    assert_eq!(outcomes, all);
    outcomes.len()
}

fn fence(order: Ordering) {
    Check::fence(order);
}

#[test]
fn store_buffering() {
    assert_eq!(
        outcomes(&[
            |w| {
                w[0].store(1, Release);
                w[1].load(Acquire)
            },
            |w| {
                w[1].store(1, Release);
                w[0].load(Acquire)
            },
        ]),
        4
    );
}

#[test]
fn store_buffering_with_fences() {
    assert_eq!(
        outcomes(&[
            |w| {
                w[0].store(1, Relaxed);
                fence(SeqCst);
                w[1].load(Relaxed)
            },
            |w| {
                w[1].store(1, Relaxed);
                fence(SeqCst);
                w[0].load(Relaxed)
            },
        ]),
        3
    );
}

const READ_TWO: Thread = |w| w[1].load(Relaxed) * 10 + w[0].load(Relaxed);

/// A wait, too, reads only values that the fences allow, even if an earlier write would end it: if
/// the first thread has missed the second, the second waits for the first.
#[test]
fn store_buffering_with_fences_and_a_wait() {
    let outcomes = outcomes(&[
        |w| {
            w[0].store(1, Relaxed);
            fence(SeqCst);
            let other = w[1].load(Relaxed);
            w[2].store(1, Relaxed);
            w[0].store(0, Release);
            other
        },
        |w| {
            w[1].store(1, Relaxed);
            fence(SeqCst);
            w[0].wait_while(Acquire, |there| there == 1);
            w[2].load(Relaxed)
        },
    ]);
    // Not allowed: the first thread misses the second, and the second does not wait for it.
    assert_eq!(outcomes, 3);
}

#[test]
fn message_passing() {
    let send: Thread = |w| {
        w[0].store(1, Relaxed);
        w[1].store(1, Release);
        0
    };
    let receive: Thread = |w| w[1].load(Acquire) * 10 + w[0].load(Relaxed);
    assert_eq!(outcomes(&[send, receive]), 3);
    assert_eq!(outcomes(&[send, READ_TWO]), 4);
}

#[test]
fn message_passing_with_fences() {
    let send: Thread = |w| {
        w[0].store(1, Relaxed);
        fence(Release);
        w[1].store(1, Relaxed);
        0
    };
    let receive: Thread = |w| {
        let flag = w[1].load(Relaxed);
        fence(Acquire);
        flag * 10 + w[0].load(Relaxed)
    };
    assert_eq!(outcomes(&[send, receive]), 3);
}

#[test]
fn two_plus_two_writes() {
    assert_eq!(
        outcomes(&[
            |w| {
                w[0].store(1, Relaxed);
                w[1].store(2, Relaxed);
                0
            },
            |w| {
                w[1].store(1, Relaxed);
                w[0].store(2, Relaxed);
                0
            },
        ]),
        4
    );
}

#[test]
fn read_read_coherence() {
    assert_eq!(
        outcomes(&[
            |w| {
                w[0].store(1, Relaxed);
                0
            },
            |w| w[0].load(Relaxed) * 10 + w[0].load(Relaxed),
        ]),
        3
    );
}

#[test]
fn read_modify_writes() {
    let add: Thread = |w| w[0].fetch_add(1, Relaxed);
    assert_eq!(outcomes(&[add, add]), 2);
    assert_eq!(outcomes(&[add, add, add]), 6);
    let (_, report) = outcomes_in(Mode::Exhaustive, &[add, add, add]);
    assert_eq!(report.executions, 6);
}

const WRITE_0: Thread = |w| {
    w[0].store(1, Relaxed);
    0
};
const WRITE_1: Thread = |w| {
    w[1].store(1, Relaxed);
    0
};

#[test]
fn independent_reads() {
    let forward: Thread = |w| w[0].load(Acquire) * 10 + w[1].load(Acquire);
    let backward: Thread = |w| w[1].load(Acquire) * 10 + w[0].load(Acquire);
    assert_eq!(outcomes(&[WRITE_0, WRITE_1, forward, backward]), 16);
}

#[test]
fn independent_reads_with_fences() {
    let forward: Thread = |w| {
        let first = w[0].load(Relaxed);
        fence(SeqCst);
        first * 10 + w[1].load(Relaxed)
    };
    let backward: Thread = |w| {
        let first = w[1].load(Relaxed);
        fence(SeqCst);
        first * 10 + w[0].load(Relaxed)
    };
    assert_eq!(outcomes(&[WRITE_0, WRITE_1, forward, backward]), 15);
}

#[test]
fn release_sequence() {
    let send: Thread = |w| {
        w[0].store(1, Relaxed);
        w[1].store(1, Release);
        0
    };
    let pass_on: Thread = |w| w[1].fetch_add(1, Relaxed);
    let receive: Thread = |w| if w[1].load(Acquire) == 2 { w[0].load(Relaxed) + 1 } else { 0 };
    let (all, _) = outcomes_in(Mode::Exhaustive, &[send, pass_on, receive]);
    assert!(all.iter().any(|o| o[1] == 1 && o[2] == 2));
    assert!(all.iter().all(|o| o[2] != 1), "a relaxed addition goes on with the release sequence");
    outcomes(&[send, pass_on, receive]);
}

/// C11 allows a fourth outcome, in which each load reads from the other thread's later store. As
/// in RC11, it is not shown here.
#[test]
fn load_buffering() {
    assert_eq!(
        outcomes(&[
            |w| {
                let seen = w[0].load(Relaxed);
                w[1].store(1, Relaxed);
                seen
            },
            |w| {
                let seen = w[1].load(Relaxed);
                w[0].store(1, Relaxed);
                seen
            },
        ]),
        3
    );
}

#[test]
fn compare_exchange() {
    let take: Thread = |w| u32::from(w[0].compare_exchange(0, 1, AcqRel, Relaxed).is_ok());
    assert_eq!(outcomes(&[take, take, take]), 3);
}

/// Store buffering with fences and a bystander, whose store must not help either side to miss the
/// other: where the second thread reads the bystander's 2, and the first thread has missed the
/// second, the 2 is the last word.
#[test]
fn store_buffering_with_fences_and_a_bystander() {
    let threads: [Thread; 3] = [
        |w| {
            w[0].store(1, Relaxed);
            fence(SeqCst);
            w[1].load(Relaxed)
        },
        |w| {
            w[1].store(1, Relaxed);
            fence(SeqCst);
            w[0].load(Relaxed)
        },
        |w| {
            w[0].store(2, Relaxed);
            0
        },
    ];
    let (all, _) = outcomes_in(Mode::Exhaustive, &threads);
    assert!(all.iter().any(|o| (o[0], o[1], o[3]) == (0, 2, 2)));
    assert!(all.iter().all(|o| (o[0], o[1], o[3]) != (0, 2, 1)), "{all:?}");
    outcomes(&threads);
}

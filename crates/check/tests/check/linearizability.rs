//! Tests of the search for an order: hand-written and random histories with and without an order,
//! compared with an enumeration of all orders.

use std::sync::atomic::Ordering::{Acquire, Release};

use antiphon_check::linearizability::objects::{
    Condvar, CondvarCall, Mutex, MutexCall, RwLock, RwLockCall, with_glimpses,
};
use antiphon_check::linearizability::waits::{Barrier, Semaphore, SemaphoreCall, in_halves};
use antiphon_check::linearizability::{Call, Sequential, Tape, explain};
use antiphon_check::{FailureKind, History, Model, Report, U32};
use antiphon_platform::{Atomic, AtomicInteger};

/// A history from calls with the times of their beginnings and ends.
fn history<O: Copy>(calls: &[(O, bool, u32, u32)]) -> Vec<Call<O, bool>> {
    let after = |begin: u32| {
        let earlier = calls.iter().enumerate().filter(|(_, call)| call.3 < begin);
        earlier.fold(0, |set, (place, _)| set | 1 << place)
    };
    let call = |&(operation, answer, begin, _): &_| Call { operation, answer, after: after(begin) };
    calls.iter().map(call).collect()
}

/// Returns whether any order of all calls explains them: tries each order to its end.
fn some_order_explains<S: Sequential>(
    initial: &S,
    calls: &[Call<S::Operation, S::Answer>],
) -> bool {
    fn orders(chosen: &mut Vec<usize>, count: usize, found: &mut impl FnMut(&[usize])) {
        if chosen.len() == count {
            return found(chosen);
        }
        for next in 0..count {
            if !chosen.contains(&next) {
                chosen.push(next);
                orders(chosen, count, found);
                chosen.pop();
            }
        }
    }
    let mut explained = false;
    orders(&mut Vec::new(), calls.len(), &mut |order| {
        let keeps_order = order.iter().enumerate().all(|(at, &call)| {
            order[at..].iter().all(|&later| calls[call].after & 1 << later == 0)
        });
        let mut object = initial.clone();
        explained |= keeps_order
            && order.iter().all(|&call| object.step(&calls[call].operation, &calls[call].answer));
    });
    explained
}

/// The result of the search. Asserts that an enumeration of all orders has the same result, and
/// that the order which was found is valid.
fn is_linearizable<S: Sequential>(initial: &S, calls: &[Call<S::Operation, S::Answer>]) -> bool {
    let order = explain(initial, calls);
    assert_eq!(order.is_some(), some_order_explains(initial, calls));
    if let Some(order) = &order {
        let mut object = initial.clone();
        for (at, &call) in order.iter().enumerate() {
            assert!(order[at..].iter().all(|&later| calls[call].after & 1 << later == 0));
            assert!(object.step(&calls[call].operation, &calls[call].answer));
        }
        assert_eq!(order.len(), calls.len());
    }
    order.is_some()
}

#[test]
fn two_owners_at_a_time_are_refused() {
    use MutexCall::{Lock, Try, Unlock};
    let fine = [(Lock(0), true, 0, 1), (Lock(1), true, 2, 5), (Unlock(0), true, 3, 4)];
    assert!(is_linearizable(&Mutex::default(), &history(&fine)));
    let both = [(Lock(0), true, 0, 1), (Lock(1), true, 2, 3), (Unlock(0), true, 4, 5)];
    assert!(!is_linearizable(&Mutex::default(), &history(&both)));
    let tried =
        |begin, end| [(Lock(0), true, 0, 1), (Unlock(0), true, 2, 3), (Try(1), false, begin, end)];
    assert!(is_linearizable(&Mutex::default(), &history(&tried(1, 2))));
    assert!(!is_linearizable(&Mutex::default(), &history(&tried(4, 5))), "it was free");
}

#[test]
fn readers_share_and_writers_do_not() {
    use RwLockCall::{
        Downgrade, Read, TryRead, TryUpgrade, TryWrite, UnlockRead, Upgradable, Upgrade, Write,
    };
    let is = |calls: &[_]| is_linearizable(&RwLock::default(), &history(calls));
    assert!(is(&[(Read(0), true, 0, 1), (Read(1), true, 2, 3), (TryWrite(2), false, 4, 5)]));
    assert!(!is(&[(Read(0), true, 0, 1), (Write(1), true, 2, 3)]));
    assert!(!is(&[(Write(0), true, 0, 1), (TryRead(1), true, 2, 3)]));
    assert!(!is(&[(TryRead(1), false, 0, 1)]), "nobody is in");
    assert!(is(&[(Write(0), true, 0, 1), (Downgrade(0), true, 2, 3), (Read(1), true, 4, 5)]));
    let upgradable = (Upgradable(0), true, 0, 1);
    let reads = (Read(1), true, 2, 3);
    assert!(!is(&[upgradable, (Upgradable(1), true, 2, 3)]));
    assert!(!is(&[upgradable, reads, (Upgrade(0), true, 4, 5)]));
    assert!(is(&[upgradable, reads, (Upgrade(0), true, 4, 9), (UnlockRead(1), true, 5, 8)]));
    assert!(is(&[upgradable, reads, (TryUpgrade(0), false, 4, 5)]));
    assert!(!is(&[upgradable, (TryUpgrade(0), false, 4, 5)]), "nobody else reads");
}

/// A reader that will wait may own the lock for a moment, but not before it begins or after it
/// ends.
#[test]
fn a_glimpse_makes_a_try_fail() {
    use RwLockCall::{Read, TryWrite, UnlockRead, UnlockWrite, Write};
    let is = |begin, end| {
        let calls = [
            (TryWrite(1), false, begin, end),
            (Read(0), true, 4, 12),
            (Write(2), true, 7, 8),
            (UnlockWrite(2), true, 9, 10),
            (UnlockRead(0), true, 13, 14),
        ];
        let strict = is_linearizable(&RwLock::default(), &history(&calls));
        assert!(!strict, "nobody is in");
        is_linearizable(&RwLock::default(), &with_glimpses(history(&calls)))
    };
    assert!(is(5, 6));
    assert!(!is(1, 2) && !is(15, 16));
}

#[test]
fn a_notification_is_one_waiters() {
    use CondvarCall::{Begin, End, NotifyAll, NotifyOne};
    let is = |calls: &[_]| is_linearizable(&Condvar::default(), &history(calls));
    let (first, second) = ((Begin(0), true, 0, 1), (Begin(1), true, 2, 3));
    let one = (NotifyOne, true, 4, 5);
    assert!(is(&[first, second, one, (End(0), true, 6, 7), (End(1), false, 6, 7)]));
    assert!(!is(&[first, second, one, (End(0), true, 6, 7), (End(1), true, 8, 9)]));
    assert!(!is(&[first, second, one, (End(1), true, 6, 7)]), "the other has waited longer");
    let all = (NotifyAll, true, 4, 5);
    assert!(is(&[first, second, all, (End(0), true, 6, 7), (End(1), true, 8, 9)]));
    assert!(!is(&[first, (NotifyOne, false, 4, 5)]), "somebody waits");
}

#[test]
fn permits_are_counted() {
    use SemaphoreCall::{Acquire, Release, Try};
    let is = |calls: &[_]| is_linearizable(&Semaphore { permits: 1 }, &history(calls));
    let had = (Acquire(1), true, 0, 1);
    assert!(!is(&[had, (Try(1), true, 2, 3)]), "one too many");
    assert!(is(&[had, (Try(1), false, 2, 3), (Acquire(1), true, 2, 6), (Release(1), true, 4, 5)]));
    assert!(!is(&[had, (Release(1), true, 2, 3), (Try(1), false, 4, 5)]), "it was there");
    assert!(is(&[(Release(2), true, 0, 1), (Try(3), true, 2, 3), (Try(1), false, 4, 5)]));
    // Two permits that are released together arrive together.
    let given = (Release(2), true, 0, 5);
    assert!(!is(&[given, (Try(2), true, 1, 2), (Try(1), false, 3, 4)]), "the first of two");
    assert!(is(&[given, (Try(2), false, 1, 2), (Try(3), true, 3, 4)]));
}

#[test]
fn all_meet_at_a_barrier_and_one_leads() {
    // Too many operations for all orders of them.
    let is = |waits: &[_]| explain(&Barrier::new(2), &in_halves(&history(waits))).is_some();
    assert!(is(&[(0, true, 0, 3), (1, false, 2, 4)]));
    assert!(!is(&[(0, true, 0, 1), (1, false, 2, 3)]), "one goes before the other has come");
    assert!(!is(&[(0, true, 0, 3), (1, true, 2, 4)]), "two leaders");
    assert!(!is(&[(0, false, 0, 3), (1, false, 2, 4)]), "no leader");
    assert!(!is(&[(0, true, 0, 3)]), "nobody else comes");
    let again = [(0, true, 0, 3), (1, false, 2, 9), (0, false, 4, 7), (2, true, 5, 6)];
    assert!(is(&again), "one is late to go, and others meet meanwhile");
    assert!(!is(&again[..3]), "once more, alone");
    let [first, second] = [(2, true, 10, 11), (3, false, 10, 11)];
    assert!(is(&[&again[..], &[first, second]].concat()));
    assert!(!is(&[&again[..], &[first, (3, true, 10, 11)]].concat()));
}

/// Random histories of up to six calls of three threads: some thousand are explained, and some
/// thousand are not.
#[test]
fn an_enumeration_says_the_same() {
    let mut seed = 1_u64;
    let mut draw = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    let mut counts = [0; 2];
    for _ in 0..4_000 {
        let calls: Vec<_> = (0..2 + draw(4))
            .map(|_| {
                let me = draw(3) as usize;
                let operation = match draw(8) {
                    0 => RwLockCall::Write(me),
                    1 => RwLockCall::UnlockWrite(me),
                    2 => RwLockCall::TryWrite(me),
                    3 => RwLockCall::UnlockRead(me),
                    4 => RwLockCall::TryRead(me),
                    5 => RwLockCall::Downgrade(me),
                    _ => RwLockCall::Read(me),
                };
                let fails = matches!(operation, RwLockCall::TryRead(_) | RwLockCall::TryWrite(_));
                let begin = draw(8) as u32;
                (operation, !(fails && draw(2) == 0), begin, begin + draw(6) as u32)
            })
            .collect();
        counts[usize::from(is_linearizable(&RwLock::default(), &history(&calls)))] += 1;
    }
    assert!(counts.iter().all(|&count| count > 500), "{counts:?}");
}

#[test]
fn a_tape_keeps_what_was_before() {
    let tape = Tape::new();
    tape.record(MutexCall::Lock(0), || {
        tape.record(MutexCall::Try(1), || false);
        true
    });
    tape.record(MutexCall::Unlock(0), || true);
    let after: Vec<_> = tape.calls().iter().map(|call| call.after).collect();
    assert_eq!(after, [0, 0, 0b11]);
    let refused = std::panic::catch_unwind(|| tape.assert_linearizable(&Mutex::default()));
    assert!(refused.is_ok(), "the try may come after the lock");
    tape.record(MutexCall::Try(1), || false);
    let refused = std::panic::catch_unwind(|| tape.assert_linearizable(&Mutex::default()));
    assert!(refused.is_err(), "it fails on a free lock");
}

/// A lock of two bits: taken, and whether a thread has had to wait.
struct Toy {
    word: U32,
    /// Defect b of the published ShflLock: a try compares the whole word, so it fails on a free
    /// lock that was contended once.
    tries_wrongly: bool,
}

impl Toy {
    fn try_lock(&self) -> bool {
        let seen = self.word.load(Acquire);
        let expected = if self.tries_wrongly { 0 } else { seen & !1 };
        self.word.compare_exchange(expected, expected | 1, Acquire, Acquire).is_ok()
    }

    fn lock(&self) {
        while !self.try_lock() {
            self.word.fetch_or(2, Release);
            self.word.wait_while(Acquire, |word| word & 1 != 0);
            if self.tries_wrongly && self.word.compare_exchange(2, 3, Acquire, Acquire).is_ok() {
                return;
            }
        }
    }
}

fn toy(tries_wrongly: bool) -> Report {
    Model::new("toy").expiries(0).run(move |s| {
        let toy = s.share(Toy { word: U32::ZERO, tries_wrongly });
        let history = s.share(History::new());
        for me in 0..2 {
            s.spawn(move || {
                history.record(MutexCall::Lock(me), || {
                    toy.lock();
                    true
                });
                history.record(MutexCall::Unlock(me), || {
                    toy.word.fetch_and(!1, Release);
                    true
                });
            });
        }
        s.finally(move || {
            history.record(MutexCall::Try(0), || toy.try_lock());
            history.assert_linearizable(&Mutex::default());
        });
    })
}

#[test]
fn a_broken_lock_is_refused_by_its_answers() {
    toy(false).assert_complete();
    let report = toy(true);
    let failure = report.assert_fails(FailureKind::Panic);
    assert!(failure.what.contains("Try(0) = false"), "fails on a free lock: {failure}");
}

//! The promises of the platform to algorithms, one per test.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use antiphon_check::{Check, Data, FailureKind, HeavyFence, Mode, Model, Scope, U8, U16, U32};
use antiphon_platform::{
    Arena, Atomic, AtomicInteger, Atomics, Budget, Clock, Clocks as _, Deadline, Hints as _,
    LightUnlock as _, Parked, Platform, ThreadId, Topology as _, Waiter, WaiterRef,
};

/// The nodes.
fn arena() -> &'static Arena<Check> {
    // SAFETY: each thread writes only to nodes that it has taken.
    unsafe { Check::arena() }
}

/// The notes that a model's threads made, over all executions.
struct Seen<T>(RefCell<BTreeSet<T>>);

impl<T: Ord + Clone> Seen<T> {
    fn new() -> Self {
        Self(RefCell::default())
    }

    fn add(&self, value: T) {
        self.0.borrow_mut().insert(value);
    }

    fn all(&self) -> Vec<T> {
        self.0.borrow().iter().cloned().collect()
    }
}

fn node() -> (&'static Waiter<Check>, WaiterRef) {
    let id = arena().take().expect("there are nodes");
    let reference = arena().reference(id.index()).expect("it is in use");
    (arena().resolve_any(id).expect("it was handed out"), reference)
}

fn deadline(ns: u64) -> Option<Deadline> {
    Some(Deadline { clock: Clock::Monotonic, ns })
}

#[test]
fn a_wake_is_not_lost_and_orders() {
    for spurious in 0..2 {
        Model::new("wake")
            .spurious(spurious)
            .run(|s| {
                let (node, reference) = node();
                let data = s.share(Data::new(0));
                let woken = s.share(U32::ZERO);
                s.spawn(move || {
                    while woken.load(Relaxed) == 0 {
                        let _ = Check::park(node, None);
                    }
                    Check::fence(Acquire);
                    assert_eq!(data.get(), 1);
                });
                s.spawn(move || {
                    data.set(1);
                    woken.store(1, Release);
                    Check::unpark(reference);
                });
            })
            .assert_complete();
    }
}

#[test]
fn an_unpark_happens_before_the_return() {
    Model::new("wake orders")
        .spurious(0)
        .run(|s| {
            let (node, reference) = node();
            let data = s.share((Data::new(0), Data::new(0)));
            s.spawn(move || {
                assert_eq!(Check::park(node, None), Parked::Woken);
                assert_eq!(data.0.get(), 1);
            });
            s.spawn(move || {
                data.0.set(1);
                Check::unpark(reference);
            });
        })
        .assert_complete();
}

#[test]
fn parks_wake_for_no_reason_within_the_bound() {
    let seen = Seen::new();
    let report = Model::new("spurious").spurious(1).run(|s| {
        let (node, _) = node();
        let seen = &seen;
        s.spawn(move || {
            seen.add(Check::park(node, None) == Parked::Woken);
            let _ = Check::park(node, None);
        });
    });
    let failure = report.assert_fails(FailureKind::Deadlock);
    assert!(failure.what.contains("thread 1 is parked"), "{}", failure.what);
    let report = Model::new("spurious").spurious(1).run(|s| {
        let (node, reference) = node();
        let seen = &seen;
        s.spawn(move || seen.add(Check::park(node, None) == Parked::Woken));
        s.spawn(move || Check::unpark(reference));
    });
    report.assert_complete();
    assert_eq!(seen.all(), [true]);
}

#[test]
fn a_stale_reference_wakes_nobody() {
    let report = Model::new("stale").spurious(0).run(|s| {
        let (node, reference) = node();
        let stale = WaiterRef { generation: reference.generation - 2, ..reference };
        s.spawn(move || {
            let _ = Check::park(node, None);
        });
        s.spawn(move || Check::unpark(stale));
    });
    report.assert_fails(FailureKind::Deadlock);
}

#[test]
fn deadlines_pass_before_and_instead_of_a_wake() {
    let seen = Seen::new();
    let report = Model::new("deadline").run(|s| {
        let (node, reference) = node();
        let seen = &seen;
        s.spawn(move || {
            let parked = Check::park(node, deadline(1_000_000));
            if parked == Parked::TimedOut {
                assert!(Check::now(Clock::Monotonic) >= 1_000_000);
            }
            seen.add(parked == Parked::TimedOut);
        });
        s.spawn(move || Check::unpark(reference));
    });
    report.assert_complete();
    assert_eq!(seen.all(), [false, true]);
}

#[test]
fn deadlines_pass_when_nothing_else_can_happen() {
    let seen = Seen::new();
    let report = Model::new("forced").spurious(0).timeouts(0).run(|s| {
        let (node, _) = node();
        let word = s.share(U32::ZERO);
        let seen = &seen;
        s.spawn(move || {
            seen.add(Check::park(node, deadline(500)) == Parked::TimedOut);
            seen.add(word.swap(1, AcqRel) == 0);
        });
        s.spawn(move || seen.add(word.wait_while(Acquire, |word| word == 0) == 1));
    });
    assert_eq!(report.assert_complete().forced, report.executions);
    assert_eq!(seen.all(), [true]);
}

#[test]
fn budgets_expire_within_the_bound() {
    for (expiries, outcomes) in [(0, vec![0]), (1, vec![0, 1]), (2, vec![0, 1, 2])] {
        let seen = Seen::new();
        let report = Model::new("budget").expiries(expiries).run(|s| {
            let word = s.share(U32::ZERO);
            let seen = &seen;
            s.spawn(move || {
                let spin = || word.spin_while(Acquire, Budget::ns(100), |word| word == 0);
                let mut spent = 0;
                while let Err(value) = spin() {
                    assert_eq!(value, 0);
                    spent += 1;
                }
                seen.add(spent);
            });
            s.spawn(move || word.store(1, Release));
        });
        report.assert_complete();
        assert_eq!(seen.all(), outcomes);
    }
}

#[test]
fn a_wait_may_miss_its_chance() {
    let report = Model::new("door").run(|s| {
        let door = s.share(U32::ZERO);
        s.spawn(move || {
            door.store(1, Relaxed);
            door.store(0, Relaxed);
        });
        s.spawn(move || {
            door.wait_while(Relaxed, |door| door == 0);
        });
    });
    let failure = report.assert_fails(FailureKind::Deadlock);
    assert!(failure.what.contains("thread 2 waits for word0, which is 0x0"), "{}", failure.what);
}

/// An unlocker's section and a sleeper, each of which must see the other's write.
fn light(heavy: HeavyFence, seen: &Seen<(bool, u8)>) {
    let report = Model::new("light").light(true).heavy_fence(heavy).run(|s| {
        let word = s.share(<Check as Atomics>::U8::ZERO);
        let flag = s.share(<Check as Atomics>::U16::ZERO);
        s.spawn(move || {
            // SAFETY: both words live until the execution has ended.
            let stored = unsafe { Check::store_unless(word, 1, flag) };
            seen.add((stored, 9));
        });
        s.spawn(move || {
            flag.store(1, Relaxed);
            let refused = Check::heavy_fence().is_err();
            seen.add((refused, 10 + word.load(Relaxed)));
        });
        s.finally(move || {
            assert_eq!(flag.load(Relaxed), 1);
        });
    });
    report.assert_complete();
}

#[test]
fn heavy_fences_come_before_or_after_a_section() {
    let lost = |heavy: HeavyFence| {
        let lost = Model::new("light").light(true).heavy_fence(heavy).run(|s: &Scope<'_, '_>| {
            let word = s.share(<Check as Atomics>::U8::ZERO);
            let flag = s.share(<Check as Atomics>::U16::ZERO);
            let both = s.share(RefCell::new((false, 0)));
            s.spawn(move || {
                // SAFETY: both words live until the execution has ended.
                let stored = unsafe { Check::store_unless(word, 1, flag) };
                both.borrow_mut().0 = stored;
            });
            s.spawn(move || {
                flag.store(1, Relaxed);
                let _ = Check::heavy_fence();
                let seen = word.load(Relaxed);
                both.borrow_mut().1 = seen;
            });
            s.finally(move || assert_ne!(*both.borrow(), (true, 0)));
        });
        lost.failure.map(|failure| failure.kind)
    };
    assert_eq!(lost(HeavyFence::Granted), None);
    assert_eq!(lost(HeavyFence::Refused), Some(FailureKind::Panic));
    assert_eq!(lost(HeavyFence::Either), Some(FailureKind::Panic));
    let seen = Seen::new();
    light(HeavyFence::Either, &seen);
    assert_eq!(
        seen.all(),
        [(false, 9), (false, 10), (false, 11), (true, 9), (true, 10), (true, 11)]
    );
}

/// Two threads store, fence, and load the word of the other: returns whether both may miss the
/// store.
fn both_miss(fences: [fn(); 2]) -> bool {
    let report = Model::new("fences").run(move |s: &Scope<'_, '_>| {
        let words = s.share([(); 2].map(|()| <Check as Atomics>::U32::ZERO));
        let seen = s.share(RefCell::new([1; 2]));
        for me in 0..2 {
            s.spawn(move || {
                words[me].store(1, Relaxed);
                fences[me]();
                let other = words[1 - me].load(Relaxed);
                seen.borrow_mut()[me] = other;
            });
        }
        s.finally(move || assert_ne!(*seen.borrow(), [0, 0]));
    });
    report.failure.is_some()
}

#[test]
fn light_fences_are_ordered_with_heavy_ones_only() {
    let heavy = || Check::heavy_fence().expect("granted");
    assert!(!both_miss([Check::light_fence, heavy]));
    assert!(both_miss([|| {}, heavy]));
    assert!(both_miss([Check::light_fence, Check::light_fence]));
    assert!(both_miss([Check::light_fence, || Check::fence(SeqCst)]));
}

#[test]
fn a_section_after_a_heavy_fence_sees_the_flag() {
    // A thread that has seen a store from behind the fence tests the flag after the fence.
    let report = Model::new("light").light(true).run(|s| {
        let word = s.share(<Check as Atomics>::U8::ZERO);
        let flag = s.share(<Check as Atomics>::U16::ZERO);
        let behind = s.share(U32::ZERO);
        s.spawn(move || {
            flag.store(1, Relaxed);
            Check::heavy_fence().expect("it is granted");
            behind.store(1, Relaxed);
        });
        s.spawn(move || {
            let seen = behind.load(Relaxed);
            // SAFETY: both words live until the execution has ended.
            let stored = unsafe { Check::store_unless(word, 1, flag) };
            assert!(seen == 0 || !stored);
        });
    });
    report.assert_complete();
}

#[test]
fn crowds_sockets_and_choices_are_explored() {
    let seen = Seen::new();
    let model = Model::new("where").sockets(2).migrations(1).crowded(1);
    let report = model.run(|s| {
        let seen = &seen;
        s.spawn_on(1, move || {
            assert!(Check::numa());
            let places = [Check::socket().0, Check::socket().0];
            seen.add((places, [Check::crowded(), Check::crowded()], antiphon_check::choose(2)));
        });
    });
    report.assert_complete();
    // Three ways to move at most once, three to be crowded at most once, two choices.
    assert_eq!(seen.all().len(), 3 * 3 * 2);
    assert_eq!(report.executions, 18);
}

#[test]
fn arenas_can_be_exhausted() {
    for waiters in 1..4 {
        let most = RefCell::new(0);
        Model::new("arena")
            .waiters(waiters)
            .run(|s| {
                let taken = s.share(U32::ZERO);
                let most = &most;
                for _ in 0..2 {
                    s.spawn(move || {
                        if let Some(id) = arena().take() {
                            assert!(id.index() < waiters);
                            taken.fetch_add(1, Relaxed);
                        }
                    });
                }
                s.finally(move || {
                    let taken = taken.load(Relaxed);
                    most.replace_with(|most| taken.max(*most));
                });
            })
            .assert_complete();
        assert_eq!(*most.borrow(), (waiters - 1).min(2));
    }
}

#[test]
fn nodes_are_handed_out_once() {
    let report = Model::new("arena").time(std::time::Duration::from_secs(5)).run(|s| {
        let used = s.share([const { Data::new(0) }; 4]);
        for _ in 0..2 {
            s.spawn(move || {
                for _ in 0..2 {
                    let id = arena().take().expect("there are nodes enough");
                    used[id.index() as usize].with_mut(|used| *used += 1);
                    arena().give(id);
                }
            });
        }
    });
    println!("{report}");
    report.assert_ok();
}

/// A lock whose owner may free it after unlocking must not be touched after the releasing store.
fn destroyed_after_unlock(touches: bool) -> antiphon_check::Report {
    Model::new("destroyed").run(|s| {
        let lock = s.share((U32::ZERO, U32::ZERO));
        s.spawn(move || {
            lock.0.store(1, Release);
            if touches {
                let _ = lock.1.load(Relaxed);
            }
        });
        s.spawn(move || {
            lock.0.wait_while(Acquire, |word| word == 0);
            antiphon_check::retire(lock);
        });
    })
}

#[test]
fn retired_memory_is_not_touched() {
    destroyed_after_unlock(false).assert_complete();
    destroyed_after_unlock(true).assert_fails(FailureKind::UseAfterRetire);
}

#[test]
fn statics_and_dropped_words_start_anew() {
    static WORD: U32 = U32::ZERO;
    let report = Model::new("static").run(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                WORD.fetch_add(1, Relaxed);
                for _ in 0..2 {
                    let own = Box::new(U32::ZERO);
                    assert_eq!(own.fetch_add(1, Relaxed), 0);
                }
            });
        }
        s.finally(|| assert_eq!(WORD.load(Relaxed), 2));
    });
    assert_eq!(report.assert_complete().executions, 2);
}

#[test]
fn endless_loops_and_probes_are_reported() {
    let report = Model::new("endless").steps(100).run(|s| {
        let word = s.share(U8::ZERO);
        s.spawn(move || {
            while word.load(Relaxed) == 0 {
                antiphon_check::probe("again");
            }
        });
    });
    report.assert_fails(FailureKind::StepLimit);
    assert_eq!(report.probes["again"], 99);
}

#[test]
fn sequentially_consistent_accesses_are_refused() {
    let report = Model::new("refused").run(|s| {
        let word = s.share(U16::ZERO);
        s.spawn(move || word.store(1, std::sync::atomic::Ordering::SeqCst));
    });
    let failure = report.assert_fails(FailureKind::Panic);
    assert!(failure.what.contains("use a fence"), "{}", failure.what);
}

/// A lost update: found in each mode, and each finding can be replayed.
fn racy(mode: Mode) -> antiphon_check::Report {
    Model::new("racy").mode(mode).run(|s| {
        let word = s.share(U32::ZERO);
        antiphon_check::name(word, "counter");
        for _ in 0..3 {
            s.spawn(move || {
                let value = word.load(Relaxed);
                word.store(value + 1, Relaxed);
            });
        }
        s.finally(move || assert_eq!(word.load(Relaxed), 3));
    })
}

#[test]
fn failures_can_be_replayed() {
    let modes = [
        Mode::Exhaustive,
        Mode::Enumerate,
        Mode::Random { seed: 1, executions: 1000 },
        Mode::Pct { seed: 1, depth: 3, executions: 1000 },
    ];
    for mode in modes {
        let report = racy(mode.clone());
        let found = report.assert_fails(FailureKind::Panic);
        assert!(found.trace.contains("counter"), "{}", found.trace);
        let again = racy(Mode::Replay(found.replay.clone()));
        let again = again.assert_fails(FailureKind::Panic);
        assert_eq!((&found.trace, &found.what), (&again.trace, &again.what), "{mode:?}");
        assert_eq!(found.replay, again.replay);
    }
}

#[test]
fn runs_are_deterministic() {
    let run = |mode: Mode| {
        let report = racy(mode);
        (report.executions, report.failure.map(|failure| failure.replay))
    };
    for mode in [Mode::Exhaustive, Mode::Random { seed: 7, executions: 100 }] {
        assert_eq!(run(mode.clone()), run(mode));
    }
}

#[test]
fn time_makes_stores_visible() {
    // A store may become visible late, but not never: a thread that loads repeatedly sees it.
    let report = Model::new("late").run(|s| {
        let (node, _) = node();
        let word = s.share(U32::ZERO);
        s.spawn(move || word.store(1, Relaxed));
        s.spawn(move || {
            while word.load(Relaxed) == 0 {
                let _ = Check::park(node, deadline(1));
            }
        });
    });
    report.assert_complete();
    assert!(report.longest < 20, "{report}");
}

#[test]
fn guards_may_be_dropped_by_a_panic() {
    struct Guard<'l>(&'l U32);
    impl Drop for Guard<'_> {
        fn drop(&mut self) {
            self.0.store(0, Release);
            if std::thread::panicking() {
                // The failing execution has ended: this must not wait, nor be reported.
                self.0.wait_while(Acquire, |word| word == 0);
            }
        }
    }
    let report = Model::new("guard").run(|s| {
        let word = s.share(U32::ZERO);
        for _ in 0..2 {
            s.spawn(move || {
                let guard = Guard(word);
                assert_eq!(guard.0.swap(1, Acquire), 0, "taken");
            });
        }
    });
    let failure = report.assert_fails(FailureKind::Panic);
    assert!(failure.what.contains("taken"), "{failure}");
}

/// The end of a thread becomes visible eventually, and orders nothing.
#[test]
fn a_thread_that_has_ended_is_dead() {
    let seen = Seen::new();
    let report = Model::new("mortal").mortal(true).run(|s| {
        let (word, seen) = (s.share(U32::ZERO), &seen);
        s.spawn(move || word.store(1, Relaxed));
        s.spawn(move || {
            assert!(Check::alive(Check::thread()), "whoever asks is alive");
            let alive = Check::alive(ThreadId(1));
            seen.add((alive, word.load(Relaxed)));
            assert!(alive || !Check::alive(ThreadId(1)), "the dead stay dead");
        });
        s.finally(|| assert!(!Check::alive(ThreadId(2)) && Check::alive(Check::thread())));
    });
    report.assert_complete();
    assert_eq!(seen.all(), [(false, 0), (false, 1), (true, 0), (true, 1)]);
}

#[test]
fn nobody_is_known_to_be_dead_unless_the_model_wants_it() {
    let report = Model::new("immortal").run(|s| {
        s.spawn(|| {});
        s.finally(|| assert!(Check::alive(ThreadId(1))));
    });
    assert_eq!(report.assert_complete().executions, 1);
}

#[test]
fn what_the_dead_did_may_race() {
    let report = Model::new("inheritance").mortal(true).run(|s| {
        let data = s.share(Data::new(0));
        s.spawn(move || data.set(1));
        s.spawn(move || {
            if !Check::alive(ThreadId(1)) {
                data.set(2);
            }
        });
    });
    report.assert_fails(FailureKind::DataRace);
}

/// State outside the platform determines the number of steps.
#[test]
fn a_model_that_is_not_deterministic_says_so_and_others_run_after_it() {
    let runs = std::cell::Cell::new(0);
    let run = std::panic::AssertUnwindSafe(|| {
        Model::new("count").run(|s| {
            runs.set(runs.get() + 1);
            let [word, other] = [(); 2].map(|()| s.share(<Check as Atomics>::U32::ZERO));
            let last = if runs.get() == 1 { 2 } else { 1 };
            s.spawn(move || {
                other.store(1, Relaxed);
                (1..=last).for_each(|value| word.store(value, Relaxed));
            });
            s.spawn(move || _ = (word.load(Relaxed), other.load(Relaxed)));
        })
    });
    assert!(std::panic::catch_unwind(run).is_err());
    Model::new("after it").run(|s| s.spawn(|| {})).assert_complete();
}

//! The promises of `SharedWait`, one per test.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, FailureKind, Model, Scope, U32};
use antiphon_platform::{Atomic, Clock, Deadline, Parked, SharedWait};

/// `sleepers` wait while the word is 0; one thread changes it, if it `stores`, and wakes `count`.
fn sleep<'scope>(scope: &'scope Scope<'scope, '_>, sleepers: u32, stores: bool, count: u32) {
    let word = scope.share(U32::ZERO);
    for _ in 0..sleepers {
        scope.spawn(move || {
            while word.load(Relaxed) == 0 {
                let _ = Check::wait_shared(word, 0, None);
            }
        });
    }
    scope.spawn(move || {
        if stores {
            word.store(1, Relaxed);
        }
        Check::wake_shared(word, count);
    });
}

#[test]
fn who_does_not_see_the_change_is_woken() {
    for spurious in 0..2 {
        let model = Model::new("change, then wake").spurious(spurious);
        model.run(|scope| sleep(scope, 1, true, 1)).assert_complete();
    }
    Model::new("all").spurious(0).run(|scope| sleep(scope, 2, true, u32::MAX)).assert_complete();
}

#[test]
fn a_sleeper_that_nobody_wakes_sleeps_on() {
    for (sleepers, stores, count) in [(1, true, 0), (1, false, 1), (2, true, 1)] {
        let model = Model::new("too few").spurious(0);
        let report = model.run(|scope| sleep(scope, sleepers, stores, count));
        let failure = report.failure.expect("it hangs");
        assert_eq!(failure.kind, FailureKind::Deadlock, "{sleepers} {stores} {count}");
    }
}

/// Either of two sleepers may be woken; the other one may be the one that would wake it.
#[test]
fn any_of_several_sleepers_is_woken() {
    for helper in 0..2 {
        let model = Model::new("one of two").spurious(0);
        let report = model.run(|scope| {
            let word = scope.share(U32::ZERO);
            for sleeper in 0..2 {
                scope.spawn(move || {
                    while word.load(Relaxed) == 0 {
                        let _ = Check::wait_shared(word, 0, None);
                    }
                    if sleeper == helper {
                        Check::wake_shared(word, u32::MAX);
                    }
                });
            }
            scope.spawn(move || {
                word.store(1, Relaxed);
                Check::wake_shared(word, 1);
            });
        });
        let failure = report.failure.expect("the other is woken");
        assert_eq!(failure.kind, FailureKind::Deadlock, "{helper}");
    }
}

/// A wake that has found its sleeper at the deadline does not end the sleeper's next sleep.
#[test]
fn a_wake_is_for_one_sleep() {
    let model = Model::new("deadline").spurious(0).timeouts(0);
    let report = model.run(|scope| {
        let words = scope.share([U32::ZERO, U32::ZERO]);
        scope.spawn(move || {
            let soon = Deadline { clock: Clock::Monotonic, ns: 5 };
            match Check::wait_shared(&words[0], 0, Some(soon)) {
                Parked::TimedOut => antiphon_check::probe("late"),
                Parked::Woken => antiphon_check::probe("woken"),
            }
            // No thread knows of this sleep.
            let again = Check::wait_shared(&words[1], 0, Some(Deadline { ns: 1000, ..soon }));
            assert_eq!(again, Parked::TimedOut);
        });
        scope.spawn(move || {
            words[0].store(1, Relaxed);
            Check::wake_shared(&words[0], 1);
        });
    });
    report.assert_complete();
    assert!(report.probes.contains_key("woken"), "{:?}", report.probes);
}

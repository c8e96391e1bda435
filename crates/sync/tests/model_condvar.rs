//! The condition variable: no lost wake-up, whatever is cut short.

mod common;

use antiphon_check::{Check, Data, Model, Report, Scope};
use antiphon_platform::Deadline;
use antiphon_sync::wait;
use common::model::{Mutex, by_lot, plain, soon, unlock};

type Condvar = wait::Condvar<Check>;

/// A mutex, a condition variable, and how many items there are.
struct Shelf {
    lock: Mutex,
    filled: Condvar,
    items: Data<u32>,
}

impl Shelf {
    fn new() -> Self {
        Self { lock: Mutex::NEW, filled: Condvar::NEW, items: Data::new(0) }
    }

    /// Waits for an item and takes it; `false` if `deadline` came first.
    fn take(&self, deadline: Option<Deadline>) -> bool {
        self.lock.lock();
        let mut notified = true;
        while self.items.get() == 0 && notified {
            notified = self.filled.wait(deadline, 1, || unlock(&self.lock), || self.lock.lock());
        }
        let taken = self.items.get() > 0;
        if taken {
            self.items.set(self.items.get() - 1);
        }
        unlock(&self.lock);
        taken
    }

    fn put(&self) {
        self.lock.lock();
        self.items.set(self.items.get() + 1);
        unlock(&self.lock);
    }
}

fn one_each<'scope>(scope: &'scope Scope<'scope, '_>, takers: u32) {
    let shelf = scope.share(Shelf::new());
    for _ in 0..takers {
        scope.spawn(|| assert!(shelf.take(None)));
    }
    scope.spawn(move || {
        for _ in 0..takers {
            shelf.put();
            shelf.filled.notify_one();
        }
    });
}

#[test]
fn each_notification_reaches_a_waiter() {
    let model = plain("condvar, 1 waiter").spurious(1).crowded(1);
    println!("{}", model.run(|scope| one_each(scope, 1)).assert_complete());
    for model in by_lot(&plain("condvar, 3 waiters").spurious(1), 3_000) {
        println!("{}", model.run(|scope| one_each(scope, 3)).assert_ok());
    }
}

fn all_at_once(model: &Model, takers: u32) -> Report {
    model.run(|scope| {
        let shelf = scope.share(Shelf::new());
        for _ in 0..takers {
            scope.spawn(|| assert!(shelf.take(None)));
        }
        scope.spawn(move || {
            for _ in 0..takers {
                shelf.put();
            }
            shelf.filled.notify_all();
        });
    })
}

#[test]
fn a_broadcast_reaches_all() {
    println!("{}", all_at_once(&plain("condvar, broadcast to 1"), 1).assert_complete());
    for model in by_lot(&plain("condvar, broadcast to 3").spurious(1), 3_000) {
        println!("{}", all_at_once(&model, 3).assert_ok());
    }
}

/// CV-2: of two waiters one may give up, and the item goes to the other, or it takes it itself: it
/// is never lost between them (glibc BZ#25847 is this, lost).
#[test]
fn a_waiter_that_gives_up_takes_no_notification_with_it() {
    let report = |model: &Model| {
        model.run(|scope| {
            let shelf = scope.share(Shelf::new());
            scope.spawn(|| assert!(shelf.take(None)));
            scope.spawn(|| {
                if shelf.take(Some(soon())) {
                    // The item was the other's: make it another.
                    shelf.put();
                    shelf.filled.notify_one();
                } else {
                    antiphon_check::probe("gave up");
                }
            });
            scope.spawn(|| {
                shelf.put();
                shelf.filled.notify_one();
            });
        })
    };
    for model in by_lot(&plain("condvar, one gives up").timeouts(1).spurious(1), 10_000) {
        let report = report(&model);
        assert!(report.probes.contains_key("gave up"), "{report}");
        println!("{}", report.assert_ok());
    }
}

/// What a cancelled waiter does: it stops anywhere in its sleep and passes on what it was given.
#[test]
fn a_cancelled_waiter_passes_its_notification_on() {
    let report = |model: &Model| {
        model.run(|scope| {
            let shelf = scope.share(Shelf::new());
            scope.spawn(|| assert!(shelf.take(None)));
            scope.spawn(|| {
                shelf.lock.lock();
                if shelf.items.get() == 0 {
                    let entry = shelf.filled.prepare(1);
                    unlock(&shelf.lock);
                    let ended = shelf.filled.finish(entry);
                    shelf.lock.lock();
                    ended.next.wake::<Check>();
                    if ended.notified {
                        antiphon_check::probe("cancelled after a notification");
                        shelf.filled.notify_one();
                    }
                }
                unlock(&shelf.lock);
            });
            scope.spawn(|| {
                shelf.put();
                shelf.filled.notify_one();
            });
        })
    };
    let mut reached = 0;
    for model in by_lot(&plain("condvar, cancelled"), 20_000) {
        let outcome = report(&model);
        let outcome = outcome.assert_ok();
        reached += outcome.probes.get("cancelled after a notification").copied().unwrap_or(0);
        println!("{outcome}");
    }
    assert!(reached > 0, "no execution was about what this test is about");
}

#[test]
fn survives_an_exhausted_arena() {
    for model in by_lot(&plain("condvar, no nodes").waiters(1), 2_000) {
        println!("{}", model.run(|scope| one_each(scope, 2)).assert_ok());
    }
}

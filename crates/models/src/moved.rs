//! Models of broadcasts that move the waiters into the mutex's queue: no waiter is lost or stuck,
//! and no memory is touched that may be freed.
//!
//! The waits are written out as the preload does them, with a count of the threads that may touch
//! the condition variable.

use antiphon_check::HeavyFence::{Either, Granted};
use antiphon_check::{Check, Data, set_urgency};
use antiphon_platform::{Atomic, AtomicInteger, Atomics, Deadline};
use antiphon_sync::lock::{Form, ShflMutex};
use antiphon_sync::policy;
use antiphon_sync::wait::{self, Condvar, End};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bounds::{PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, model};
use crate::forms::{Backed, Sleepy, Spinning};
use crate::program::{Program, retire, soon, unlock};

type Word = <Check as Atomics>::U32;

pub fn entries() -> Vec<Entry> {
    let timed = TIMED.spurious(1);
    let stuck_bounds = PLAIN.timeouts(2).awake();
    let moved = &["moved"];
    Subject("condvar").models([
        model("moves-listed-2+1", listed::<Sleepy>(2, 0), PLAIN).reaches(&["moved", "destroyed"]),
        model("moves-listed-spurious-2+1", listed::<Sleepy>(2, 0), SPURIOUS)
            .reaches(&["moved", "destroyed"])
            .long(),
        model("moves-listed-3+1", listed::<Sleepy>(3, 0), PLAIN)
            .reaches(&["moved", "destroyed"])
            .long(),
        model("moves-timed-2+1", listed::<Sleepy>(2, 1), TIMED)
            .reaches(&["moved", "moved at the deadline", "destroyed"])
            .long(),
        model("moves-both-timed-2+1", listed::<Sleepy>(2, 2), TIMED)
            .reaches(&["moved", "moved at the deadline", "destroyed"])
            .long(),
        model("moves-light-2+1", listed::<Sleepy>(2, 0), PLAIN.light(Granted))
            .reaches(&["moved", "destroyed"]),
        model("moves-light-3+1", listed::<Sleepy>(3, 1), timed.light(Either))
            .by_lot(5_000)
            .reaches(&["moved", "destroyed"]),
        model("moves-2+1", to_all::<Sleepy>(2, true), PLAIN).by_lot(5_000).reaches(moved),
        model("moves-unlocked-2+1", to_all::<Sleepy>(2, false), SPURIOUS)
            .by_lot(5_000)
            .reaches(moved),
        model("moves-spinning-3+1", to_all::<Spinning>(3, false), PLAIN.expiries(2))
            .by_lot(5_000)
            .reaches(moved),
        model("moves-3+1", to_all::<Sleepy>(3, true), SPURIOUS).by_lot(5_000).reaches(moved),
        model("moves-or-gives-up-3+1", or_gives_up::<Sleepy>(3), timed).by_lot(5_000).reaches(&[
            "moved",
            "moved at the deadline",
            "gave up",
        ]),
        model("destroyed-2+1", destruction::<Sleepy>(2), timed).by_lot(5_000).reaches(&[
            "moved",
            "moved at the deadline",
            "retired",
        ]),
        model("destroyed-3+1", destruction::<Sleepy>(3), timed).by_lot(5_000).reaches(&[
            "moved",
            "moved at the deadline",
            "retired",
        ]),
        model("passes-the-stuck-3+1", stuck(&[0; 3], 0), stuck_bounds)
            .by_lot(30_000)
            .reaches(&["passed"]),
        model("passes-the-stuck-4+1", stuck(&[0; 4], 0), stuck_bounds)
            .by_lot(5_000)
            .reaches(&["passed"]),
        model("passes-the-stuck-giving-up-3+1+1", stuck(&[0; 3], 1), stuck_bounds)
            .by_lot(10_000)
            .reaches(&["passed", "gave up"]),
        model("passes-the-stuck-urgent-4+1", stuck(&[0, 20, 5, 0], 0), stuck_bounds)
            .by_lot(5_000)
            .reaches(&["passed"]),
    ])
}

struct Shelf<F: Form> {
    lock: ShflMutex<Check, policy::None, F>,
    filled: Condvar<Check>,
    /// Number of threads that may touch `filled`.
    inside: Word,
    items: Data<u32>,
}

impl<F: Form> Shelf<F> {
    fn new() -> Self {
        Self { lock: ShflMutex::NEW, filled: Condvar::NEW, inside: Word::ZERO, items: Data::new(0) }
    }

    /// Begins a wait with the mutex held, and releases it.
    fn begin(&self) -> wait::Entry<Check> {
        self.inside.fetch_add(1, Relaxed);
        // SAFETY: both are shared for the whole execution, and `end` ends the wait.
        let entry = unsafe { self.filled.prepare_with(&self.lock) };
        unlock(&self.lock);
        entry
    }

    /// Ends a wait, with the mutex held again; returns whether it was notified.
    fn end(&self, entry: wait::Entry<Check>, deadline: Option<Deadline>) -> bool {
        while !entry.sleep(deadline) {}
        let (end, alone) = match entry.moved() {
            Ok(moved) => (End::Moved(moved), true),
            Err(entry) => {
                // SAFETY: `entry` was prepared in `begin`.
                let end = unsafe { self.filled.finish(entry) };
                // Release: pairs with the acquire in `destruction`.
                self.inside.fetch_sub(1, Release);
                (end, false)
            }
        };
        let notified = !matches!(end, End::GaveUp);
        match end {
            End::Moved(moved) => {
                antiphon_check::probe(if alone { "moved" } else { "moved at the deadline" });
                self.lock.lock_moved(moved);
            }
            _ => self.lock.lock(),
        }
        notified
    }

    /// Takes an item; returns `false` if `deadline` came first.
    fn take(&self, deadline: Option<Deadline>) -> bool {
        self.lock.lock();
        let mut notified = true;
        while self.items.get() == 0 && notified {
            notified = self.end(self.begin(), deadline);
        }
        let taken = self.items.get() > 0;
        if taken {
            self.items.set(self.items.get() - 1);
        }
        unlock(&self.lock);
        taken
    }

    fn notify_all(&self) {
        let moved = self.filled.notify_all();
        // Release: as in `wait`, on behalf of the waiters that were moved.
        self.inside.fetch_sub(moved, Release);
    }
}

/// CV-3: a broadcast reaches all waiters, whether it is sent with the mutex held or after its
/// release.
fn to_all<F: Form>(takers: u32, held: bool) -> Program {
    Program::new(takers + 1, takers + 1, move |scope| {
        let shelf = scope.share(Shelf::<F>::new());
        scope.spawn_each(0..takers, move |_| assert!(shelf.take(None)));
        scope.spawn(move || {
            shelf.lock.lock();
            shelf.items.set(takers);
            if held {
                shelf.notify_all();
            }
            unlock(&shelf.lock);
            if !held {
                shelf.notify_all();
            }
        });
        scope.finally(move || {
            assert_eq!(shelf.items.get(), 0);
            assert_eq!(shelf.inside.load(Relaxed), 0);
            assert!(!shelf.lock.is_locked() && !shelf.filled.has_waiters());
        });
    })
}

/// [`to_all`] for waiters that already wait; only the broadcast is enumerated, and how the waiters
/// get the mutex, which the last of them destroys (MOVE-1). The last `timed` of them have a
/// deadline. Must reach `destroyed`.
fn listed<F: Form>(takers: u32, timed: u32) -> Program {
    Program::new(takers + 1, takers + 1, move |scope| {
        let shelf = scope.share(Shelf::<F>::new());
        let here = scope.share(Data::new(0));
        for taker in 0..takers {
            shelf.lock.lock();
            let entry = shelf.begin();
            scope.spawn(move || {
                let deadline = (taker >= takers - timed).then(soon);
                let _ = shelf.end(entry, deadline);
                let last = here.get() + 1 == takers;
                here.set(here.get() + 1);
                unlock(&shelf.lock);
                if last {
                    antiphon_check::retire(&shelf.lock);
                    antiphon_check::probe("destroyed");
                }
            });
        }
        scope.spawn(|| shelf.notify_all());
        scope.finally(move || {
            assert_eq!(here.get(), takers);
            assert_eq!(shelf.inside.load(Relaxed), 0);
            assert!(!shelf.filled.has_waiters());
        });
    })
}

/// [`to_all`] for waiters that may give up: each takes an item, or leaves one.
fn or_gives_up<F: Form>(takers: u32) -> Program {
    Program::new(takers + 1, takers + 1, move |scope| {
        let shelf = scope.share(Shelf::<F>::new());
        let given_up = scope.share(Word::ZERO);
        scope.spawn_each(0..takers, move |_| {
            if !shelf.take(Some(soon())) {
                antiphon_check::probe("gave up");
                given_up.fetch_add(1, Relaxed);
            }
        });
        scope.spawn(move || {
            shelf.lock.lock();
            shelf.items.set(takers);
            shelf.notify_all();
            unlock(&shelf.lock);
        });
        scope.finally(move || assert_eq!(shelf.items.get(), given_up.load(Relaxed)));
    })
}

/// CV-4: the condition variable is destroyed when all are notified, by a thread that holds the
/// mutex, so that the waiters have not returned. Must reach `retired`.
fn destruction<F: Form>(takers: u32) -> Program {
    Program::new(takers + 1, takers + 1, move |scope| {
        let shelf = scope.share(Shelf::<F>::new());
        scope.spawn_each(0..takers, move |_| {
            let _ = shelf.take(Some(soon()));
        });
        scope.spawn(move || {
            shelf.lock.lock();
            shelf.items.set(takers);
            shelf.notify_all();
            // Acquire: pairs with the release of each thread that has left.
            shelf.inside.wait_while(Acquire, |inside| inside != 0);
            retire(&shelf.filled);
            unlock(&shelf.lock);
        });
    })
}

/// MOVE-2, WATCH-1 to 4: the first of the waiters stays in a signal handler until all others are
/// through, among them `timed` threads that want the mutex until a deadline. They get through,
/// whichever of them is the head. Must reach `passed`; and `gave up`, if some are timed.
fn stuck(urgencies: &'static [u8], timed: u32) -> Program {
    let takers = urgencies.len() as u32;
    Program::new(takers + timed + 1, takers + timed + 1, move |scope| {
        let shelf = scope.share(Shelf::<Backed>::new());
        let through = scope.share(Word::ZERO);
        scope.spawn_each(&urgencies[1..], move |&urgency| {
            set_urgency(urgency);
            assert!(shelf.take(None));
            through.fetch_add(1, Relaxed);
        });
        scope.spawn_each(0..timed, move |_| {
            if shelf.lock.lock_until(soon()) {
                unlock(&shelf.lock);
            } else {
                antiphon_check::probe("gave up");
            }
            through.fetch_add(1, Relaxed);
        });
        scope.spawn(move || {
            set_urgency(urgencies[0]);
            shelf.lock.lock();
            if shelf.items.get() == 0 {
                // SAFETY: both are shared for the whole execution, and the wait is ended below.
                let entry = unsafe { shelf.filled.prepare_with(&shelf.lock) };
                unlock(&shelf.lock);
                through.wait_while(Relaxed, |through| through != takers - 1 + timed);
                // SAFETY: `entry` was prepared above.
                match unsafe { shelf.filled.finish(entry) } {
                    End::Moved(moved) => {
                        antiphon_check::probe("passed");
                        shelf.lock.lock_moved(moved);
                    }
                    _ => shelf.lock.lock(),
                }
            }
            unlock(&shelf.lock);
        });
        scope.spawn(move || {
            shelf.lock.lock();
            shelf.items.set(takers);
            unlock(&shelf.lock);
            shelf.filled.notify_all();
        });
    })
}

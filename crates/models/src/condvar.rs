//! Models of the condition variable: no lost wake-up, even if waits and spins are cut short.
//!
//! A mutex whose waiters take nodes multiplies the executions beyond what can be enumerated with
//! two waiters. So models with it run by lot. Those named `simply` use a ticket lock as the user's
//! mutex: then only the condition variable's executions remain, and all of them are checked.

use antiphon_check::{Check, Data};
use antiphon_platform::{Deadline, Platform};
use antiphon_rivals::classic::Ticket;
use antiphon_sync::lock::Lock;
use antiphon_sync::wait;

use crate::bounds::{PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, model};
use crate::forms::Mutex;
use crate::program::{GAVE_UP, Program, soon, unlock};

type Simple = Ticket<Check>;

pub fn entries() -> Vec<Entry> {
    let timed = TIMED.spurious(1);
    // Spins are cut short: otherwise no thread would sleep for the list's lock.
    let tired = SPURIOUS.expiries(3);
    let handed_on = &["cancelled after a notification"];
    Subject("condvar").models([
        model("notifies-1+1", one_each::<Check, Mutex>(1), SPURIOUS.crowded(1)),
        model("notifies-3+1", one_each::<Check, Mutex>(3), SPURIOUS).by_lot(3_000),
        model("notifies-simply-2+1", one_each::<Check, Simple>(2), tired).long(),
        model("notifies-simply-3+1", one_each::<Check, Simple>(3), PLAIN),
        model("broadcasts-1+1", all_at_once::<Check, Mutex>(1), PLAIN),
        model("broadcasts-3+1", all_at_once::<Check, Mutex>(3), SPURIOUS).by_lot(3_000),
        model("broadcasts-simply-2+1", all_at_once::<Check, Simple>(2), tired),
        model("broadcasts-simply-3+1", all_at_once::<Check, Simple>(3), SPURIOUS),
        model("gives-up-1+1+1", one_gives_up::<Check, Mutex>(), timed)
            .by_lot(10_000)
            .reaches(GAVE_UP),
        model("gives-up-simply-1+1+1", one_gives_up::<Check, Simple>(), timed).reaches(GAVE_UP),
        model("cancelled-1+1+1", cancelled::<Check, Mutex>(), PLAIN)
            .by_lot(20_000)
            .reaches(handed_on),
        model("cancelled-simply-1+1+1", cancelled::<Check, Simple>(), SPURIOUS).reaches(handed_on),
        model("cancelled-simply-tired-1+1+1", cancelled::<Check, Simple>(), tired)
            .reaches(handed_on)
            .long(),
        model("exhausted-2+1", one_each::<Check, Mutex>(2), PLAIN.nodes(0)).by_lot(2_000),
        model("exhausted-simply-2+1", one_each::<Check, Simple>(2), PLAIN.nodes(0)),
        model("exhausted-gives-up-1+1+1", one_gives_up::<Check, Simple>(), timed.nodes(0))
            .reaches(GAVE_UP),
        model("exhausted-but-one-2+1", one_each::<Check, Simple>(2), PLAIN.nodes(1)),
    ])
}

/// A mutex, a condition variable, and the number of items.
struct Shelf<P: Platform, L> {
    lock: L,
    filled: wait::Condvar<P>,
    items: Data<u32>,
}

impl<P: Platform, L: Lock> Shelf<P, L> {
    fn new() -> Self {
        Self { lock: L::NEW, filled: wait::Condvar::NEW, items: Data::new(0) }
    }

    /// Waits for an item and takes it; returns `false` if `deadline` came first.
    fn take(&self, deadline: Option<Deadline>) -> bool {
        self.lock.lock();
        let mut notified = true;
        while self.items.get() == 0 && notified {
            notified = self.filled.wait(deadline, || unlock(&self.lock), || self.lock.lock());
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

/// Each notification reaches a waiter.
pub fn one_each<P: Platform, L: Lock>(takers: u32) -> Program {
    Program::new(takers + 1, 2 * takers, move |scope| {
        let shelf = scope.share(Shelf::<P, L>::new());
        scope.spawn_each(0..takers, move |_| assert!(shelf.take(None)));
        scope.spawn(move || {
            for _ in 0..takers {
                shelf.put();
                shelf.filled.notify_one();
            }
        });
    })
}

/// A broadcast reaches all waiters.
pub fn all_at_once<P: Platform, L: Lock>(takers: u32) -> Program {
    Program::new(takers + 1, takers + 1, move |scope| {
        let shelf = scope.share(Shelf::<P, L>::new());
        scope.spawn_each(0..takers, move |_| assert!(shelf.take(None)));
        scope.spawn(move || {
            for _ in 0..takers {
                shelf.put();
            }
            shelf.filled.notify_all();
        });
    })
}

/// CV-2: one of two waiters may give up, and the item goes to the other, or it takes the item
/// itself: the item is never lost between them (in glibc BZ#25847 it is lost). Must reach `gave
/// up`.
pub fn one_gives_up<P: Platform, L: Lock>() -> Program {
    Program::new(3, 3, |scope| {
        let shelf = scope.share(Shelf::<P, L>::new());
        scope.spawn(|| assert!(shelf.take(None)));
        scope.spawn(|| {
            if shelf.take(Some(soon())) {
                // The item was the other waiter's: put another one.
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
}

/// A cancelled waiter stops at any point of its sleep and passes on the notification that it was
/// given. Must reach `cancelled after a notification`.
fn cancelled<P: Platform, L: Lock>() -> Program {
    Program::new(3, 3, |scope| {
        let shelf = scope.share(Shelf::<P, L>::new());
        scope.spawn(|| assert!(shelf.take(None)));
        scope.spawn(|| {
            shelf.lock.lock();
            if shelf.items.get() == 0 {
                let entry = shelf.filled.prepare();
                unlock(&shelf.lock);
                // SAFETY: `entry` was prepared above.
                let end = unsafe { shelf.filled.finish(entry) };
                let notified = matches!(end, wait::End::Notified);
                shelf.lock.lock();
                if notified {
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
}

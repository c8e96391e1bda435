//! Models of waiting for several objects at once: the first notification ends the wait, and those
//! of the other objects are passed on. A lost wake is a deadlock.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data};
use antiphon_platform::{Atomic, AtomicInteger, Atomics, Deadline};
use antiphon_sync::policy::None as Unsorted;
use antiphon_sync::wait::{self, Place};

use crate::bounds::{PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, model};
use crate::forms::Sleepy;
use crate::program::{Program, soon, take_one};

type EventCount = wait::EventCount<Check, Unsorted, Sleepy>;
type Event = wait::Event<Check, Unsorted, Sleepy>;
type Latch = wait::Latch<Check, Sleepy>;
type Several = wait::Several<Check>;

pub fn entries() -> Vec<Entry> {
    let both = &["passed on"];
    Subject("several").models([
        model("counts-1+1", counts(1, false), SPURIOUS),
        model("counts-1+2", counts(2, false), PLAIN).by_lot(5_000),
        model("counts-beside-one-2+1", beside_one(), PLAIN).by_lot(5_000),
        model("counts-passed-on-2+2", passed_on(), PLAIN).by_lot(10_000).reaches(both),
        model("counts-gives-up-1+1", counts(1, true), TIMED),
        model("counts-gives-up-1+2", counts(2, true), TIMED).by_lot(5_000),
        model("counts-exhausted-1+1", counts(1, false), PLAIN.nodes(0)),
        model("counts-exhausted-but-one-1+1", counts(1, false), PLAIN.nodes(1)),
        model("events-1+1", events(1), SPURIOUS),
        model("events-1+2", events(2), PLAIN).by_lot(5_000),
        model("events-set-again-2+2", set_again(), PLAIN).by_lot(10_000).reaches(both),
        model("latches-1+2", latches(), PLAIN).by_lot(5_000),
        model("latches-many-5+1", opened_for_many(5), PLAIN).by_lot(1_000),
        model("latches-crossed-2+1", crossed(), PLAIN).by_lot(2_000),
    ])
}

/// Numbers of items in two places, each with its event count.
#[derive(Default)]
struct Shelves([Shelf; 2]);

struct Shelf {
    items: <Check as Atomics>::U32,
    filled: EventCount,
}

impl Default for Shelf {
    fn default() -> Self {
        Self { items: <Check as Atomics>::U32::ZERO, filled: EventCount::NEW }
    }
}

impl Shelf {
    fn put(&self) {
        self.items.fetch_add(1, Relaxed);
        self.filled.notify_one();
    }

    fn try_take(&self) -> bool {
        take_one(&self.items)
    }

    /// Waits for an item, and takes it.
    fn take(&self) {
        loop {
            let key = self.filled.prepare();
            if self.try_take() {
                return;
            }
            key.wait(None);
        }
    }
}

impl Shelves {
    /// Takes an item from either place; returns `false` if `deadline` came first.
    fn take(&self, deadline: Option<Deadline>) -> bool {
        loop {
            let several = Several::new();
            let mut places = self.0.each_ref().map(|shelf| shelf.filled.stand(&several));
            if self.try_take(&mut places) {
                return true;
            }
            several.wait_as::<Sleepy>(deadline, || places.iter_mut().any(Place::look));
            if self.try_take(&mut places) {
                return true;
            }
            if antiphon_sync::nap::passed::<Check>(deadline) {
                return false;
            }
        }
    }

    /// Tries the first place first; a notification of the second is then passed on.
    fn try_take(&self, places: &mut [Place<'_, Check>; 2]) -> bool {
        self.0.iter().zip(places).any(|(shelf, place)| {
            place.use_up();
            shelf.try_take()
        })
    }
}

/// One thread takes as many items as `putters` threads put into either place, one each.
fn counts(putters: u32, gives_up: bool) -> Program {
    Program::new(1 + putters, 2 * putters, move |scope| {
        let shelves = scope.share(Shelves::default());
        let taken = scope.share(Data::new(0));
        scope.spawn(move || {
            for _ in 0..putters {
                let deadline = gives_up.then(soon);
                taken.set(taken.get() + u32::from(shelves.take(deadline)));
            }
        });
        scope.spawn_each(0..putters, move |putter| shelves.0[1 - putter as usize % 2].put());
        scope.finally(move || {
            let left = shelves.0.iter().map(|shelf| shelf.items.load(Relaxed)).sum::<u32>();
            assert_eq!(taken.get() + left, putters);
            assert!(gives_up || left == 0);
        });
    })
}

/// One thread waits for either place, another for the second only; one puts two items there.
fn beside_one() -> Program {
    Program::new(3, 4, |scope| {
        let shelves = scope.share(Shelves::default());
        scope.spawn(move || assert!(shelves.take(None)));
        scope.spawn(move || shelves.0[1].take());
        scope.spawn(move || (0..2).for_each(|_| shelves.0[1].put()));
    })
}

/// SEVERAL-2: a thread that waits at both places takes only from the first, and passes on a
/// notification of the second. Must reach `passed on`.
fn passed_on() -> Program {
    Program::new(4, 4, |scope| {
        let shelves = scope.share(Shelves::default());
        scope.spawn(move || {
            loop {
                let several = Several::new();
                let mut places = shelves.0.each_ref().map(|shelf| shelf.filled.stand(&several));
                if shelves.0[0].try_take() {
                    break;
                }
                several.wait_as::<Sleepy>(None, || places.iter_mut().any(Place::look));
                if places[1].look() {
                    antiphon_check::probe("passed on");
                }
            }
        });
        scope.spawn(move || shelves.0[1].take());
        scope.spawn(move || shelves.0[0].put());
        scope.spawn(move || shelves.0[1].put());
    })
}

/// Waits for either event; returns its index.
fn wait_either(both: &[Event; 2]) -> usize {
    loop {
        let several = Several::new();
        let mut places = [const { None }; 2];
        for (at, event) in both.iter().enumerate() {
            match event.stand(&several) {
                Some(place) => places[at] = Some(place),
                None => return at,
            }
        }
        several.wait_as::<Sleepy>(None, || places.iter_mut().flatten().any(Place::look));
        let used = places.iter_mut().flatten().position(|place| place.look() && place.use_up());
        if let Some(at) = used {
            if places.iter_mut().flatten().any(Place::look) {
                antiphon_check::probe("passed on");
            }
            return at;
        }
    }
}

/// Each setter sets one event, and the waiter sees what was done before.
fn events(setters: usize) -> Program {
    Program::new(1 + setters as u32, 2 * setters as u32, move |scope| {
        let both = scope.share([const { Event::NEW }; 2]);
        let data = scope.share([const { Data::new(false) }; 2]);
        scope.spawn(move || {
            for _ in 0..setters {
                assert!(data[wait_either(both)].get());
            }
        });
        scope.spawn_each(0..setters, move |at| {
            data[at].set(true);
            both[at].set();
        });
    })
}

/// EVENT-5: of two set events, a waiter for either takes one, and another thread takes the other.
fn set_again() -> Program {
    Program::new(4, 4, |scope| {
        let both = scope.share([const { Event::NEW }; 2]);
        let had = scope.share([const { Data::new(false) }; 2]);
        scope.spawn(move || {
            let at = wait_either(both);
            // The other event is left for the other waiter, or is set.
            if at == 1 {
                both[1].set();
            } else {
                had[0].set(true);
            }
        });
        scope.spawn(move || {
            both[1].wait();
            had[1].set(true);
        });
        scope.spawn(move || both[0].set());
        scope.spawn(move || both[1].set());
        scope.finally(move || {
            assert!(had[1].get());
            assert!(had[0].get() || both[0].try_wait(), "lost");
        });
    })
}

/// One thread waits for either of two latches, and then for the other.
fn latches() -> Program {
    Program::new(3, 4, |scope| {
        let both = scope.share([const { Latch::new(1) }; 2]);
        let data = scope.share([const { Data::new(false) }; 2]);
        scope.spawn(move || {
            loop {
                let several = Several::new();
                let places = both.each_ref().map(|latch| latch.stand(&several));
                let [Some(mut first), Some(mut second)] = places else { break };
                several.wait_as::<Sleepy>(None, || first.look() || second.look());
            }
            let at = both.iter().position(Latch::is_open).expect("one is open");
            assert!(data[at].get());
            both[1 - at].wait();
            assert!(data[1 - at].get());
        });
        scope.spawn_each(0..2, move |at| {
            data[at].set(true);
            both[at].count_down(1);
        });
    })
}

/// A waiter that is woken in a wait for several latches need not be the last to return.
fn opened_for_many(waiters: u32) -> Program {
    Program::new(waiters + 1, waiters + 1, move |scope| {
        let latch = scope.share(Latch::new(1));
        let never = scope.share(Event::NEW);
        scope.spawn_each(0..waiters, move |_| {
            let several = Several::new();
            let _other = never.stand(&several);
            let Some(mut place) = latch.stand(&several) else { return };
            while !place.look() {
                several.wait_as::<Sleepy>(None, || place.look());
            }
        });
        scope.spawn(move || latch.count_down(1));
    })
}

/// TOGETHER-5: two threads wait for either of two latches, each in a different order, and return
/// when both are open; each ends its waits for both in its order.
fn crossed() -> Program {
    Program::new(3, 4, |scope| {
        let both = scope.share([const { Latch::new(1) }; 2]);
        // Number of places that are taken; finally, tells that both latches are open.
        let taken = scope.share(<Check as Atomics>::U32::ZERO);
        scope.spawn_each(0..2, move |me| {
            let several = Several::new();
            let stand = |at: usize, before: u32| {
                taken.wait_while(Relaxed, |taken| taken < before);
                let place = both[at].stand(&several);
                taken.fetch_add(1, Relaxed);
                place
            };
            let first = stand(me, me as u32);
            let second = stand(1 - me, 2);
            taken.wait_while(Relaxed, |taken| taken < 5);
            drop(first);
            drop(second);
        });
        scope.spawn(move || {
            taken.wait_while(Relaxed, |taken| taken < 4);
            both.iter().for_each(|latch| latch.count_down(1));
            taken.fetch_add(1, Relaxed);
        });
    })
}

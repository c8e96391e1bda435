//! Models of resting workers: no item is left while all workers sleep. A lost wake is a deadlock.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_check::Check;
use antiphon_platform::{Atomic, AtomicInteger, Atomics, Budget};
use antiphon_runtime::sched;

use crate::bounds::{PLAIN, SPURIOUS};
use crate::entry::{Entry, Subject, model};
use crate::program::{Program, take_one};

type Idlers = sched::Idlers<Check>;
type U32 = <Check as Atomics>::U32;

pub fn entries() -> Vec<Entry> {
    Subject("idlers").models([
        model("one-each-1+1", one_each(1, NOT, 1), SPURIOUS).reaches(RESTS),
        model("moves-1+1", moving(), PLAIN),
        model("one-each-inside-2", one_each(2, BRIEF, 0), PLAIN.expiries(1)).reaches(RESTS),
        model("one-each-2+1", one_each(2, NOT, 1), PLAIN).by_lot(5_000),
        model("one-each-3+1", one_each(3, NOT, 1), PLAIN.expiries(1)).by_lot(5_000),
        model("one-each-2+2", one_each(2, NOT, 2), PLAIN).by_lot(5_000),
        model("batch-2+1", batch(2, 2), PLAIN).by_lot(5_000).reaches(RESTS),
        model("batch-and-one-2+1", batch(2, 1), PLAIN).by_lot(5_000).reaches(RESTS),
        model("batch-3+1", batch(3, 3), PLAIN).by_lot(5_000),
        model("batch-passed-on-3+1", passing_on(), PLAIN).by_lot(20_000),
        model("again-1+1", working(1, 2, 0, NOT), PLAIN).reaches(RESTS),
        model("again-2+1", working(2, 2, 1, NOT), PLAIN).by_lot(5_000).reaches(RESTS),
        model("again-3+1", working(3, 1, 2, NOT), PLAIN).by_lot(5_000).reaches(RESTS),
        model("all-2+1", all(2), PLAIN).reaches(RESTS),
        model("all-and-one-2+2", all_and_one(), PLAIN).by_lot(20_000),
    ])
}

const RESTS: &[&str] = &["rests"];
const BRIEF: Budget = Budget::ns(100);
const NOT: Budget = Budget::NONE;

/// The items to do, and the workers that do them.
struct Crew {
    idlers: Idlers,
    /// Number of items that are ready.
    ready: U32,
    /// Number of items that still put in another item when they are done.
    more: U32,
    done: U32,
    all: u32,
}

impl Crew {
    /// Creates a crew with `all` items to be done.
    fn new(workers: usize, all: u32) -> Self {
        Self {
            idlers: Idlers::new(workers),
            ready: U32::ZERO,
            more: U32::ZERO,
            done: U32::ZERO,
            all,
        }
    }

    fn put(&self, near: usize) {
        self.ready.fetch_add(1, Relaxed);
        self.idlers.notify(near);
    }

    fn is_over(&self) -> bool {
        self.done.load(Relaxed) == self.all
    }

    fn is_seen(&self) -> bool {
        self.ready.load(Relaxed) > 0 || self.is_over()
    }

    /// Takes items until all are done.
    fn work(&self, me: usize, spin: Budget) {
        let mut searches = false;
        while !self.is_over() {
            if take_one(&self.ready) {
                if core::mem::take(&mut searches) {
                    self.idlers.found(me, || self.is_seen());
                }
                self.run(me);
            } else if !searches && self.idlers.search() {
                searches = true;
            } else {
                let seen = |alone| self.is_over() || alone && self.is_seen();
                self.idlers.rest(me, searches, spin, |alone| looked(seen(alone)));
                searches = true;
            }
        }
    }

    fn run(&self, me: usize) {
        while take_one(&self.more) {
            self.put(me);
        }
        if self.done.fetch_add(1, Relaxed) + 1 == self.all {
            self.idlers.notify_all();
        }
    }
}

/// Called by a worker about to sleep; `seen` tells whether it found an item.
fn looked(seen: bool) -> bool {
    if !seen {
        antiphon_check::probe("rests");
    }
    seen
}

/// `workers` workers do the items that a thread from outside puts in, and those that such items put
/// in when done.
fn working(workers: usize, outside: u32, inside: u32, spin: Budget) -> Program {
    Program::new(workers as u32 + 1, 2 * (outside + inside), move |scope| {
        let crew = scope.share(Crew::new(workers, outside + inside));
        crew.more.store(inside, Relaxed);
        scope.spawn_each(0..workers, move |me| crew.work(me, spin));
        scope.spawn(move || {
            for _ in 0..outside {
                crew.put(0);
            }
        });
    })
}

/// `workers` workers take one of as many items each, and then stop searching. `outside` threads put
/// them in, or a worker if `outside` is 0.
fn one_each(workers: usize, spin: Budget, outside: usize) -> Program {
    Program::new((workers + outside) as u32, 2 * workers as u32, move |scope| {
        let idlers = scope.share(Idlers::new(workers));
        let ready = scope.share(U32::ZERO);
        let put = move || {
            for _ in 0..workers / outside.max(1) {
                ready.fetch_add(1, Relaxed);
                idlers.notify(0);
            }
        };
        scope.spawn_each(0..workers, move |me| {
            if outside == 0 && me == 0 {
                put();
            }
            take_mine(idlers, me, ready, spin);
        });
        for _ in 0..outside {
            scope.spawn(put);
        }
    })
}

/// `together` items are put in together, and workers take one each; another worker puts in one
/// more, on which the others' end does not depend.
fn batch(workers: usize, together: u32) -> Program {
    Program::new(workers as u32 + 1, 2 * workers as u32, move |scope| {
        let idlers = scope.share(Idlers::new(workers));
        let ready = scope.share(U32::ZERO);
        scope.spawn_each(0..workers, move |me| take_mine(idlers, me, ready, NOT));
        scope.spawn(move || {
            ready.fetch_add(together, Relaxed);
            idlers.notify_many(0, together);
            for _ in together..workers as u32 {
                ready.fetch_add(1, Relaxed);
                idlers.notify(0);
            }
        });
    })
}

/// IDLE-4: two items are put in together, and the worker that takes the last of them puts in a
/// third, for a worker that has just begun to rest. Each takes one.
fn passing_on() -> Program {
    Program::new(4, 6, move |scope| {
        let idlers = scope.share(Idlers::new(3));
        let [ready, taken] = [(); 2].map(|()| scope.share(U32::ZERO));
        scope.spawn_each(0..3, move |me| {
            take_mine(idlers, me, ready, NOT);
            if taken.fetch_add(1, Relaxed) == 1 {
                ready.fetch_add(1, Relaxed);
                idlers.notify(me);
            }
        });
        scope.spawn(move || {
            ready.fetch_add(2, Relaxed);
            idlers.notify_many(0, 2);
        });
    })
}

fn take_mine(idlers: &Idlers, me: usize, ready: &U32, spin: Budget) {
    let is_seen = || ready.load(Relaxed) > 0;
    let mut searches = idlers.search();
    while !take_one(ready) {
        idlers.rest(me, searches, spin, |alone| looked(alone && is_seen()));
        searches = true;
    }
    if searches {
        idlers.found(me, is_seen);
    }
}

/// Two workers search. One moves an item to where the other must find it, and stops searching,
/// because it has other work.
fn moving() -> Program {
    Program::new(2, 4, |scope| {
        let idlers = scope.share(Idlers::new(4));
        let moved = scope.share(U32::ZERO);
        let is_seen = || moved.load(Relaxed) > 0;
        scope.spawn(move || {
            let searches = idlers.search();
            moved.store(1, Relaxed);
            if searches {
                idlers.found(0, is_seen);
            } else {
                idlers.notify(0);
            }
        });
        scope.spawn(move || {
            let searches = idlers.search();
            idlers.rest(1, searches, NOT, |alone| looked(alone && is_seen()));
            idlers.found(1, is_seen);
        });
    })
}

/// All resting workers learn that nothing more will come.
fn all(workers: usize) -> Program {
    Program::new(workers as u32 + 1, workers as u32 + 1, move |scope| {
        let idlers = scope.share(Idlers::new(workers));
        let over = scope.share(U32::ZERO);
        scope.spawn_each(0..workers, move |me| {
            let is_over = || over.load(Relaxed) > 0;
            while !is_over() {
                idlers.rest(me, false, BRIEF, |_| looked(is_over()));
                idlers.found(me, || false);
            }
        });
        scope.spawn(move || {
            over.store(1, Relaxed);
            idlers.notify_all();
        });
    })
}

/// All resting workers are notified although there is nothing to find, while one item is put in:
/// one of two workers takes it, and notifies the other.
fn all_and_one() -> Program {
    Program::new(4, 6, move |scope| {
        let idlers = scope.share(Idlers::new(2));
        let [ready, brief, over] = [(); 3].map(|()| scope.share(U32::ZERO));
        brief.store(1, Relaxed);
        scope.spawn_each(0..2, move |me| {
            let is_over = || over.load(Relaxed) > 0;
            // An item that only worker 0 sees, once.
            let is_seen = || ready.load(Relaxed) > 0 || is_over();
            while !is_over() {
                let mine = me == 0 && brief.swap(0, Relaxed) > 0;
                let seen = |alone| is_over() || alone && is_seen();
                idlers.rest(me, false, NOT, |alone| mine || looked(seen(alone)));
                let took = take_one(ready);
                idlers.found(me, is_seen);
                if took {
                    over.store(1, Relaxed);
                    idlers.notify_all();
                }
            }
        });
        scope.spawn(move || {
            ready.fetch_add(1, Relaxed);
            idlers.notify(0);
        });
        scope.spawn(move || idlers.notify_all());
    })
}

//! Models of lock policies that sort, and that change while waiters are in the queue: there is
//! always at most one shuffler, no waiter is lost, and none is overtaken too often.

use std::cell::Cell;
use std::cmp::Ordering;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data};
use antiphon_platform::{Atomic, AtomicInteger, Atomics, Platform, ThreadId};
use antiphon_sync::lock::{Lock, ShflMutex, ShflOwned, ShflSpin};
use antiphon_sync::policy::{Boost, Chosen, Numa, Policy, Priority, Waiting, set_priority};

use crate::bounds::{NUMA, PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, all_of, model};
use crate::forms::{Sleepy, Spinning};
use crate::in_line::Line;
use crate::program::{GAVE_UP, Program, contend, section, soon, unlock};

type Mutex = ShflMutex<Check, Changing, Sleepy>;
/// No waiter sleeps: spins never end by themselves.
type Awake = ShflMutex<Check, Changing, Spinning>;
type Spin = ShflSpin<Check, Changing, Sleepy>;

/// Waiters of the same socket are grouped.
const GROUPS: u8 = 1;
/// The most urgent first.
const SORTS: u8 = 2;
/// [`SORTS`], but an owner does not sort during its hand-off.
const SORTS_LAZILY: u8 = 3;
/// How often a waiter may be overtaken by sorting (INV-7): so few that the limit is reached.
const BYPASS: u16 = 1;

pub fn entries() -> Vec<Entry> {
    let overtook = &["overtook"];
    all_of([
        Subject("shfl-mutex").models([
            model("ranks-4+1", ranked::<Mutex>(&[0, 1, 2, 0]), PLAIN)
                .by_lot(2_000)
                .reaches(overtook),
            model("ranks-left-5+1", ranked::<Mutex>(&[0, 0, 1, 2, 0]), SPURIOUS)
                .by_lot(2_000)
                .reaches(overtook),
            // A head that finds the lock free does not sort: it passes the received mark on.
            model("ranks-lazily-5+1", lazy::<Awake>(&[0, 0, 1, 2, 0]), PLAIN)
                .by_lot(2_000)
                .reaches(overtook),
            model("ranks-give-up-5+1", given_up(), TIMED).by_lot(3_000).reaches(GAVE_UP),
            model("changes-2+1", chosen(2), NUMA.spurious(1)),
            model("changes-3+1", chosen(3), NUMA).by_lot(2_000),
            model("changes-in-line-4+2", changed::<Mutex>(&[0, 1, 2, 0]), NUMA)
                .by_lot(10_000)
                .reaches(overtook),
            model("changes-in-line-5+2", changed::<Mutex>(&[0, 0, 1, 2, 0]), NUMA.spurious(1))
                .by_lot(10_000)
                .reaches(overtook),
        ]),
        Subject("shfl-owned").models([
            model("lends-2x1", lent(2, 1), SPURIOUS),
            model("lends-3x2", lent(3, 2), SPURIOUS).by_lot(2_000),
        ]),
        Subject("shfl-spin").models([
            model("ranks-5+1", ranked::<Spin>(&[0, 0, 1, 2, 0]), PLAIN)
                .by_lot(2_000)
                .reaches(overtook),
            model("changes-in-line-5+2", changed::<Spin>(&[0, 0, 1, 2, 0]), NUMA)
                .by_lot(2_000)
                .reaches(overtook),
        ]),
    ])
}

/// Threads contend for a lock with a policy as programs use it, and one more thread changes its
/// policy twice.
fn chosen(threads: u32) -> Program {
    Program::new(threads + 1, threads + 1, move |scope| {
        let lock = contend::<ShflMutex<Check, Chosen, Sleepy>>(scope, threads, 1);
        scope.spawn(move || {
            lock.set_policy(Chosen::NONE.with_priority());
            lock.set_policy(Chosen::DISTANCE);
        });
    })
}

/// Threads contend for a lock whose waiters lend the owner their rank: at the end, all of it has
/// been given back.
fn lent(threads: u32, rounds: u32) -> Program {
    Program::new(threads, threads * rounds, move |scope| {
        contend::<ShflOwned<Check, Boost, Sleepy>>(scope, threads, rounds);
        scope.finally(|| assert_eq!(antiphon_check::loans(), 0, "lent and not given back"));
    })
}

/// Waiters of these ranks in the queue, and one owner. Must reach `overtook`.
fn ranked<L: Lock>(ranks: &'static [u8]) -> Program {
    in_line::<L>(ranks, SORTS, &[])
}

/// [`ranked`] with a policy that is not strict.
fn lazy<L: Lock>(ranks: &'static [u8]) -> Program {
    in_line::<L>(ranks, SORTS_LAZILY, &[])
}

/// [`ranked`] with one more thread that changes the policy while the others wait. Must reach
/// `overtook`.
fn changed<L: Lock>(ranks: &'static [u8]) -> Program {
    in_line::<L>(ranks, GROUPS, &[SORTS, GROUPS, SORTS])
}

/// The second and the third waiter give up, and the last comes late: the head passes its mark to no
/// waiter if it has sorted only as far as those that left. Must reach `gave up`.
fn given_up() -> Program {
    const WAITERS: usize = 5;
    Program::new(6, 6, |scope| {
        let lock = scope.share(Mutex::NEW);
        assert!(lock.try_lock());
        let line = scope.share(Line::new(scope, WAITERS));
        let watch = scope.share(Watch::new());
        watch.mode.store(SORTS, Relaxed);
        WATCH.set(watch);
        let gone = scope.share(<Check as Atomics>::U8::ZERO);
        scope.spawn_each(0..WAITERS, move |place| {
            if place == WAITERS - 1 {
                watch.begun.wait_while(Relaxed, |begun| begun == 0);
            } else {
                line.stand(place);
            }
            if place == WAITERS - 2 {
                watch.begun.store(1, Relaxed);
            }
            if !(1..=2).contains(&place) {
                lock.lock();
            } else if !lock.lock_until(soon()) {
                antiphon_check::probe("gave up");
                gone.fetch_add(1, Relaxed);
                return;
            }
            unlock(lock);
        });
        scope.spawn(move || {
            gone.wait_while(Relaxed, |gone| gone < 2);
            watch.begun.wait_while(Relaxed, |begun| begun == 0);
            unlock(lock);
        });
    })
}

/// `L` has the policy [`Changing`], which is `mode` at first and becomes each of `changes` in turn.
fn in_line<L: Lock>(ranks: &'static [u8], mode: u8, changes: &'static [u8]) -> Program {
    let count = ranks.len() as u32;
    let threads = count + 1 + u32::from(!changes.is_empty());
    Program::new(threads, threads, move |scope| {
        let lock = scope.share(L::NEW);
        assert!(lock.try_lock());
        let data = scope.share(Data::new(0));
        let line = scope.share(Line::new(scope, ranks.len()));
        let watch = scope.share(Watch::new());
        watch.mode.store(mode, Relaxed);
        WATCH.set(watch);
        for (place, &rank) in ranks.iter().enumerate() {
            // One waiter ahead of which others are moved, and enough for a group of three.
            scope.spawn_on(u32::from(place == 1), move || {
                set_priority::<Check>(Some(rank));
                line.stand(place);
                if place == ranks.len() - 1 {
                    line.begin();
                    watch.begun.store(1, Relaxed);
                }
                section(lock, data);
            });
        }
        scope.spawn(move || {
            line.wait_for_begin();
            unlock(lock);
        });
        if !changes.is_empty() {
            scope.spawn(move || {
                line.wait_for_begin();
                changes.iter().for_each(|&mode| watch.mode.store(mode, Relaxed));
            });
        }
        scope.finally(move || {
            assert_eq!(data.get(), count);
            for place in 0..ranks.len() {
                let passed = line.node(place).passed.load(Relaxed);
                assert!(passed <= BYPASS, "INV-7: overtaken {passed} times");
            }
        });
    })
}

/// The present mode of [`Changing`], and what the policy has seen.
struct Watch {
    /// Touched by the shuffler: two shufflers at a time are a data race.
    shuffler: Data<u32>,
    mode: <Check as Atomics>::U8,
    /// Not zero: all waiters are in the queue.
    begun: <Check as Atomics>::U8,
}

impl Watch {
    fn new() -> Self {
        let [mode, begun] = [const { <Check as Atomics>::U8::ZERO }; 2];
        Self { shuffler: Data::new(0), mode, begun }
    }
}

thread_local! {
    /// Watch of the execution that runs on this thread.
    static WATCH: Cell<*const Watch> = const { Cell::new(ptr::null()) };
}

fn watched() -> &'static Watch {
    // SAFETY: set by `in_line` for this execution; only its threads use it.
    unsafe { &*WATCH.get() }
}

/// A policy that may change at any moment. Asserts INV-1 and INV-3 each time that a shuffler asks.
#[derive(Clone, Copy, Default, PartialEq)]
struct Changing(u8);

impl Changing {
    /// A shuffler looks at a waiter behind it.
    fn look<P: Platform>(shuffler: &Waiting<P>, candidate: &Waiting<P>) {
        const HEAD: u32 = 2;
        // INV-1.
        let shuffles = &watched().shuffler;
        shuffles.set(shuffles.get() + 1);
        // SAFETY: the shuffler is looking at the candidate, so its node is valid.
        let status = unsafe { candidate.node() }.status.load(Relaxed);
        assert!(status & HEAD == 0, "INV-3: a shuffler looks at the head");
        assert!(!ptr::eq(shuffler, candidate), "INV-3: a shuffler moves itself");
    }
}

impl Policy for Changing {
    /// Reads the mode, not the lock's byte, so that the mode can change without the byte.
    fn of(_: impl FnOnce() -> u8) -> Self {
        Self(watched().mode.load(Relaxed))
    }

    /// Asked when a waiter is the head. The first thread begins to shuffle when all are in the
    /// queue.
    fn shuffles<P: Platform>(self) -> bool {
        if P::thread() == ThreadId(1) {
            watched().begun.wait_while(Relaxed, |begun| begun == 0);
        }
        true
    }

    fn notes<P: Platform>(self) -> bool {
        true
    }

    fn on_wait<P: Platform>(self, me: &Waiting<P>) {
        Numa.on_wait(me);
        Priority.on_wait(me);
    }

    fn groups<P: Platform>(self, shuffler: &Waiting<P>, candidate: &Waiting<P>) -> bool {
        if self.0 != GROUPS {
            return true;
        }
        Self::look(shuffler, candidate);
        Numa.groups(shuffler, candidate)
    }

    fn sorts(self) -> bool {
        [SORTS, SORTS_LAZILY].contains(&self.0)
    }

    fn compare<P: Platform>(
        self,
        shuffler: &Waiting<P>,
        one: &Waiting<P>,
        other: &Waiting<P>,
    ) -> Ordering {
        Self::look(shuffler, one);
        Self::look(shuffler, other);
        let order = Priority.compare(shuffler, one, other);
        if order == Ordering::Less {
            antiphon_check::probe("overtook");
        }
        order
    }

    fn strict(self) -> bool {
        self.0 == SORTS
    }

    fn bypass(self) -> u16 {
        if self.sorts() { BYPASS } else { u16::MAX }
    }
}

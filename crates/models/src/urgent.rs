//! Models of waiters of real-time priority: of the waiters in the queue at the release, the one of
//! highest priority goes first, and no waiter is lost when waiters change places.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_check::HeavyFence::{Either, Granted};
use antiphon_check::{Check, Data, Scope, set_urgency};
use antiphon_platform::{Atomic, Atomics};
use antiphon_sync::lock::{Form, Lock, ShflMutex, ShflRwLock};
use antiphon_sync::policy;
use antiphon_sync::wait::Condvar;

use crate::arena::arena;
use crate::bounds::{NUMA, PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, all_of, model};
use crate::forms::{Backed, Insistent, Sleepy, Spinning};
use crate::in_line::Line;
use crate::program::{Program, finish, guarded, section, soon, unlock};
use crate::rw::{read, unlock_read, visit};

type Word = <Check as Atomics>::U32;
type Mutex<F = Sleepy, Q = policy::None> = ShflMutex<Check, Q, F>;
type RwLock = ShflRwLock<Check, policy::None, Sleepy>;

pub fn entries() -> Vec<Entry> {
    all_of([in_order(), crowds(), of_readers(), of_conditions()])
}

/// All waiters are in the queue before the release.
fn in_order() -> Vec<Entry> {
    all_of([
        Subject("shfl-mutex").models([
            model("urgent-in-line-2+1", line::<Mutex>(&[5, 20]), PLAIN).by_lot(4_000),
            model("urgent-in-line-spurious-2+1", line::<Mutex>(&[0, 20]), SPURIOUS).by_lot(2_000),
            model("urgent-in-line-3+1", line::<Mutex>(&[5, 0, 20]), SPURIOUS).by_lot(2_000),
            model("urgent-in-line-4+1", line::<Mutex>(&[5, 10, 20, 15]), SPURIOUS).by_lot(2_000),
            model("urgent-in-line-5+1", line::<Mutex>(&[0, 5, 5, 20, 5]), SPURIOUS).by_lot(2_000),
            model("urgent-in-line-spinning-4+1", spinning(&[5, 10, 20, 10]), PLAIN).by_lot(2_000),
            model(
                "urgent-in-line-insistent-4+1",
                line::<Mutex<Insistent>>(&[5, 10, 20, 10]),
                SPURIOUS,
            )
            .by_lot(2_000),
            model(
                "urgent-in-line-backstop-awake-4+1",
                line::<Mutex<Backed>>(&[0, 5, 20, 15]),
                SPURIOUS.awake(),
            )
            .by_lot(2_000),
            // A sleeping waiter of the head's socket has the shuffler's role.
            model(
                "urgent-recalls-role-5+1",
                line_on::<Mutex<Sleepy, policy::Numa>>(&[0, 0, 0, 0, 20], &[0, 1, 0, 1, 1]),
                NUMA,
            )
            .by_lot(4_000),
        ]),
        Subject("shfl-mutex+light").models([model(
            "urgent-in-line-4+1",
            line::<Mutex>(&[5, 10, 20, 15]),
            SPURIOUS.light(Granted),
        )
        .by_lot(2_000)]),
    ])
}

/// Waiters come and go at any time: none is lost.
fn crowds() -> Vec<Entry> {
    all_of([
        Subject("shfl-mutex").models([
            model("urgent-excludes-2x1", crowd::<policy::None, Sleepy>(&[5, 20], 1, 0), PLAIN)
                .by_lot(4_000),
            model("urgent-excludes-3x1", crowd::<policy::None, Sleepy>(&[5, 20, 0], 1, 0), PLAIN)
                .by_lot(4_000),
            model(
                "urgent-excludes-3x2",
                crowd::<policy::None, Sleepy>(&[5, 20, 10], 2, 0),
                SPURIOUS,
            )
            .by_lot(4_000),
            model(
                "urgent-excludes-5x2",
                crowd::<policy::None, Spinning>(&[5, 20, 0, 10, 20], 2, 0),
                SPURIOUS.expiries(2).crowded(1),
            )
            .by_lot(4_000),
            model(
                "urgent-sockets-5x2",
                crowd::<policy::Chosen, Sleepy>(&[5, 20, 0, 0, 0], 2, 0),
                SPURIOUS.sockets(2),
            )
            .by_lot(4_000),
            model(
                "urgent-sorted-4x2",
                crowd::<policy::Priority, Sleepy>(&[5, 20, 0, 0], 2, 0),
                SPURIOUS,
            )
            .by_lot(4_000),
            model("urgent-gives-up-1+1", crowd::<policy::None, Sleepy>(&[0, 20], 1, 1), TIMED)
                .by_lot(4_000),
            model(
                "urgent-gives-up-2+2",
                crowd::<policy::None, Sleepy>(&[5, 10, 20, 0], 1, 2),
                TIMED,
            )
            .by_lot(6_000),
            model(
                "urgent-backstop-4x2",
                crowd::<policy::None, Backed>(&[5, 20, 0, 10], 2, 1),
                TIMED.spurious(1),
            )
            .by_lot(6_000),
            model(
                "urgent-backstop-awake-4x2",
                crowd::<policy::None, Backed>(&[5, 20, 0, 10], 2, 1),
                TIMED.awake(),
            )
            .by_lot(6_000),
            model("urgent-unknown-3x2", unknown::<Sleepy>(&[5, 20, 10], 2), SPURIOUS).by_lot(4_000),
            model("urgent-raises-3+1", raises(), PLAIN).by_lot(2_000),
            model("urgent-steps-down-2+1", steps_down(), PLAIN).by_lot(2_000),
        ]),
        Subject("shfl-mutex+light").models([
            model(
                "urgent-backstop-awake-3x2",
                crowd::<policy::None, Backed>(&[5, 20, 0], 2, 1),
                TIMED.awake().light(Either),
            )
            .by_lot(6_000),
            model("urgent-leaves-2+1", leaves(), TIMED.light(Granted)).by_lot(40_000),
            model(
                "urgent-excludes-3x2",
                crowd::<policy::None, Sleepy>(&[5, 20, 10], 2, 0),
                SPURIOUS.light(Either),
            )
            .by_lot(4_000),
        ]),
    ])
}

fn of_readers() -> Vec<Entry> {
    const R: bool = false;
    const W: bool = true;
    Subject("shfl-rw").models([
        model("urgent-in-line-2+1", kinds(&[(5, W), (20, R)]), PLAIN).by_lot(2_000),
        model("urgent-writers-first-3+1", kinds(&[(0, R), (5, R), (5, W)]), SPURIOUS).by_lot(2_000),
        model("urgent-in-line-4+1", kinds(&[(5, W), (10, R), (20, W), (15, R)]), SPURIOUS)
            .by_lot(2_000),
        model("urgent-shares-2+2", readers_and_writers(), SPURIOUS).by_lot(4_000),
        model("urgent-reader-passes-1+1+1", reader_above_writer(), SPURIOUS)
            .by_lot(2_000)
            .reaches(&["passed"]),
    ])
}

fn of_conditions() -> Vec<Entry> {
    Subject("condvar").models([
        model("urgent-notified-3+1", notified(&[5, 20, 10]), PLAIN),
        model("urgent-notified-4+1", notified(&[0, 5, 20, 5]), SPURIOUS).by_lot(2_000),
        model("urgent-broadcast-3+1", broadcast(&[0, 20, 0]), SPURIOUS).by_lot(2_000),
        model("urgent-broadcast-4+1", broadcast(&[0, 5, 20, 0]), SPURIOUS).by_lot(1_000),
    ])
}

/// The threads that have had the lock, in order.
struct Served<'scope> {
    urgencies: &'static [u8],
    places: &'scope Data<Vec<usize>>,
}

impl<'scope> Served<'scope> {
    fn new(scope: &'scope Scope<'scope, '_>, urgencies: &'static [u8]) -> &'scope Self {
        let places = scope.share(Data::new(Vec::new()));
        scope.share(Self { urgencies, places })
    }

    fn note(&self, place: usize) {
        self.places.with_mut(|places| places.push(place));
    }

    /// Asserts that all were served: the urgent by priority, and equals in order of arrival; then
    /// the others.
    fn assert_in_order(&self) {
        let mut order: Vec<usize> = (0..self.urgencies.len()).collect();
        order.retain(|&place| self.urgencies[place] > 0);
        order.sort_by_key(|&place| std::cmp::Reverse(self.urgencies[place]));
        self.places.with(|places| {
            assert_eq!(places.len(), self.urgencies.len());
            assert_eq!(places[..order.len()], order, "not by their priority");
        });
    }
}

/// Makes all waiters determine their urgency when they come, as if there had been an urgent waiter.
fn have_seen_urgent() {
    arena().saw_urgent.store(1, Relaxed);
}

/// Waiters of these urgencies, each behind the one before it, and an owner that releases when the
/// last has joined.
fn line<L: Lock>(urgencies: &'static [u8]) -> Program {
    line_on::<L>(urgencies, &[0; 8])
}

fn line_on<L: Lock>(urgencies: &'static [u8], sockets: &'static [u32]) -> Program {
    let count = urgencies.len();
    Program::new(count as u32 + 1, count as u32 + 1, move |scope| {
        have_seen_urgent();
        let lock = scope.share(L::NEW);
        assert!(lock.try_lock());
        let line = scope.share(Line::new(scope, count));
        let served = Served::new(scope, urgencies);
        for (place, &urgency) in urgencies.iter().enumerate() {
            scope.spawn_on(sockets[place], move || {
                set_urgency(urgency);
                line.follow(place);
                lock.lock();
                served.note(place);
                unlock(lock);
            });
        }
        scope.spawn(move || {
            (0..count).for_each(|place| line.wait_for(place));
            unlock(lock);
        });
        scope.finally(move || served.assert_in_order());
    })
}

/// [`crowd`] in which a waiter is known to be urgent only when it is about to sleep.
fn unknown<F: Form>(urgencies: &'static [u8], rounds: u32) -> Program {
    let known = crowd::<policy::None, F>(urgencies, rounds, 0);
    let body = known.body;
    Program::new(known.threads, known.operations, move |scope| {
        body(scope);
        arena().saw_urgent.store(0, Relaxed);
    })
}

/// Threads of these urgencies contend, `rounds` times each; the first `timed` of them may give up.
fn crowd<Q: policy::Policy, F: Form>(
    urgencies: &'static [u8],
    rounds: u32,
    timed: usize,
) -> Program {
    let count = urgencies.len() as u32;
    Program::new(count, count * rounds, move |scope| {
        have_seen_urgent();
        let lock = scope.share(Mutex::<F, Q>::NEW);
        let [data, left] = scope.share([Data::new(0), Data::new(0)]);
        scope.spawn_each(urgencies.iter().enumerate(), move |(place, &urgency)| {
            set_urgency(urgency);
            let mut had = 0;
            for _ in 0..rounds {
                if place >= timed {
                    lock.lock();
                } else if !lock.lock_until(soon()) {
                    continue;
                }
                had += 1;
                finish(lock, data);
            }
            lock.lock();
            left.set(left.get() + rounds - had);
            unlock(lock);
        });
        scope.finally(move || {
            assert_eq!(data.get() + left.get(), count * rounds);
            assert!(lock.try_lock(), "free at the end");
        });
    })
}

/// URGENT-2: an owner that was the head leaves the most urgent waiter behind it as the head: its
/// release wakes that waiter.
fn raises() -> Program {
    Program::new(4, 4, |scope| {
        have_seen_urgent();
        let lock = scope.share(Mutex::<Sleepy>::NEW);
        assert!(lock.try_lock());
        let line = scope.share(Line::new(scope, 3));
        scope.spawn_each([20, 5, 10].into_iter().enumerate(), move |(place, urgency)| {
            const HEAD: u32 = 2;
            set_urgency(urgency);
            line.follow(place);
            lock.lock();
            if place == 0 {
                let status = line.node(2).status.load(Relaxed);
                assert!(status & HEAD != 0, "the next one is not the most urgent");
            }
            unlock(lock);
        });
        scope.spawn(move || {
            (0..3).for_each(|place| line.wait_for(place));
            unlock(lock);
        });
    })
}

/// [`line`] for waiters that spin for ever: none changes places before the release.
fn spinning(urgencies: &'static [u8]) -> Program {
    let count = urgencies.len();
    Program::new(count as u32 + 1, count as u32 + 1, move |scope| {
        have_seen_urgent();
        let lock = scope.share(Mutex::<Spinning>::NEW);
        assert!(lock.try_lock());
        let line = scope.share(Line::new(scope, count));
        let served = Served::new(scope, urgencies);
        scope.spawn_each(urgencies.iter().enumerate(), move |(place, &urgency)| {
            set_urgency(urgency);
            line.stand(place);
            lock.lock();
            served.note(place);
            unlock(lock);
        });
        scope.spawn(move || {
            // Acquire: pairs with the releases by which they link themselves.
            for place in 0..count - 1 {
                line.node(place).next.wait_while(Acquire, |next| next == 0);
            }
            unlock(lock);
        });
        scope.finally(move || served.assert_in_order());
    })
}

/// URGENT-4: a head that sleeps is woken by an arriving waiter that is more urgent, and steps down
/// before the lock is released.
fn steps_down() -> Program {
    Program::new(3, 3, |scope| {
        have_seen_urgent();
        let lock = scope.share(Mutex::<Sleepy>::NEW);
        assert!(lock.try_lock());
        let line = scope.share(Line::new(scope, 2));
        scope.spawn_each([5, 20].into_iter().enumerate(), move |(place, urgency)| {
            set_urgency(urgency);
            line.follow(place);
            lock.lock();
            unlock(lock);
        });
        scope.spawn(move || {
            const HEAD: u32 = 2;
            line.node(1).status.wait_while(Relaxed, |status| status & HEAD == 0);
            unlock(lock);
        });
    })
}

/// FENCE-3: the head steps down for a waiter that gives up, is the head again, and loses no wake of
/// an owner that unlocks lightly meanwhile.
fn leaves() -> Program {
    Program::new(3, 3, |scope| {
        have_seen_urgent();
        let lock = scope.share(Mutex::<Sleepy>::NEW);
        assert!(lock.try_lock());
        let line = scope.share(Line::new(scope, 2));
        scope.spawn(move || {
            line.follow(0);
            lock.lock();
            unlock(lock);
        });
        scope.spawn(move || {
            set_urgency(20);
            line.follow(1);
            if lock.lock_until(soon()) {
                unlock(lock);
            }
        });
        scope.spawn(move || {
            line.wait_for(0);
            unlock(lock);
        });
    })
}

/// [`line`] for a readers-writer lock: each waiter's urgency, and whether it writes. Writers go
/// before readers of equal priority; readers are recorded when they are in.
fn kinds(waiters: &'static [(u8, bool)]) -> Program {
    let count = waiters.len();
    Program::new(count as u32 + 1, count as u32 + 1, move |scope| {
        have_seen_urgent();
        let lock = scope.share(RwLock::NEW);
        assert!(lock.try_write());
        let line = scope.share(Line::new(scope, count));
        let writers = waiters.iter().filter(|waiter| waiter.1).count();
        let written = scope.share(Data::new(Vec::new()));
        scope.spawn_each(waiters.iter().enumerate(), move |(place, &(urgency, writes))| {
            set_urgency(urgency);
            line.follow(place);
            if writes {
                lock.write();
                written.with_mut(|so_far: &mut Vec<u8>| so_far.push(urgency));
                unlock(lock);
            } else {
                read(lock);
                let ahead = |of: &&(u8, bool)| of.1 && of.0 >= urgency;
                let ahead = waiters.iter().filter(ahead).count();
                let before = written.with(Vec::len);
                assert_eq!(before, ahead, "a reader is in before its time or behind it");
                unlock_read(lock);
            }
        });
        scope.spawn(move || {
            (0..count).for_each(|place| line.wait_for(place));
            unlock(lock);
        });
        scope.finally(move || {
            written.with(|written| {
                assert_eq!(written.len(), writers);
                assert!(written.is_sorted_by_key(|&of| std::cmp::Reverse(of)), "{written:?}");
            });
        });
    })
}

/// Readers and writers of several urgencies: none is lost.
fn readers_and_writers() -> Program {
    Program::new(4, 8, |scope| {
        have_seen_urgent();
        let (lock, data) = guarded::<RwLock>(scope);
        scope.spawn_each(
            [(5, true), (20, false), (10, true), (0, false)],
            move |(urgency, writes)| {
                set_urgency(urgency);
                for _ in 0..2 {
                    if writes {
                        section(lock, data);
                    } else {
                        visit(lock, data);
                    }
                }
            },
        );
        scope.finally(move || {
            assert_eq!(data.get(), 4);
            assert!(lock.write_uncontended(), "free at the end");
        });
    })
}

/// A reader that is more urgent than the waiting writer comes in beside the reader that is in. Must
/// reach `passed`.
fn reader_above_writer() -> Program {
    Program::new(3, 3, |scope| {
        have_seen_urgent();
        let lock = scope.share(RwLock::NEW);
        let line = scope.share(Line::new(scope, 2));
        let passed = scope.share(Word::ZERO);
        read(lock);
        scope.spawn(move || {
            set_urgency(5);
            line.follow(0);
            lock.write();
            unlock(lock);
        });
        scope.spawn(move || {
            set_urgency(20);
            line.follow(1);
            read(lock);
            antiphon_check::probe("passed");
            passed.store(1, Relaxed);
            unlock_read(lock);
        });
        scope.spawn(move || {
            passed.wait_while(Relaxed, |passed| passed == 0);
            unlock_read(lock);
        });
    })
}

/// Waiters of a condition variable, which are notified one by one.
fn notified(urgencies: &'static [u8]) -> Program {
    let count = urgencies.len() as u32;
    Program::new(count + 1, 2 * count, move |scope| {
        let condvar = scope.share(Condvar::<Check>::NEW);
        let turn = scope.share(Word::ZERO);
        let served = Served::new(scope, urgencies);
        for (place, &urgency) in urgencies.iter().enumerate() {
            set_urgency(urgency);
            let entry = condvar.prepare();
            set_urgency(0);
            scope.spawn(move || {
                while !entry.sleep(None) {}
                // SAFETY: `entry` was prepared above.
                let _ = unsafe { condvar.finish(entry) };
                served.note(place);
                // Release: pairs with the acquire below.
                turn.store(served.places.with(Vec::len) as u32, Release);
            });
        }
        scope.spawn(move || {
            for nth in 0..count {
                assert!(condvar.notify_one());
                turn.wait_while(Acquire, |turn| turn <= nth);
            }
            assert!(!condvar.notify_one());
        });
        scope.finally(move || served.assert_in_order());
    })
}

/// A broadcast reaches all waiters, those that it moves and those that it does not.
fn broadcast(urgencies: &'static [u8]) -> Program {
    let count = urgencies.len() as u32;
    Program::new(count + 1, count + 1, move |scope| {
        have_seen_urgent();
        let lock = scope.share(Mutex::<Sleepy>::NEW);
        let condvar = scope.share(Condvar::<Check>::NEW);
        let go = scope.share(Data::new(false));
        scope.spawn_each(urgencies, move |&urgency| {
            set_urgency(urgency);
            lock.lock();
            while !go.get() {
                // SAFETY: the mutex is held.
                unsafe { condvar.wait_with(lock, None) };
            }
            unlock(lock);
        });
        scope.spawn(move || {
            lock.lock();
            go.set(true);
            condvar.notify_all();
            unlock(lock);
        });
        scope.finally(move || assert!(!condvar.has_waiters() && lock.try_lock()));
    })
}

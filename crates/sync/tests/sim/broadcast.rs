//! Tests that a broadcast causes no thundering herd: each waiter is woken once, when its turn for
//! the mutex comes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use antiphon_sim::{Machine, Outcome, OwnLine, Sim, Simulation, work};
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::policy::{None, Numa, Policy};
use antiphon_sync::wait::Condvar;

const WAITERS: usize = 20;
/// Much longer than it takes to lock, to begin a wait and to fall asleep.
const LONG_NS: u64 = 100_000;

struct Shared<Q: Policy> {
    mutex: OwnLine<ShflMutex<Sim, Q>>,
    changed: OwnLine<Condvar<Sim>>,
    go: Cell<bool>,
    /// The threads that returned from the wait, in order.
    back: RefCell<Vec<usize>>,
}

/// `WAITERS` threads wait, one after the other; then a thread that has the mutex, or has just
/// released it, notifies all. Each of them works for a while before it unlocks.
fn broadcast<Q: Policy>(moved: bool, held: bool) -> (Outcome, Vec<usize>) {
    let shared = Rc::new(Shared::<Q> {
        mutex: OwnLine(ShflMutex::NEW),
        changed: OwnLine(Condvar::NEW),
        go: Cell::new(false),
        back: RefCell::default(),
    });
    let result = Rc::clone(&shared);
    // One core per thread: a woken thread runs.
    let outcome = Simulation::new(Machine::two_sockets().shape(2, 12), 1)
        .threads(WAITERS + 1, move |number| {
            let (mutex, changed) = (&shared.mutex.0, &shared.changed.0);
            // SAFETY: called with the mutex held.
            let unlock = || unsafe { mutex.unlock() };
            work(number as u64 * LONG_NS);
            mutex.lock();
            if number == WAITERS {
                shared.go.set(true);
                if held {
                    changed.notify_all();
                    work(LONG_NS);
                    return unlock();
                }
                unlock();
                changed.notify_all();
                return;
            }
            while !shared.go.get() {
                if moved {
                    // SAFETY: locked above.
                    unsafe { changed.wait_with(mutex, Option::None) };
                } else {
                    changed.wait(Option::None, unlock, || mutex.lock());
                }
            }
            shared.back.borrow_mut().push(number);
            work(LONG_NS);
            unlock();
        })
        .run(0);
    (outcome.unwrap_or_else(|stuck| panic!("{stuck}")), result.back.take())
}

#[test]
fn a_broadcast_wakes_each_waiter_once() {
    fn check<Q: Policy>() {
        for held in [true, false] {
            let (outcome, back) = broadcast::<Q>(true, held);
            assert_eq!(back.len(), WAITERS);
            // The first and the rearguard are woken at once, and then wait for their turns.
            let most = WAITERS as u64 + 2;
            assert!(outcome.counts.wakes <= most, "held: {held}: {:?}", outcome.counts);
            // If the wait does not name the mutex, all are herded: the test must be able to see
            // that.
            let (herd, _) = broadcast::<Q>(false, held);
            assert!(herd.counts.wakes > most + WAITERS as u64 / 5, "{:?}", herd.counts);
            assert!(herd.counts.parks > outcome.counts.parks + WAITERS as u64 / 5);
        }
    }
    check::<None>();
    check::<Numa>();
}

#[test]
fn waiters_that_were_moved_have_their_turns_in_order() {
    let (_, back) = broadcast::<None>(true, true);
    assert!(back.iter().copied().eq(0..WAITERS), "{back:?}");
}

/// MOVE-2 with sorted waiters: those of the head's socket come first, but not the rearguard.
#[test]
fn a_rearguard_stays_behind_those_that_it_guards() {
    /// The waiters are 0 to 5; after them come the notifying thread, the head, and a last thread.
    const REARGUARD: usize = 5;
    const NOTIFIER: usize = 6;
    const LAST: usize = 8;
    let shared = Rc::new(Shared::<Numa> {
        mutex: OwnLine(ShflMutex::NEW),
        changed: OwnLine(Condvar::NEW),
        go: Cell::new(false),
        back: RefCell::default(),
    });
    let mut simulation = Simulation::new(Machine::two_sockets().shape(2, 10), 1);
    for number in 0..=LAST {
        let shared = Rc::clone(&shared);
        let socket = if number < REARGUARD { number as u32 % 2 } else { 0 };
        simulation = simulation.thread_on(socket * 10 + number as u32, move || {
            let (mutex, changed) = (&shared.mutex.0, &shared.changed.0);
            // SAFETY: called with the mutex held.
            let unlock = || unsafe { mutex.unlock() };
            work((number as u64 + u64::from(number == LAST)) * LONG_NS);
            mutex.lock();
            if number == NOTIFIER {
                shared.go.set(true);
                // The head comes and falls asleep.
                work(2 * LONG_NS);
                changed.notify_all();
                // The last thread comes.
                work(2 * LONG_NS);
                unlock();
                // The head was signalled, finds itself overtaken, and sorts.
                mutex.lock();
                work(LONG_NS);
                return unlock();
            }
            while !shared.go.get() {
                // SAFETY: locked above.
                unsafe { changed.wait_with(mutex, Option::None) };
            }
            shared.back.borrow_mut().push(number);
            work(LONG_NS);
            unlock();
        });
    }
    let _ = simulation.run(0).unwrap_or_else(|stuck| panic!("{stuck}"));
    let back = shared.back.borrow();
    let of = |number| back.iter().position(|&back| back == number).expect("it is back");
    assert!((0..REARGUARD).all(|number| of(number) < of(REARGUARD)), "{back:?}");
    // Other waiters were sorted.
    assert!(of(2) < of(1), "{back:?}");
}

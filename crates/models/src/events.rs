//! Models of the event: each set has one taker, none is lost, and it may be freed when all threads
//! have returned.

use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use antiphon_check::{Check, Data, Scope};
use antiphon_platform::{Atomic, AtomicInteger, Atomics, Deadline, Platform, WaiterId};
use antiphon_sync::lock::Standard;
use antiphon_sync::policy::{Distance, None, Policy};
use antiphon_sync::wait::{self, CrowdForm};

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::forms::{Sleepy, Spinning};
use crate::program::{Program, soon};

type Event<F = Sleepy, Q = None> = wait::Event<Check, Q, F>;

const PLAIN: Bounds = Bounds::PLAIN;
const ANY: Bounds = PLAIN.spurious(1).crowded(1).expiries(1);

pub fn entries() -> Vec<Entry> {
    [exclusive(), signalled(), impatient(), sorted(), hardened()].into_iter().flatten().collect()
}

/// A set event as the right to touch plain data.
fn exclusive() -> Vec<Entry> {
    vec![
        Entry::new("event/excludes-2x1", excluding::<Event>(2, 1), PLAIN),
        Entry::new("event/excludes-2x2", excluding::<Event>(2, 2), PLAIN),
        Entry::new("event/excludes-3x1", excluding::<Event>(3, 1), PLAIN).by_lot(8_000),
        Entry::new("event/excludes-4x2", excluding::<Event>(4, 2), PLAIN.spurious(1)).by_lot(3_000),
        Entry::new("event/excludes-any-platform-2x1", excluding::<Event<Spinning>>(2, 1), ANY),
        Entry::new("event/excludes-any-platform-3x2", excluding::<Event<Spinning>>(3, 2), ANY)
            .by_lot(5_000),
    ]
}

fn signalled() -> Vec<Entry> {
    let both = &["one for both", "one each"];
    vec![
        Entry::new("event/signals-1+1", signalling(1), PLAIN.spurious(1)),
        Entry::new("event/signals-2+1", signalling(2), PLAIN),
        Entry::new("event/signals-3+1", signalling(3), PLAIN).by_lot(3_000),
        Entry::new("event/coalesces-1+2", coalescing::<Event>(), PLAIN).reaches(both),
        Entry::new("event/coalesces-any-platform-1+2", coalescing::<Event<Spinning>>(), ANY)
            .by_lot(5_000)
            .reaches(both),
        Entry::new("event/tries-1+1", trying(1), PLAIN.spurious(1)).reaches(&["not set"]),
        // Exhaustive, although it takes a while: by lot, a set that is taken twice goes unnoticed.
        Entry::new("event/tries-2+1", trying(2), PLAIN).reaches(&["not set"]),
    ]
}

fn impatient() -> Vec<Entry> {
    let timed = PLAIN.timeouts(1);
    let gave_up = &["gave up"];
    vec![
        Entry::new("event/gives-up-alone-1+1", giving_up::<Event>(0), timed).reaches(gave_up),
        Entry::new("event/gives-up-beside-1+1+1", giving_up::<Event>(1), timed)
            .by_lot(8_000)
            .reaches(gave_up),
        Entry::new("event/gives-up-2+1+1", giving_up::<Event>(2), timed.spurious(1))
            .by_lot(3_000)
            .reaches(gave_up),
        Entry::new("event/destroyed-1+1", destroying::<Event>(), PLAIN),
        Entry::new("event/destroyed-timed-1+1", destroying::<Event>(), timed),
        Entry::new("event/destroyed-beside-2+1", destroying_beside(), timed)
            .by_lot(8_000)
            .reaches(gave_up),
    ]
}

/// With a policy, and several waiters to choose from.
fn sorted() -> Vec<Entry> {
    let two = PLAIN.sockets(2);
    vec![
        Entry::new("event/sorts-3x1", excluding::<Event<Sleepy, Distance>>(3, 1), two)
            .by_lot(5_000),
        Entry::new("event/sorts-4x2", excluding::<Event<Sleepy, Distance>>(4, 2), two.spurious(1))
            .by_lot(1_500),
    ]
}

fn hardened() -> Vec<Entry> {
    vec![
        Entry::new("event/exhausted-3x1", excluding::<Event>(3, 1), PLAIN.nodes(0)),
        Entry::new("event/exhausted-but-one-3x1", excluding::<Event>(3, 1), PLAIN.nodes(1)),
        Entry::new("event/inherited-2x1", inherited(2), PLAIN),
        Entry::new("event/inherited-3x1", inherited(3), PLAIN).by_lot(3_000),
        Entry::new("event/shipped-2x1", excluding::<Event<Standard>>(2, 1), ANY),
        Entry::new("event/shipped-3x2", excluding::<Event<Standard>>(3, 2), ANY.timeouts(1))
            .by_lot(3_000),
    ]
}

/// An event of any kind.
pub trait AutoReset: Sync + 'static {
    /// An event that is not set.
    const NEW: Self;

    /// Sets the event.
    fn set(&self);

    /// Waits for the event until the deadline; returns whether it was set.
    fn wait_until(&self, deadline: Option<Deadline>) -> bool;

    /// Takes the event if it is set; returns whether it was.
    fn try_wait(&self) -> bool;

    /// Waits for the event without a deadline.
    fn wait(&self) {
        while !self.wait_until(Option::None) {}
    }
}

impl<F: CrowdForm, Q: Policy> AutoReset for Event<F, Q> {
    const NEW: Self = Self::NEW;

    fn set(&self) {
        self.set();
    }

    fn wait_until(&self, deadline: Option<Deadline>) -> bool {
        self.wait_until(deadline)
    }

    fn try_wait(&self) -> bool {
        self.try_wait()
    }
}

/// Threads that take the event, touch plain data, and set it again.
fn sections<'scope, E: AutoReset>(
    scope: &'scope Scope<'scope, '_>,
    event: &'scope E,
    threads: u32,
    rounds: u32,
) {
    let data = scope.share(Data::new(0));
    for _ in 0..threads {
        scope.spawn(move || {
            for _ in 0..rounds {
                event.wait();
                data.set(data.get() + 1);
                event.set();
            }
        });
    }
    scope.finally(move || {
        assert_eq!(data.get(), threads * rounds);
        assert!(event.try_wait(), "it was set last");
        assert!(!event.try_wait(), "and once");
    });
}

/// EVENT-1: each set has one taker.
pub fn excluding<E: AutoReset>(threads: u32, rounds: u32) -> Program {
    Program::new(threads, threads * rounds, move |scope| {
        let event = scope.share(E::NEW);
        event.set();
        sections(scope, event, threads, rounds);
    })
}

/// One thread sets the event; each of the waiters takes it and passes it on.
fn signalling(waiters: u32) -> Program {
    Program::new(waiters + 1, waiters + 1, move |scope| {
        let event = scope.share(Event::<Sleepy>::NEW);
        let data = scope.share(Data::new(false));
        for _ in 0..waiters {
            scope.spawn(move || {
                event.wait();
                assert!(data.get(), "what came before the set");
                event.set();
            });
        }
        scope.spawn(move || {
            data.set(true);
            event.set();
        });
    })
}

/// EVENT-1: two threads set the event, and one waits once. It has seen both, or the event is still
/// set. Must reach `one for both` and `one each`.
pub fn coalescing<E: AutoReset>() -> Program {
    type Word = <Check as Atomics>::U32;
    Program::new(3, 3, |scope| {
        let event = scope.share(E::NEW);
        let parts = scope.share([Word::ZERO, Word::ZERO]);
        let seen = scope.share(Data::new(false));
        scope.spawn(move || {
            event.wait();
            // Relaxed: the event orders.
            seen.set(parts.iter().all(|part| part.load(Relaxed) == 1));
        });
        for part in parts {
            scope.spawn(move || {
                part.store(1, Relaxed);
                event.set();
            });
        }
        scope.finally(move || {
            let again = event.try_wait();
            antiphon_check::probe(if again { "one each" } else { "one for both" });
            assert!(again || seen.get(), "what came before each set that was taken");
            assert!(!event.try_wait(), "no set is there twice");
        });
    })
}

/// A try takes a set event, and nothing if the event is not set. Must reach `not set`.
fn trying(others: u32) -> Program {
    Program::new(others + 1, others + 1, move |scope| {
        let event = scope.share(Event::<Sleepy>::NEW);
        event.set();
        let data = scope.share(Data::new(0));
        for _ in 0..others {
            scope.spawn(move || {
                event.wait();
                data.set(data.get() + 1);
                event.set();
            });
        }
        scope.spawn(move || {
            if event.try_wait() {
                data.set(data.get() + 1);
                event.set();
            } else {
                antiphon_check::probe("not set");
            }
        });
        scope.finally(move || {
            event.reset();
            assert!(!event.is_set() && !event.try_wait(), "it was reset");
        });
    })
}

/// `patient` threads wait, and one more may give up; each passes on the event that it has taken.
/// Must reach `gave up`.
pub fn giving_up<E: AutoReset>(patient: u32) -> Program {
    Program::new(patient + 2, patient + 2, move |scope| {
        let event = scope.share(E::NEW);
        for _ in 0..patient {
            scope.spawn(move || {
                event.wait();
                event.set();
            });
        }
        scope.spawn(move || {
            if event.wait_until(Some(soon())) {
                event.set();
            } else {
                antiphon_check::probe("gave up");
            }
        });
        scope.spawn(move || event.set());
        scope.finally(move || {
            assert!(event.try_wait(), "none went with it");
            assert!(!event.try_wait(), "and it was one");
        });
    })
}

/// EVENT-3, EVENT-4: a thread that has waited frees the event.
pub fn destroying<E: AutoReset>() -> Program {
    Program::new(2, 2, |scope| {
        let event = scope.share(E::NEW);
        scope.spawn(move || event.set());
        scope.spawn(move || {
            if !event.wait_until(Some(soon())) {
                event.wait();
            }
            antiphon_check::retire(event);
        });
    })
}

/// EVENT-4: [`destroying`] with another waiter that may give up; the last that returns frees the
/// event. Must reach `gave up`.
fn destroying_beside() -> Program {
    Program::new(3, 3, |scope| {
        let event = scope.share(Event::<Sleepy>::NEW);
        let back = scope.share(<Check as Atomics>::U32::ZERO);
        scope.spawn(move || event.set());
        let leave = move || {
            if back.fetch_add(1, AcqRel) == 1 {
                antiphon_check::retire(event);
            }
        };
        scope.spawn(move || {
            event.wait();
            leave();
        });
        scope.spawn(move || {
            if event.wait_until(Some(soon())) {
                event.set();
            } else {
                antiphon_check::probe("gave up");
            }
            leave();
        });
    })
}

/// Layout of the words of an event's list.
#[repr(C)]
struct Words {
    sets: <Check as Atomics>::U64,
    apart_and_taken: [u64; 16],
    lock: u64,
    first: <Check as Atomics>::U32,
    last: <Check as Atomics>::U32,
}

/// In the child of a fork: a thread of the parent is on the list.
fn inherited(threads: u32) -> Program {
    Program::new(threads, threads, move |scope| {
        let event = scope.share(Event::<Sleepy>::NEW);
        // SAFETY: `Words` has the layout that the event's file defines; the event lives as long as
        // the borrow.
        let words = unsafe { &*std::ptr::from_ref(event).cast::<Words>() };
        let stranger = WaiterId::new(Check::epoch() + 1, 40).bits();
        words.sets.store(1, Relaxed);
        words.first.store(stranger, Relaxed);
        words.last.store(stranger, Relaxed);
        event.set();
        sections(scope, event, threads, 1);
    })
}

//! Models of the event: each set has one taker, none is lost, and it may be freed when all threads
//! have returned.

use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use antiphon_check::{Check, Data, Scope};
use antiphon_platform::{Atomic, AtomicInteger, Atomics, Deadline, Platform, WaiterId};
use antiphon_sync::lock::{Form, Standard};
use antiphon_sync::policy::{Distance, None, Policy};
use antiphon_sync::shared::SharedEvent;
use antiphon_sync::wait::{self, CrowdForm};

use crate::bounds::{ANY, ANY_SHARED, NUMA, PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, all_of, model};
use crate::forms::{Sleepy, Spinning};
use crate::program::{GAVE_UP, Program, soon};

type Event<F = Sleepy, Q = None> = wait::Event<Check, Q, F>;
type Shared<F = Sleepy> = SharedEvent<Check, F>;

pub fn entries() -> Vec<Entry> {
    all_of([exclusive(), signalled(), impatient(), sorted(), hardened(), shared()])
}

/// Those that processes share. Threads stand for processes.
fn shared() -> Vec<Entry> {
    let both = &["one for both", "one each"];
    Subject("shared-event").models([
        model("excludes-2x1", excluding::<Shared>(2, 1), SPURIOUS),
        model("excludes-2x2", excluding::<Shared>(2, 2), PLAIN).by_lot(3_000),
        model("excludes-3x1", excluding::<Shared>(3, 1), PLAIN).by_lot(3_000),
        model("excludes-shipped-3x2", excluding::<Shared<Standard>>(3, 2), ANY_SHARED)
            .by_lot(2_000),
        model("coalesces-1+2", coalescing::<Shared>(), PLAIN).reaches(both),
        model("coalesces-any-platform-1+2", coalescing::<Shared<Spinning>>(), ANY_SHARED)
            .by_lot(3_000)
            .reaches(both),
        model("gives-up-1+1", giving_up::<Shared>(0), TIMED).reaches(GAVE_UP),
        model("gives-up-beside-1+1+1", giving_up::<Shared>(1), TIMED)
            .by_lot(5_000)
            .reaches(GAVE_UP),
        model("destroyed-1+1", destroying::<Shared>(), TIMED),
    ])
}

/// A set event as the right to touch plain data.
fn exclusive() -> Vec<Entry> {
    Subject("event").models([
        model("excludes-2x1", excluding::<Event>(2, 1), PLAIN),
        model("excludes-2x2", excluding::<Event>(2, 2), PLAIN),
        model("excludes-3x1", excluding::<Event>(3, 1), PLAIN).by_lot(8_000),
        model("excludes-4x2", excluding::<Event>(4, 2), SPURIOUS).by_lot(3_000),
        model("excludes-any-platform-2x1", excluding::<Event<Spinning>>(2, 1), ANY),
        model("excludes-any-platform-3x2", excluding::<Event<Spinning>>(3, 2), ANY).by_lot(5_000),
    ])
}

fn signalled() -> Vec<Entry> {
    let both = &["one for both", "one each"];
    Subject("event").models([
        model("signals-1+1", signalling(1), SPURIOUS),
        model("signals-2+1", signalling(2), PLAIN),
        model("signals-3+1", signalling(3), PLAIN).by_lot(3_000),
        model("coalesces-1+2", coalescing::<Event>(), PLAIN).reaches(both),
        model("coalesces-any-platform-1+2", coalescing::<Event<Spinning>>(), ANY)
            .by_lot(5_000)
            .reaches(both),
        model("tries-1+1", trying(1), SPURIOUS).reaches(&["not set"]),
        // Exhaustive, although it takes a while: by lot, a set that is taken twice goes unnoticed.
        model("tries-2+1", trying(2), PLAIN).reaches(&["not set"]),
    ])
}

fn impatient() -> Vec<Entry> {
    Subject("event").models([
        model("gives-up-alone-1+1", giving_up::<Event>(0), TIMED).reaches(GAVE_UP),
        model("gives-up-beside-1+1+1", giving_up::<Event>(1), TIMED).by_lot(8_000).reaches(GAVE_UP),
        model("gives-up-2+1+1", giving_up::<Event>(2), TIMED.spurious(1))
            .by_lot(3_000)
            .reaches(GAVE_UP),
        model("destroyed-1+1", destroying::<Event>(), PLAIN),
        model("destroyed-timed-1+1", destroying::<Event>(), TIMED),
        model("destroyed-beside-2+1", destroying_beside(), TIMED).by_lot(8_000).reaches(GAVE_UP),
    ])
}

/// With a policy, and several waiters to choose from.
fn sorted() -> Vec<Entry> {
    Subject("event").models([
        model("sorts-3x1", excluding::<Event<Sleepy, Distance>>(3, 1), NUMA).by_lot(5_000),
        model("sorts-4x2", excluding::<Event<Sleepy, Distance>>(4, 2), NUMA.spurious(1))
            .by_lot(1_500),
    ])
}

fn hardened() -> Vec<Entry> {
    Subject("event").models([
        model("exhausted-3x1", excluding::<Event>(3, 1), PLAIN.nodes(0)),
        model("exhausted-but-one-3x1", excluding::<Event>(3, 1), PLAIN.nodes(1)),
        model("inherited-2x1", inherited(2), PLAIN),
        model("inherited-3x1", inherited(3), PLAIN).by_lot(3_000),
        model("shipped-2x1", excluding::<Event<Standard>>(2, 1), ANY),
        model("shipped-3x2", excluding::<Event<Standard>>(3, 2), ANY.timeouts(1)).by_lot(3_000),
    ])
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

/// Implements [`AutoReset`] by the methods of an event.
macro_rules! auto_reset {
    ([$($parameter:tt)*] $type:ty) => {
        impl<$($parameter)*> AutoReset for $type {
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
    };
}

auto_reset!([F: CrowdForm, Q: Policy] Event<F, Q>);
auto_reset!([F: Form] Shared<F>);

/// Threads that take the event, touch plain data, and set it again.
fn sections<'scope, E: AutoReset>(
    scope: &'scope Scope<'scope, '_>,
    event: &'scope E,
    threads: u32,
    rounds: u32,
) {
    let data = scope.share(Data::new(0));
    scope.spawn_each(0..threads, move |_| {
        for _ in 0..rounds {
            event.wait();
            data.set(data.get() + 1);
            event.set();
        }
    });
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
        scope.spawn_each(0..waiters, move |_| {
            event.wait();
            assert!(data.get(), "what came before the set");
            event.set();
        });
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
        scope.spawn_each(parts, move |part| {
            part.store(1, Relaxed);
            event.set();
        });
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
        scope.spawn_each(0..others, move |_| {
            event.wait();
            data.set(data.get() + 1);
            event.set();
        });
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
        scope.spawn_each(0..patient, move |_| {
            event.wait();
            event.set();
        });
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

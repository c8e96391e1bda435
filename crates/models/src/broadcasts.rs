//! Models of the broadcast: no waiter sleeps through a send, and it may be freed when all waiters
//! have returned.

use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use antiphon_check::{Check, Data, Scope};
use antiphon_platform::{Atomic, AtomicInteger, Atomics, Deadline, Platform, WaiterId};
use antiphon_sync::lock::{Form, Standard};
use antiphon_sync::shared::{SharedBroadcast, SharedGeneration};
use antiphon_sync::wait::{self, CrowdForm};

use crate::bounds::{ANY, ANY_SHARED, NUMA, PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, all_of, model};
use crate::forms::{Sleepy, Spinning};
use crate::program::{GAVE_UP, Program, soon};

type Broadcast<F = Sleepy> = wait::Broadcast<Check, F, 2>;
type Shared<F = Sleepy> = SharedBroadcast<Check, F>;

pub fn entries() -> Vec<Entry> {
    all_of([own(), shared()])
}

fn own() -> Vec<Entry> {
    let (timed, two) = (TIMED, NUMA);
    let both = timed.sockets(2);
    let (no_node, one_node) = (PLAIN.nodes(0), PLAIN.nodes(1));
    Subject("broadcast").models([
        model("sends-1+1", sending::<Broadcast>(1, 1), SPURIOUS),
        model("sends-2+1", sending::<Broadcast>(2, 1), PLAIN),
        model("sends-1+2", sending::<Broadcast>(1, 2), PLAIN),
        model("sends-3+1", sending::<Broadcast>(3, 1), PLAIN).by_lot(5_000),
        model("sends-6+2", sending::<Broadcast>(6, 2), two.spurious(1)).by_lot(2_000),
        model("sends-any-platform-1+1", sending::<Broadcast<Spinning>>(1, 1), ANY),
        model("sends-any-platform-3+2", sending::<Broadcast<Spinning>>(3, 2), ANY).by_lot(3_000),
        model("chases-1+1", chasing::<Broadcast>(1, 2), PLAIN),
        model("chases-2+1", chasing::<Broadcast>(2, 2), two).by_lot(5_000),
        model("gives-up-1+1+1", giving_up::<Broadcast>(1, 1), timed).reaches(GAVE_UP),
        model("gives-up-2+1+2", giving_up::<Broadcast>(2, 2), timed.sockets(2))
            .by_lot(5_000)
            .reaches(GAVE_UP),
        model("destroyed-1+1", destroying::<Broadcast>(1, 1), timed),
        model("destroyed-2+1", destroying::<Broadcast>(2, 1), timed).by_lot(10_000),
        model("destroyed-3+2", destroying::<Broadcast>(3, 2), timed.sockets(2)).by_lot(10_000),
        model("crowd-2+1", sending::<Broadcast>(2, 1), two),
        model("crowd-3+1", sending::<Broadcast>(3, 1), two).by_lot(5_000),
        model("crowd-6+2", sending::<Broadcast>(6, 2), two.spurious(1)).by_lot(3_000),
        model("crowd-late-5+2", late(5, 2), timed.sockets(2))
            .by_lot(8_000)
            .reaches(&["slept later"]),
        model("crowd-late-3+1", late(3, 1), timed.sockets(2))
            .by_lot(4_000)
            .reaches(&["slept later"]),
        model("crowd-chase-2+1", chasing::<Broadcast>(2, 2), two).by_lot(5_000),
        model("crowd-give-up-2+1+1", giving_up::<Broadcast>(2, 1), timed.sockets(2))
            .by_lot(5_000)
            .reaches(GAVE_UP),
        model("crowd-destroyed-3+1", destroying::<Broadcast>(3, 1), timed.sockets(2))
            .by_lot(10_000),
        model("fibers-1+1", sending::<Broadcast>(1, 1), SPURIOUS.fibers(1)),
        model("fibers-2+1", sending::<Broadcast>(2, 1), PLAIN.fibers(2)),
        model("fibers-6+2", sending::<Broadcast>(6, 2), two.spurious(1).fibers(6)).by_lot(2_000),
        model("fibers-chase-2+1", chasing::<Broadcast>(2, 2), two.fibers(2)).by_lot(5_000),
        model("fibers-give-up-1+1+1", giving_up::<Broadcast>(1, 1), timed.fibers(2))
            .reaches(GAVE_UP),
        model("fibers-destroyed-1+1", destroying::<Broadcast>(1, 1), timed.fibers(1)),
        model("fibers-destroyed-3+2", destroying::<Broadcast>(3, 2), both.fibers(3)).by_lot(10_000),
        model("mixed-2+1", sending::<Broadcast>(2, 1), PLAIN.fibers(1)),
        model("mixed-destroyed-2+1", destroying::<Broadcast>(2, 1), timed.fibers(1)).by_lot(10_000),
        model("exhausted-2+1", sending::<Broadcast>(2, 1), no_node.fibers(2)),
        model("exhausted-but-one-2+1", sending::<Broadcast>(2, 1), one_node.fibers(2)),
        model("inherited-1+1", inherited(1), PLAIN.fibers(1)),
        model("inherited-2+1", inherited(2), PLAIN.fibers(2)).by_lot(3_000),
        model("shipped-1+1", sending::<Broadcast<Standard>>(1, 1), ANY),
        model("shipped-4+2", sending::<Broadcast<Standard>>(4, 2), ANY.sockets(2)).by_lot(1_000),
    ])
}

/// Those that processes share. Threads stand for processes.
fn shared() -> Vec<Entry> {
    Subject("shared-broadcast").models([
        model("sends-1+1", sending::<Shared>(1, 1), SPURIOUS),
        model("sends-2+1", sending::<Shared>(2, 1), PLAIN),
        model("sends-1+2", sending::<Shared>(1, 2), PLAIN),
        model("sends-any-platform-2+2", sending::<Shared<Spinning>>(2, 2), ANY_SHARED)
            .by_lot(3_000),
        model("sends-shipped-3+2", sending::<Shared<Standard>>(3, 2), ANY_SHARED).by_lot(2_000),
        model("chases-1+1", chasing::<Shared>(1, 2), PLAIN),
        model("gives-up-1+1+1", giving_up::<Shared>(1, 1), TIMED).by_lot(5_000).reaches(GAVE_UP),
        model("destroyed-1+1", destroying::<Shared>(1, 1), TIMED),
        model("destroyed-2+1", destroying::<Shared>(2, 1), TIMED).by_lot(5_000),
    ])
}

/// A broadcast of any kind.
pub trait Casts: Sync + 'static {
    /// Number of sends so far.
    type Generation: Copy + PartialEq + Send + Sync + 'static;

    /// A broadcast to which nothing was sent.
    const NEW: Self;

    /// Returns the present generation.
    fn now(&self) -> Self::Generation;

    /// Starts a new generation, which ends the waits for it.
    fn send(&self);

    /// Waits until the generation differs from `seen`, or until the deadline; then returns `None`.
    fn wait_until(
        &self,
        seen: Self::Generation,
        deadline: Option<Deadline>,
    ) -> Option<Self::Generation>;

    /// Returns the number of sends from `earlier` to `now`.
    fn since(now: Self::Generation, earlier: Self::Generation) -> u64;

    /// Waits until the generation differs from `seen`.
    fn wait(&self, seen: Self::Generation) -> Self::Generation {
        loop {
            if let Some(now) = self.wait_until(seen, None) {
                return now;
            }
        }
    }
}

/// Implements [`Casts`] by the methods of a broadcast.
macro_rules! casts {
    ([$($parameter:tt)*] $type:ty, $generation:ty) => {
        impl<$($parameter)*> Casts for $type {
            type Generation = $generation;

            const NEW: Self = Self::NEW;

            fn now(&self) -> $generation {
                self.now()
            }

            fn send(&self) {
                self.send();
            }

            fn wait_until(
                &self,
                seen: $generation,
                deadline: Option<Deadline>,
            ) -> Option<$generation> {
                self.wait_until(seen, deadline)
            }

            fn since(now: $generation, earlier: $generation) -> u64 {
                now.since(earlier).into()
            }
        }
    };
}

casts!([F: CrowdForm] Broadcast<F>, wait::Generation);
casts!([F: Form] Shared<F>, SharedGeneration);

/// Each of `senders` does its part and sends; waiters return when they find all parts done.
pub fn sending<B: Casts>(waiters: u32, senders: u32) -> Program {
    Program::new(waiters + senders, waiters + senders, move |scope| {
        send(scope, scope.share(B::NEW), waiters, senders);
    })
}

/// CAST-1: a thread that sees the generation grown by `senders` sees all that the senders have done
/// before.
fn send<'scope, B: Casts>(
    scope: &'scope Scope<'scope, '_>,
    broadcast: &'scope B,
    waiters: u32,
    senders: u32,
) {
    let parts = scope.share((0..senders).map(|_| Data::new(false)).collect::<Vec<_>>());
    let first = broadcast.now();
    scope.spawn_each(0..waiters, move |_| {
        let mut now = first;
        while B::since(now, first) < senders.into() {
            now = broadcast.wait(now);
        }
        assert!(parts.iter().all(Data::get), "all is done");
    });
    scope.spawn_each(parts, move |part| {
        part.set(true);
        broadcast.send();
    });
}

/// Waiters follow one sender, which sends `sends` times, each time with a new datum.
pub fn chasing<B: Casts>(waiters: u32, sends: u32) -> Program {
    type Word = <Check as Atomics>::U32;
    Program::new(waiters + 1, waiters + sends, move |scope| {
        let broadcast = scope.share(B::NEW);
        let sent = scope.share(Word::ZERO);
        scope.spawn_each(0..waiters, move |_| {
            let mut now = broadcast.now();
            // Relaxed: the broadcast orders.
            while sent.load(Relaxed) != sends {
                now = broadcast.wait(now);
            }
        });
        scope.spawn(move || {
            for number in 1..=sends {
                sent.store(number, Relaxed);
                broadcast.send();
            }
        });
    })
}

/// `patient` threads wait without a deadline; one more may give up. Must reach `gave up`.
pub fn giving_up<B: Casts>(patient: u32, senders: u32) -> Program {
    Program::new(patient + 1 + senders, patient + 1 + senders, move |scope| {
        let broadcast = scope.share(B::NEW);
        let first = broadcast.now();
        scope.spawn_each(0..patient, move |_| {
            assert!(broadcast.wait(first) != first, "it was sent")
        });
        scope.spawn(move || {
            if broadcast.wait_until(first, Some(soon())).is_none() {
                antiphon_check::probe("gave up");
            }
        });
        scope.spawn_each(0..senders, move |_| broadcast.send());
    })
}

/// CAST-5 and 6: on each socket a waiter sleeps in the first generation. On one socket other
/// waiters sleep in the generation after `sends`, and a send that has ended the first one may
/// choose them. Must reach `slept later`.
fn late(waiters: u32, sends: u32) -> Program {
    Program::new(waiters + sends, waiters + sends, move |scope| {
        let broadcast = scope.share(Broadcast::<Sleepy>::NEW);
        let first = broadcast.now();
        // Distributed over the sockets in turn.
        for number in 0..waiters {
            let is_late = number % 2 == 0 && number + 1 < waiters;
            scope.spawn(move || {
                let mut now = broadcast.wait(first);
                while is_late && now.since(first) < u64::from(sends) {
                    now = broadcast.wait(now);
                }
                if is_late && broadcast.wait_until(now, Some(soon())).is_none() {
                    antiphon_check::probe("slept later");
                }
            });
        }
        scope.spawn_each(0..sends, move |_| broadcast.send());
    })
}

/// CAST-4: the last waiter to return frees the broadcast, though a sender may still be in `send`.
/// Waiters may give up and wait again; the last one has seen all sends.
pub fn destroying<B: Casts>(waiters: u32, senders: u32) -> Program {
    Program::new(waiters + senders, waiters + senders, move |scope| {
        let broadcast = scope.share(B::NEW);
        let back = scope.share(<Check as Atomics>::U32::ZERO);
        let first = broadcast.now();
        scope.spawn_each(0..waiters, move |_| {
            let mut now = first;
            while B::since(now, first) < senders.into() {
                now = broadcast.wait_until(now, Some(soon())).unwrap_or(now);
            }
            if back.fetch_add(1, AcqRel) + 1 == waiters {
                antiphon_check::retire(broadcast);
            }
        });
        scope.spawn_each(0..senders, move |_| broadcast.send());
    })
}

/// Layout of the words of a broadcast's first node.
#[repr(C)]
struct Words {
    state: <Check as Atomics>::U64,
    fill: [u64; 15],
    lock: u64,
    first: <Check as Atomics>::U32,
    last: <Check as Atomics>::U32,
}

/// In the child of a fork: a thread of the parent is on the list.
fn inherited(waiters: u32) -> Program {
    Program::new(waiters + 1, waiters + 1, move |scope| {
        let broadcast = scope.share(Broadcast::<Sleepy>::NEW);
        // SAFETY: `Words` has the layout that the broadcast's file defines; the broadcast lives as
        // long as the borrow.
        let words = unsafe { &*std::ptr::from_ref(broadcast).cast::<Words>() };
        let stranger = WaiterId::new(Check::epoch() + 1, 40).bits();
        words.state.store(1 << 32, Relaxed);
        words.first.store(stranger, Relaxed);
        words.last.store(stranger, Relaxed);
        send(scope, broadcast, waiters, 1);
    })
}

//! Models of the latch: it opens when all is counted down, for all waiters, and for good.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data};
use antiphon_platform::{Atomic, Atomics, Deadline, Platform, WaiterId};
use antiphon_sync::lock::{Form, Standard};
use antiphon_sync::shared::SharedLatch;
use antiphon_sync::wait::{self, CrowdForm};

use crate::bounds::{ANY, ANY_SHARED, PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, all_of, model};
use crate::forms::{Sleepy, Spinning};
use crate::program::{GAVE_UP, Program, soon};

type Latch<F = Sleepy> = wait::Latch<Check, F>;
type Shared<F = Sleepy> = SharedLatch<Check, F>;

pub fn entries() -> Vec<Entry> {
    all_of([own(), shared()])
}

fn own() -> Vec<Entry> {
    Subject("latch").models([
        model("opens-1+1", opening::<Latch>(1, 1, 1), SPURIOUS),
        model("opens-1+2", opening::<Latch>(1, 2, 1), PLAIN),
        model("opens-2+1", opening::<Latch>(2, 1, 1), PLAIN),
        model("opens-beyond-1+2", opening::<Latch>(1, 2, 2), PLAIN),
        model("opens-5+2", opening::<Latch>(5, 2, 1), SPURIOUS).by_lot(3_000),
        model("opens-any-platform-1+1", opening::<Latch<Spinning>>(1, 1, 1), ANY),
        model("opens-any-platform-2+2", opening::<Latch<Spinning>>(2, 2, 1), ANY).by_lot(5_000),
        model("gives-up-1+1+1", giving_up::<Latch>(), TIMED).by_lot(5_000).reaches(GAVE_UP),
        model("destroyed-1+1", destroying::<Latch>(1), PLAIN),
        model("destroyed-timed-1+1", destroying::<Latch>(1), TIMED),
        model("destroyed-timed-1+2", destroying::<Latch>(2), TIMED).by_lot(5_000),
        model("exhausted-2+1", opening::<Latch>(2, 1, 1), PLAIN.nodes(0)),
        model("exhausted-but-one-2+1", opening::<Latch>(2, 1, 1), PLAIN.nodes(1)),
        model("inherited-1+1", inherited(1), PLAIN),
        model("inherited-2+1", inherited(2), PLAIN).by_lot(2_000),
        model("shipped-1+1", opening::<Latch<Standard>>(1, 1, 1), ANY),
        model("shipped-4+3", opening::<Latch<Standard>>(4, 3, 1), ANY).by_lot(2_000),
    ])
}

/// Those that processes share. Threads stand for processes.
fn shared() -> Vec<Entry> {
    Subject("shared-latch").models([
        model("opens-1+1", opening::<Shared>(1, 1, 1), SPURIOUS),
        model("opens-1+2", opening::<Shared>(1, 2, 1), PLAIN),
        model("opens-2+1", opening::<Shared>(2, 1, 1), PLAIN),
        model("opens-beyond-1+2", opening::<Shared>(1, 2, 2), PLAIN),
        model("opens-any-platform-2+2", opening::<Shared<Spinning>>(2, 2, 1), ANY_SHARED)
            .by_lot(3_000),
        model("opens-shipped-3+2", opening::<Shared<Standard>>(3, 2, 1), ANY_SHARED).by_lot(2_000),
        model("gives-up-1+1+1", giving_up::<Shared>(), TIMED).by_lot(5_000).reaches(GAVE_UP),
        model("destroyed-1+1", destroying::<Shared>(1), TIMED),
        model("destroyed-1+2", destroying::<Shared>(2), TIMED).by_lot(5_000),
    ])
}

/// A latch of any kind.
pub trait Opens: Sync + 'static {
    /// Creates a latch that counts down from `count`.
    fn of(count: u32) -> Self;

    /// Counts down by `step`.
    fn count_down(&self, step: u32);

    /// Waits for the latch until the deadline; returns whether it is open.
    fn wait_until(&self, deadline: Option<Deadline>) -> bool;

    /// Returns whether the latch is open.
    fn is_open(&self) -> bool;

    /// Returns the remaining count.
    fn left(&self) -> u32;

    /// Waits for the latch without a deadline.
    fn wait(&self) {
        while !self.wait_until(None) {}
    }
}

/// Implements [`Opens`] by the methods of a latch.
macro_rules! opens {
    ([$($parameter:tt)*] $type:ty) => {
        impl<$($parameter)*> Opens for $type {
            fn of(count: u32) -> Self {
                Self::new(count)
            }

            fn count_down(&self, step: u32) {
                self.count_down(step);
            }

            fn wait_until(&self, deadline: Option<Deadline>) -> bool {
                self.wait_until(deadline)
            }

            fn is_open(&self) -> bool {
                self.is_open()
            }

            fn left(&self) -> u32 {
                self.left()
            }
        }
    };
}

opens!([F: CrowdForm] Latch<F>);
opens!([F: Form] Shared<F>);

/// Each of `doers` does its part and counts down by `step`, which may be more than the remaining
/// count.
pub fn opening<L: Opens>(waiters: u32, doers: u32, step: u32) -> Program {
    Program::new(waiters + doers, waiters + doers, move |scope| {
        let count = doers * step - (step - 1);
        let latch = scope.share(L::of(count));
        let parts = scope.share((0..doers).map(|_| Data::new(false)).collect::<Vec<_>>());
        scope.spawn_each(0..waiters, move |_| {
            latch.wait();
            assert!(parts.iter().all(Data::get), "all is done");
        });
        scope.spawn_each(parts, move |part| {
            part.set(true);
            latch.count_down(step);
        });
        scope.finally(move || {
            latch.count_down(1);
            assert!(latch.is_open() && latch.left() == 0, "for good");
        });
    })
}

/// One of two waiters may give up. Must reach `gave up`.
pub fn giving_up<L: Opens>() -> Program {
    Program::new(3, 3, |scope| {
        let latch = scope.share(L::of(1));
        let data = scope.share(Data::new(false));
        scope.spawn(move || latch.wait());
        scope.spawn(move || {
            if latch.wait_until(Some(soon())) {
                assert!(data.get(), "it is done");
            } else {
                antiphon_check::probe("gave up");
            }
        });
        scope.spawn(move || {
            data.set(true);
            latch.count_down(1);
        });
    })
}

/// LATCH-3, LATCH-4: a thread that has waited frees the latch.
pub fn destroying<L: Opens>(doers: u32) -> Program {
    Program::new(doers + 1, doers + 1, move |scope| {
        let latch = scope.share(L::of(doers));
        scope.spawn_each(0..doers, move |_| latch.count_down(1));
        scope.spawn(move || {
            if !latch.wait_until(Some(soon())) {
                latch.wait();
            }
            antiphon_check::retire(latch);
        });
    })
}

/// Layout of the words of a latch.
#[repr(C, align(8))]
struct Words {
    state: <Check as Atomics>::U32,
    beside: u32,
    lock: u64,
    first: <Check as Atomics>::U32,
    last: <Check as Atomics>::U32,
}

const _: () = assert!(size_of::<Words>() == size_of::<Latch>());

/// In the child of a fork: a thread of the parent is on the list.
fn inherited(waiters: u32) -> Program {
    Program::new(waiters + 1, waiters + 1, move |scope| {
        let latch = scope.share(Latch::<Sleepy>::new(1));
        // SAFETY: `Words` has the layout that the latch's file defines; the latch lives as long as
        // the borrow.
        let words = unsafe { &*std::ptr::from_ref(latch).cast::<Words>() };
        let stranger = WaiterId::new(Check::epoch() + 1, 40).bits();
        words.state.store(1, Relaxed);
        words.first.store(stranger, Relaxed);
        words.last.store(stranger, Relaxed);
        scope.spawn_each(0..waiters, move |_| latch.wait());
        scope.spawn(move || latch.count_down(1));
        scope.finally(move || assert!(latch.is_open()));
    })
}

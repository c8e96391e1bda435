//! Models of the barrier: all threads go on or none, one leader, and it may be freed as soon as any
//! thread has returned.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data};
use antiphon_platform::{Atomic, Atomics, Platform, WaiterId};
use antiphon_sync::lock::{Form, Standard};
use antiphon_sync::shared::SharedBarrier;
use antiphon_sync::wait::{self, CrowdForm};

use crate::bounds::{ANY, ANY_SHARED, PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, all_of, model};
use crate::forms::{Sleepy, Spinning};
use crate::program::{GAVE_UP, Program, retire, soon};

type Barrier<F> = wait::Barrier<Check, F>;
type Shared<F = Sleepy> = SharedBarrier<Check, F>;

pub fn entries() -> Vec<Entry> {
    all_of([own(), shared()])
}

fn own() -> Vec<Entry> {
    let gone = &["retired by one that waited"];
    let none = PLAIN.nodes(0);
    Subject("barrier").models([
        model("meets-2x1", meeting::<Barrier<Sleepy>>(2, 2, 1), PLAIN),
        model("meets-2x2", meeting::<Barrier<Sleepy>>(2, 2, 2), SPURIOUS),
        model("meets-3x1", meeting::<Barrier<Sleepy>>(3, 3, 1), PLAIN),
        model("meets-3x2", meeting::<Barrier<Sleepy>>(3, 3, 2), PLAIN).by_lot(3_000),
        model("meets-6x2", meeting::<Barrier<Sleepy>>(6, 6, 2), SPURIOUS).by_lot(1_000),
        model("meets-any-platform-2x2", meeting::<Barrier<Spinning>>(2, 2, 2), ANY),
        model("meets-any-platform-3x2", meeting::<Barrier<Spinning>>(3, 3, 2), ANY).by_lot(5_000),
        // More threads than `parties`: rounds overlap.
        model("meets-overlapping-4x1", meeting::<Barrier<Sleepy>>(4, 2, 1), PLAIN).by_lot(10_000),
        model("gives-up-1+1", trying(1, 1, 2), TIMED).reaches(GAVE_UP),
        model("gives-up-2+0", trying(2, 0, 2), TIMED).by_lot(5_000).reaches(GAVE_UP),
        model("gives-up-1+2", trying(1, 2, 3), TIMED).by_lot(5_000).reaches(GAVE_UP),
        model("gives-up-3+0", trying(3, 0, 3), PLAIN.timeouts(2)).by_lot(5_000).reaches(GAVE_UP),
        model("gives-up-spuriously-1+1", trying(1, 1, 2), TIMED.spurious(1)),
        model("gives-up-overlapping-2+2", trying(2, 2, 2), TIMED).by_lot(5_000).reaches(GAVE_UP),
        model("gives-up-overlapping-4+0", trying(4, 0, 2), TIMED).by_lot(5_000).reaches(GAVE_UP),
        model("gives-up-without-node-1+1", trying(1, 1, 2), TIMED.nodes(0)).reaches(GAVE_UP),
        model("gives-up-with-one-node-1+1", trying(1, 1, 2), TIMED.nodes(1)),
        model("exhausted-2x1", meeting::<Barrier<Sleepy>>(2, 2, 1), none),
        model("exhausted-3x1", meeting::<Barrier<Sleepy>>(3, 3, 1), none),
        model("exhausted-but-one-3x1", meeting::<Barrier<Sleepy>>(3, 3, 1), PLAIN.nodes(1)),
        model("exhausted-but-one-3x2", meeting::<Barrier<Sleepy>>(3, 3, 2), PLAIN.nodes(1))
            .by_lot(5_000),
        model("destroyed-2x1", destroying(2), PLAIN).reaches(gone),
        model("destroyed-3x1", destroying(3), PLAIN).reaches(gone),
        model("destroyed-without-node-2x1", destroying(2), none).reaches(gone),
        model("destroyed-with-one-node-3x1", destroying(3), PLAIN.nodes(1)).reaches(gone),
        model("destroyed-timed-1+1", destroying_timed(), TIMED).reaches(gone),
        model("inherited-2x1", inherited(2, false), PLAIN),
        model("inherited-3x1", inherited(3, false), PLAIN).by_lot(3_000),
        model("inherited-timed-2x1", inherited(2, true), PLAIN),
        model("inherited-timed-3x1", inherited(3, true), PLAIN).by_lot(3_000),
        model("shipped-2x2", meeting::<Barrier<Standard>>(2, 2, 2), ANY),
        model("shipped-5x2", meeting::<Barrier<Standard>>(5, 5, 2), ANY).by_lot(2_000),
    ])
}

/// Those that processes share. Threads stand for processes.
fn shared() -> Vec<Entry> {
    Subject("shared-barrier").models([
        model("meets-2x2", meeting::<Shared>(2, 2, 2), SPURIOUS),
        model("meets-3x1", meeting::<Shared>(3, 3, 1), PLAIN),
        model("meets-any-platform-2x1", meeting::<Shared<Spinning>>(2, 2, 1), ANY_SHARED),
        model("meets-shipped-3x2", meeting::<Shared<Standard>>(3, 3, 2), ANY_SHARED).by_lot(3_000),
        // More threads than `parties`: rounds overlap.
        model("meets-overlapping-4x1", meeting::<Shared>(4, 2, 1), PLAIN).by_lot(5_000),
        model("gives-up-1+1", shared_giving_up(1), TIMED).reaches(GAVE_UP),
        model("gives-up-1+2", shared_giving_up(2), TIMED).by_lot(5_000).reaches(GAVE_UP),
        model("last-destroys-2x1", shared_destroying(), PLAIN).reaches(&["retired"]),
    ])
}

/// A barrier of any kind.
pub trait Meet: Sync + 'static {
    /// Creates a barrier for `parties` threads.
    fn of(parties: u32) -> Self;

    /// Waits for the others; returns `true` for the leader.
    fn meet(&self) -> bool;
}

impl<F: CrowdForm> Meet for Barrier<F> {
    fn of(parties: u32) -> Self {
        Self::new(parties)
    }

    fn meet(&self) -> bool {
        self.wait()
    }
}

impl<F: Form> Meet for Shared<F> {
    fn of(parties: u32) -> Self {
        Self::new(parties)
    }

    fn meet(&self) -> bool {
        self.wait()
    }
}

/// The work of a thread in each round: it writes its own part, then checks the others' parts.
pub fn meeting<B: Meet>(threads: u32, parties: u32, rounds: u32) -> Program {
    Program::new(threads, threads * rounds, move |scope| {
        let barrier = scope.share(B::of(parties));
        let each = || (0..threads).map(|_| Data::new(false)).collect::<Vec<_>>();
        let parts = scope.share((0..rounds).map(|_| each()).collect::<Vec<_>>());
        let leaders = scope.share((0..rounds).map(|_| each()).collect::<Vec<_>>());
        scope.spawn_each(0..threads as usize, move |me| {
            for (parts, leaders) in parts.iter().zip(leaders) {
                parts[me].set(true);
                leaders[me].set(barrier.meet());
                if parties == threads {
                    assert!(parts.iter().all(Data::get), "all have come");
                }
            }
        });
        scope.finally(move || {
            for leaders in leaders {
                let leaders = leaders.iter().filter(|leader| leader.get()).count();
                assert_eq!(leaders as u32, threads / parties, "one leader a round");
            }
        });
    })
}

/// BARRIER-4: some threads may give up, and then come again. If there are as many threads as
/// `parties`, each sees what all have done. Must reach `gave up`.
fn trying(timed: u32, patient: u32, parties: u32) -> Program {
    let threads = timed + patient;
    Program::new(threads, threads + timed, move |scope| {
        let barrier = scope.share(Barrier::<Sleepy>::new(parties));
        let each = || (0..threads).map(|_| Data::new(false)).collect::<Vec<_>>();
        let (parts, leaders) = (scope.share(each()), scope.share(each()));
        scope.spawn_each(0..threads as usize, move |me| {
            parts[me].set(true);
            let told = (me < timed as usize).then(|| barrier.wait_until(soon()));
            if told == Some(None) {
                antiphon_check::probe("gave up");
            }
            leaders[me].set(told.flatten().unwrap_or_else(|| barrier.wait()));
            if parties == threads {
                assert!(parts.iter().all(Data::get), "all have come");
            }
        });
        scope.finally(move || {
            let leaders = leaders.iter().filter(|leader| leader.get()).count();
            assert_eq!(leaders as u32, threads / parties, "one leader a round");
        });
    })
}

/// BARRIER-3, of a thread that waits with a deadline: the other thread frees the barrier. Must
/// reach `retired by one that waited`.
fn destroying_timed() -> Program {
    Program::new(2, 3, |scope| {
        let barrier = scope.share(Barrier::<Sleepy>::new(2));
        scope.spawn(move || {
            if barrier.wait_until(soon()).is_none() {
                barrier.wait();
            }
        });
        scope.spawn(move || {
            let leads = barrier.wait();
            barrier.retire();
            antiphon_check::retire(barrier);
            if !leads {
                antiphon_check::probe("retired by one that waited");
            }
        });
    })
}

/// BARRIER-3: a thread that has returned frees the barrier. Must reach `retired by one that
/// waited`.
fn destroying(threads: u32) -> Program {
    Program::new(threads, threads, move |scope| {
        let barrier = scope.share(Barrier::<Sleepy>::new(threads));
        scope.spawn_each(0..threads, move |me| {
            let leads = barrier.wait();
            if me == 0 {
                barrier.retire();
                antiphon_check::retire(barrier);
                if !leads {
                    antiphon_check::probe("retired by one that waited");
                }
            }
        });
    })
}

/// Layout of a barrier's words.
#[repr(C, align(8))]
struct Words {
    state: <Check as Atomics>::U64,
    lookers: <Check as Atomics>::U32,
    parties: u32,
    lock: u64,
    first: <Check as Atomics>::U32,
    last: <Check as Atomics>::U32,
}

const _: () = assert!(size_of::<Words>() == size_of::<Barrier<Sleepy>>());

/// In the child of a fork: threads of the parent wait in the middle of a round, with nodes and
/// without, or all with a deadline. The child's threads still meet; if `timed`, one of them with a
/// deadline.
fn inherited(threads: u32, timed: bool) -> Program {
    /// An index that the parent has used, and that the child's arena will not hand out.
    const STALE: u32 = 40;
    const LISTED: u64 = 1 << 22;
    Program::new(threads, threads, move |scope| {
        let barrier = scope.share(Barrier::<Sleepy>::new(threads));
        let came = scope.share(Data::new(0));
        // SAFETY: `Words` has the layout that the barrier's file defines; the barrier lives as long
        // as the borrow.
        let words = unsafe { &*std::ptr::from_ref(barrier).cast::<Words>() };
        let waiters = if timed { LISTED } else { STALE.into() };
        words.state.store((u64::from(threads) * 3 + 1) << 23 | waiters, Relaxed);
        words.lookers.store((Check::epoch() + 1) << 22 | 1, Relaxed);
        if timed {
            let stranger = WaiterId::new(Check::epoch() + 1, STALE).bits();
            words.first.store(stranger, Relaxed);
            words.last.store(stranger, Relaxed);
        }
        scope.spawn_each(0..threads, move |me| {
            let leads = match timed && me == 0 {
                true => barrier.wait_until(soon()) == Some(true),
                false => barrier.wait(),
            };
            if leads {
                came.set(threads);
            }
            barrier.retire();
        });
        scope.finally(move || assert_eq!(came.get(), threads));
    })
}

/// `others` meet one thread that may give up, and then comes again and stays. If a thread that gave
/// up is still counted, a round has too few, and the last thread waits for ever. Must reach `gave
/// up`.
fn shared_giving_up(others: u32) -> Program {
    Program::new(others + 1, others + 2, move |scope| {
        let barrier = scope.share(Shared::<Sleepy>::new(others + 1));
        let came = scope.share(Data::new(0));
        let parts = scope.share((0..others).map(|_| Data::new(false)).collect::<Vec<_>>());
        scope.spawn(move || {
            came.set(1);
            if barrier.wait_until(soon()).is_none() {
                antiphon_check::probe("gave up");
                came.set(2);
                barrier.wait();
            }
            assert!(parts.iter().all(Data::get), "all have come");
        });
        scope.spawn_each(parts, move |part| {
            part.set(true);
            barrier.wait();
            assert!(came.get() > 0, "all have come");
        });
    })
}

/// SHARED-5: the thread that has seen the round end frees the barrier while the last may still be
/// in its `wait`. Must reach `retired`.
fn shared_destroying() -> Program {
    Program::new(2, 2, |scope| {
        let barrier = scope.share(Shared::<Sleepy>::new(2));
        scope.spawn_each(0..2, move |_| {
            if !barrier.wait() {
                retire(barrier);
            }
        });
    })
}

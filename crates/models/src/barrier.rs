//! The barrier: all or nobody, one leader, and gone as soon as anybody is back.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data};
use antiphon_platform::{Atomic, Platform};
use antiphon_sync::lock::Standard;
use antiphon_sync::wait::{self, CrowdForm};

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::forms::{Sleepy, Spinning};
use crate::program::Program;

type Barrier<F> = wait::Barrier<Check, F>;

const PLAIN: Bounds = Bounds::PLAIN;
const ANY: Bounds = PLAIN.spurious(1).crowded(1).expiries(1);

pub fn entries() -> Vec<Entry> {
    let gone = &["retired by one that waited"];
    let none = PLAIN.nodes(0);
    vec![
        Entry::new("barrier/meets-2x1", meeting::<Barrier<Sleepy>>(2, 2, 1), PLAIN),
        Entry::new("barrier/meets-2x2", meeting::<Barrier<Sleepy>>(2, 2, 2), PLAIN.spurious(1)),
        Entry::new("barrier/meets-3x1", meeting::<Barrier<Sleepy>>(3, 3, 1), PLAIN),
        Entry::new("barrier/meets-3x2", meeting::<Barrier<Sleepy>>(3, 3, 2), PLAIN).by_lot(3_000),
        Entry::new("barrier/meets-6x2", meeting::<Barrier<Sleepy>>(6, 6, 2), PLAIN.spurious(1))
            .by_lot(1_000),
        Entry::new("barrier/meets-any-platform-2x2", meeting::<Barrier<Spinning>>(2, 2, 2), ANY),
        Entry::new("barrier/meets-any-platform-3x2", meeting::<Barrier<Spinning>>(3, 3, 2), ANY)
            .by_lot(5_000),
        // More threads than it waits for: rounds overlap.
        Entry::new("barrier/meets-overlapping-4x1", meeting::<Barrier<Sleepy>>(4, 2, 1), PLAIN)
            .by_lot(10_000),
        Entry::new("barrier/exhausted-2x1", meeting::<Barrier<Sleepy>>(2, 2, 1), none),
        Entry::new("barrier/exhausted-3x1", meeting::<Barrier<Sleepy>>(3, 3, 1), none),
        Entry::new(
            "barrier/exhausted-but-one-3x1",
            meeting::<Barrier<Sleepy>>(3, 3, 1),
            PLAIN.nodes(1),
        ),
        Entry::new(
            "barrier/exhausted-but-one-3x2",
            meeting::<Barrier<Sleepy>>(3, 3, 2),
            PLAIN.nodes(1),
        )
        .by_lot(5_000),
        Entry::new("barrier/destroyed-2x1", destroying(2), PLAIN).reaches(gone),
        Entry::new("barrier/destroyed-3x1", destroying(3), PLAIN).reaches(gone),
        Entry::new("barrier/destroyed-without-node-2x1", destroying(2), none).reaches(gone),
        Entry::new("barrier/destroyed-with-one-node-3x1", destroying(3), PLAIN.nodes(1))
            .reaches(gone),
        Entry::new("barrier/inherited-2x1", inherited(2), PLAIN),
        Entry::new("barrier/inherited-3x1", inherited(3), PLAIN).by_lot(3_000),
        Entry::new("barrier/shipped-2x2", meeting::<Barrier<Standard>>(2, 2, 2), ANY),
        Entry::new("barrier/shipped-5x2", meeting::<Barrier<Standard>>(5, 5, 2), ANY).by_lot(2_000),
    ]
}

/// A barrier of whatever kind.
pub trait Meet: Sync + 'static {
    /// One for so many threads.
    fn of(parties: u32) -> Self;

    /// Waits for the others; `true` for the leader.
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

/// What one of the threads does in each round: its part, then a look at the others'.
pub fn meeting<B: Meet>(threads: u32, parties: u32, rounds: u32) -> Program {
    Program::new(threads, threads * rounds, move |scope| {
        let barrier = scope.share(B::of(parties));
        let each = || (0..threads).map(|_| Data::new(false)).collect::<Vec<_>>();
        let parts = scope.share((0..rounds).map(|_| each()).collect::<Vec<_>>());
        let leaders = scope.share((0..rounds).map(|_| each()).collect::<Vec<_>>());
        for me in 0..threads as usize {
            scope.spawn(move || {
                for (parts, leaders) in parts.iter().zip(leaders) {
                    parts[me].set(true);
                    leaders[me].set(barrier.meet());
                    if parties == threads {
                        assert!(parts.iter().all(Data::get), "all have come");
                    }
                }
            });
        }
        scope.finally(move || {
            for leaders in leaders {
                let leaders = leaders.iter().filter(|leader| leader.get()).count();
                assert_eq!(leaders as u32, threads / parties, "one leader a round");
            }
        });
    })
}

/// BARRIER-3: one that is back frees it. Has to reach `retired by one that waited`.
fn destroying(threads: u32) -> Program {
    Program::new(threads, threads, move |scope| {
        let barrier = scope.share(Barrier::<Sleepy>::new(threads));
        for me in 0..threads {
            scope.spawn(move || {
                let leads = barrier.wait();
                if me == 0 {
                    barrier.retire();
                    antiphon_check::retire(barrier);
                    if !leads {
                        antiphon_check::probe("retired by one that waited");
                    }
                }
            });
        }
    })
}

/// The words of a barrier.
#[repr(C, align(8))]
struct Words {
    state: <Check as Platform>::U64,
    nappers: <Check as Platform>::U32,
    parties: u32,
}

const _: () = assert!(size_of::<Words>() == size_of::<Barrier<Sleepy>>());

/// In the child of a fork: threads of the parent wait in the middle of a round, with nodes and
/// without. Those of the child meet all the same.
fn inherited(threads: u32) -> Program {
    /// An index that the parent has used, and that the child's arena will not hand out.
    const STALE: u64 = 40;
    Program::new(threads, threads, move |scope| {
        let barrier = scope.share(Barrier::<Sleepy>::new(threads));
        let came = scope.share(Data::new(0));
        // SAFETY: the words of a barrier, of the sizes and in the places that its file gives them;
        // it lives as long as the borrow.
        let words = unsafe { &*std::ptr::from_ref(barrier).cast::<Words>() };
        words.state.store((u64::from(threads) * 3 + 1) << 22 | STALE, Relaxed);
        words.nappers.store((Check::epoch() + 1) << 22 | 1, Relaxed);
        for _ in 0..threads {
            scope.spawn(move || {
                if barrier.wait() {
                    came.set(threads);
                }
                barrier.retire();
            });
        }
        scope.finally(move || assert_eq!(came.get(), threads));
    })
}

//! The fence of a head that is about to sleep where unlocks are light; one fence serves all heads
//! that have named themselves before it began.
//!
//! A heavy fence interrupts every CPU that runs the process, so the platform grants only a limited
//! number of them per second. A head that is refused a fence sleeps in short naps, which double,
//! until a fence has ended that began after the head named itself: its own, or another head's. Then
//! it sleeps like any other head.
//!
//! - FENCE-1: fences are numbered as they begin, by a count (`fences_begun`). A head names itself,
//!   and then takes the number of the next fence as its mark. The head and the fence both access
//!   the count by a read-modify-write, so one of the two comes first: a fence that does not see the
//!   head's access has a number below the mark, and a fence that sees it began after the name was
//!   there. A mark that was merely loaded, behind a light fence, would not do: a heavy fence
//!   reaches CPUs one by one, and after it has passed a CPU a section could begin there before the
//!   name has left the head's CPU.
//! - FENCE-2: `fences_done` is one more than such a number, stored when that fence was over. So a
//!   head that finds it above its mark has been fenced.
//! - FENCE-3: the name stays until the headship ends, so one fence is enough for all sleeps of one
//!   headship: sections that begin later see the name. A head whose name was taken away for a
//!   moment (`urgent.rs`) begins anew.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Platform};

use crate::arena;

/// The first nap of a head without a fence.
const NAP_NS: u64 = 1_000_000;
/// How many times naps double: up to about a second.
const DOUBLINGS: u32 = 10;

/// What a head knows of fences, during one headship.
pub(super) struct Fence {
    mark: Option<u32>,
    /// Whether a fence has passed after the head named itself.
    passed: bool,
    naps: u32,
}

impl Fence {
    pub(super) const NEW: Self = Self { mark: None, passed: false, naps: 0 };

    /// Returns whether each owner that is about to release lightly has done so, or will see the
    /// name of the caller. The caller is the head and has just named itself.
    pub(super) fn passes<P: Platform>(&mut self) -> bool {
        self.passed = self.passed || !P::fenced() || self.shared::<P>() || self.own::<P>();
        self.passed
    }

    /// Returns whether another head's fence has served the caller too.
    fn shared<P: Platform>(&mut self) -> bool {
        let arena = arena::<P>();
        let mark = *self.mark.get_or_insert_with(|| {
            // FENCE-1. Release: our name; pairs with `own`.
            arena.fences_begun.fetch_or(0, Release)
        });
        // Acquire: FENCE-2, the stores of the light sections before that fence; pairs with `own`.
        is_above(arena.fences_done.load(Acquire), mark)
    }

    fn own<P: Platform>(&self) -> bool {
        let arena = arena::<P>();
        // FENCE-1. Relaxed: the heavy fence is the caller's as well. With it this acquires the
        // names of the heads whose marks are this number or below; pairs with the release in
        // `shared`.
        let number = arena.fences_begun.fetch_add(1, Relaxed);
        if P::heavy_fence().is_err() {
            return false;
        }
        let done = number.wrapping_add(1);
        let mut seen = arena.fences_done.load(Relaxed);
        while is_above(done, seen) {
            // Relaxed: a release by the heavy fence before it; pairs with the acquire in `shared`.
            match arena.fences_done.compare_exchange(seen, done, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        true
    }

    /// Length of the next sleep without a fence, in nanoseconds.
    pub(super) fn nap_ns(&mut self) -> u64 {
        let ns = NAP_NS << self.naps;
        self.naps = (self.naps + 1).min(DOUBLINGS);
        ns
    }
}

/// Returns whether `this` is later than `that`, of numbers that wrap around.
fn is_above(this: u32, that: u32) -> bool {
    this.wrapping_sub(that).wrapping_sub(1) < 1 << 31
}

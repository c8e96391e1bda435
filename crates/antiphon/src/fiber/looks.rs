//! The looks at the clock of a thread with fibers, and the time for which tasks have kept the
//! thread from its run queue.
//!
//! The thread looks between two turns, or when a timed fiber is suspended or continues. There is a
//! look each few turns; so two looks that are far apart show that one of these turns was long,
//! unless the thread has rested meanwhile.

use std::cell::Cell;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _};
use antiphon_runtime::flight::Pace;

/// The looks of a thread at the clock.
pub(super) struct Looks {
    /// The pace of looks, and the turn of the last one.
    pace: Cell<Pace>,
    turn: Cell<u32>,
    /// If two looks are further apart than this, a task has kept the thread from its run queue.
    hog_ns: u64,
    /// The total time for which tasks have kept the thread.
    kept_ns: Cell<u64>,
    /// Whether the thread rests, and when the last rest ended.
    rests: Cell<bool>,
    resumed_ns: Cell<u64>,
}

/// Approximate longest time between two looks at the clock, in nanoseconds.
const LOOK_NS: u64 = 50_000;
/// Maximum number of turns between two looks at the clock.
const LOOK_EVERY: u32 = 256;

impl Looks {
    pub(super) fn new(hog_ns: u64) -> Self {
        let pace = Cell::new(Pace::new(LOOK_NS, LOOK_EVERY));
        let (turn, rests) = (Cell::new(0), Cell::new(false));
        let [kept_ns, resumed_ns] = [const { Cell::new(0) }; 2];
        Self { pace, turn, hog_ns, kept_ns, rests, resumed_ns }
    }

    /// Returns the turn of the last look.
    #[inline]
    pub(super) fn turn(&self) -> u32 {
        self.turn.get()
    }

    /// Looks at the clock, in that turn. Returns the time, and the number of turns to the next
    /// look.
    pub(super) fn look(&self, turn: u32) -> (u64, u32) {
        let (now, mut pace) = (Linux::now(Clock::Monotonic), self.pace.get());
        let passed = now.saturating_sub(pace.looked_ns());
        // There was no task before the first look.
        if passed > self.hog_ns && pace.looked_ns() > 0 && !self.rests.get() {
            self.kept_ns.set(self.kept_ns.get() + passed);
        }
        let next = pace.look(now, turn.wrapping_sub(self.turn.get()));
        self.pace.set(pace);
        self.turn.set(turn);
        (now, next)
    }

    /// Returns the time of the last look, or of the end of the last rest.
    pub(super) fn looked_ns(&self) -> u64 {
        self.pace.get().looked_ns()
    }

    /// Returns the total time for which tasks have kept the thread from its run queue; only long
    /// tasks count.
    pub(super) fn kept_ns(&self) -> u64 {
        self.kept_ns.get()
    }

    /// Returns the part of the time from `from` to `now`, in which a woken fiber was not found yet,
    /// for which a task has kept the thread.
    pub(super) fn hogged_ns(&self, from: u64, now: u64) -> u64 {
        let passed = now.saturating_sub(from.max(self.resumed_ns.get()));
        if passed > self.hog_ns && !self.rests.get() { passed } else { 0 }
    }

    /// Runs `rest`, in which the thread rests.
    pub(super) fn resting<R>(&self, rest: impl FnOnce() -> R) -> R {
        struct Over<'a>(&'a Cell<bool>);

        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.set(false);
            }
        }

        self.rests.set(true);
        // Also if `rest` panics, as a policy may.
        let _over = Over(&self.rests);
        rest()
    }

    /// Records that the thread has rested, or looked for tasks elsewhere, until `at`, and is in
    /// that turn.
    pub(super) fn resumed(&self, at: u64, turn: u32) {
        self.resumed_ns.set(at);
        let mut pace = self.pace.get();
        if at > pace.looked_ns() {
            pace.resume(at);
            self.pace.set(pace);
            self.turn.set(turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleep() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }

    #[test]
    fn what_keeps_a_thread_is_told_from_its_rest() {
        let looks = Looks::new(1_000_000);
        looks.resumed(looks.look(1).0, 1);
        sleep();
        let (now, _) = looks.look(2);
        let kept_ns = looks.kept_ns();
        assert!(kept_ns >= 2_000_000, "{kept_ns}");
        assert!(looks.hogged_ns(now - 2_000_000, now) >= 2_000_000);
        // Only time after the end of the last rest counts as kept.
        looks.resumed(now, 2);
        assert_eq!(looks.hogged_ns(now - 2_000_000, now), 0);
        looks.resting(sleep);
        let rested = Linux::now(Clock::Monotonic);
        looks.resumed(rested, 3);
        assert_eq!(looks.kept_ns(), kept_ns);
        assert_eq!(looks.turn(), 3);
    }
}

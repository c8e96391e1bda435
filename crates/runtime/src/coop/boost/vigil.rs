//! A thread that sleeps until a given time, and is woken only for an earlier one.

use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, AtomicInteger, Clock, Deadline, SharedWait};

use crate::lines::Lines;

/// The time of a release that never comes.
pub const NEVER: u64 = u64::MAX - 1;

/// The state shared by one thread that sleeps and all threads that have news for it.
///
/// | word | written by | meaning |
/// |---|---|---|
/// | `until` | the sleeper | until when it sleeps; 0: it is awake, and checks before it sleeps |
/// | `bell` | a thread with news | how often it was rung |
///
/// - VIGIL-1 (nothing is overslept): a thread with news writes it and then reads `until`; the
///   sleeper writes `until` and then checks for news. Both have a fence in between, so at least one
///   sees the other.
/// - VIGIL-2: a thread that sees that the sleeper sleeps for longer changes `bell`, which the
///   sleeper has read before its check: so the sleeper does not fall asleep, or is woken.
pub struct Vigil<P: SharedWait> {
    until: Lines<P::U64>,
    bell: Lines<P::U32>,
}

impl<P: SharedWait> Vigil<P> {
    /// A vigil whose sleeper is awake.
    pub const NEW: Self = Self { until: Lines(P::U64::ZERO), bell: Lines(P::U32::ZERO) };

    /// Reports news, which was written before and is due at `at_ns`: wakes the sleeper if that is
    /// earlier than its wake-up time. Does not block.
    pub fn tell(&self, at_ns: u64) {
        // VIGIL-1; pairs with the fence in `settle`.
        P::fence(SeqCst);
        // Relaxed: ordered by the fence.
        if at_ns < self.until.0.load(Relaxed) {
            self.ring();
        }
    }

    /// Wakes the sleeper, or makes its next sleep end at once. Does not block.
    pub fn ring(&self) {
        // Release: the news; pairs with the fence in `settle`.
        self.bell.0.fetch_add(1, Release);
        P::wake_shared(&raw const self.bell.0, 1);
    }

    /// Checks for news, and sleeps until the time that `look` returns ([`NEVER`]: no limit), or
    /// until there is more news. `look` is called until it returns no earlier time than before.
    ///
    /// May be called by one thread at a time.
    pub fn sleep_by(&self, mut look: impl FnMut() -> u64) {
        // Relaxed: VIGIL-2. The fence in `settle`, before the last check, makes it an acquire of
        // the news of the thread that rang; pairs with the release in `ring`.
        let heard = self.bell.0.load(Relaxed);
        let mut next = look();
        loop {
            self.settle(next);
            match look() {
                sooner if sooner < next => next = sooner,
                _ => break,
            }
        }
        let deadline = (next < NEVER).then_some(Deadline { clock: Clock::Monotonic, ns: next });
        // The caller finds the reason for the wake-up by its next check.
        let _ = P::wait_shared(&self.bell.0, heard, deadline);
        // Relaxed: a thread that sees the old value rings once too often.
        self.until.0.store(0, Relaxed);
    }

    fn settle(&self, until_ns: u64) {
        // Relaxed: ordered by the fence.
        self.until.0.store(until_ns, Relaxed);
        // VIGIL-1; pairs with the fence in `tell`.
        P::fence(SeqCst);
    }
}

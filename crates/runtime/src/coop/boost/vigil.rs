//! A thread that sleeps until something is due, and is told only of what is due before that.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, AtomicInteger, Clock, Deadline, SharedWait};

use crate::lines::Lines;

/// Nothing is due, ever.
pub const NEVER: u64 = u64::MAX - 1;

/// Between one thread that sleeps and all that have news for it.
///
/// | word | written by | meaning |
/// |---|---|---|
/// | `until` | the sleeper | until when it sleeps; 0: it is awake, and looks before it sleeps |
/// | `bell` | who has news | how often it was called |
///
/// - VIGIL-1 (nothing is overslept): who has news writes it and then reads `until`, and the sleeper
///   writes `until` and then looks for news; with a fence in between at both, one sees the other.
/// - VIGIL-2: who sees that the sleeper sleeps for longer changes `bell`, which the sleeper has
///   read before it looked: so it does not fall asleep, or is woken.
pub struct Vigil<P: SharedWait> {
    until: Lines<P::U64>,
    bell: Lines<P::U32>,
}

impl<P: SharedWait> Vigil<P> {
    /// Whose sleeper is awake.
    pub const NEW: Self = Self { until: Lines(P::U64::ZERO), bell: Lines(P::U32::ZERO) };

    /// There is news that was written before, and is due at `at_ns`: wakes the sleeper if that is
    /// before it would wake anyhow. Does not block.
    pub fn tell(&self, at_ns: u64) {
        // VIGIL-1; pairs with the fence in `settle`.
        P::fence(SeqCst);
        // Relaxed: by the fence.
        if at_ns < self.until.0.load(Relaxed) {
            self.ring();
        }
    }

    /// Wakes the sleeper, now or from its next sleep. Does not block.
    pub fn ring(&self) {
        // Release: the news; pairs with the acquire in `sleep_by`.
        self.bell.0.fetch_add(1, Release);
        P::wake_shared(&raw const self.bell.0, 1);
    }

    /// Looks for news, and sleeps until the time that `look` returns ([`NEVER`]: for good), or
    /// there is more. `look` is called until it finds nothing that is due earlier than it said
    /// before.
    ///
    /// For one thread at a time.
    pub fn sleep_by(&self, mut look: impl FnMut() -> u64) {
        // Acquire: VIGIL-2, the news of who has rung; pairs with the release in `ring`.
        let heard = self.bell.0.load(Acquire);
        let mut next = look();
        loop {
            self.settle(next);
            match look() {
                sooner if sooner < next => next = sooner,
                _ => break,
            }
        }
        let deadline = (next < NEVER).then_some(Deadline { clock: Clock::Monotonic, ns: next });
        // Why it ended is seen by looking.
        let _ = P::wait_shared(&self.bell.0, heard, deadline);
        // Relaxed: who sees the old value rings once too often.
        self.until.0.store(0, Relaxed);
    }

    fn settle(&self, until_ns: u64) {
        // Relaxed: by the fence.
        self.until.0.store(until_ns, Relaxed);
        // VIGIL-1; pairs with the fence in `tell`.
        P::fence(SeqCst);
    }
}

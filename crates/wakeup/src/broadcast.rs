//! Broadcasts: a counter for each action that can be broadcast, which each CPU compares with what
//! it has seen.
//!
//! - REACH-1: a broadcast is one addition to the counter of its action, and then one to `total`; a
//!   CPU that sees the second sees the first. It runs the action once for each addition that it has
//!   not seen, so no broadcast is merged with another.
//! - REACH-2: the sender's CPU counts its own broadcasts as seen. Interrupts are off meanwhile, so
//!   that it does not run them in between.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Atomics};

/// The number of broadcasts, in total and of each action.
pub struct Broadcasts<A: Atomics, const N: usize> {
    total: A::U32,
    counters: [A::U32; N],
}

/// The numbers of broadcasts that a CPU has seen. Only that CPU writes them, with interrupts off.
pub struct Seen<A: Atomics, const N: usize> {
    total: A::U32,
    counters: [A::U32; N],
}

impl<A: Atomics, const N: usize> Seen<A, N> {
    /// The numbers of a CPU that has seen no broadcast.
    pub const NEW: Self = Self { total: A::U32::ZERO, counters: [const { A::U32::ZERO }; N] };
}

impl<A: Atomics, const N: usize> Broadcasts<A, N> {
    /// The counters before the first broadcast.
    pub const NEW: Self = Self { total: A::U32::ZERO, counters: [const { A::U32::ZERO }; N] };

    /// Broadcasts an action to all CPUs but the caller's; `own` are that CPU's numbers. The caller
    /// then sends the others an interrupt. Called with interrupts off.
    #[inline]
    pub fn send(&self, action: usize, own: &Seen<A, N>) {
        // Release: the sender's past; pairs with the acquire of the counter in `take`.
        self.counters[action].fetch_add(1, Release);
        // Release: REACH-1, the counter; pairs with the acquire of the total in `take`.
        self.total.fetch_add(1, Release);
        // REACH-2.
        advance::<A>(&own.counters[action]);
        advance::<A>(&own.total);
    }

    /// Handles the interrupt: calls `run` for each broadcast that the CPU has not seen. Called by
    /// the CPU itself, with interrupts off.
    #[inline]
    pub fn take(&self, seen: &Seen<A, N>, run: impl FnMut(usize)) {
        // Acquire: REACH-1, the counters; pairs with the release in `send`.
        let total = self.total.load(Acquire);
        // Relaxed: only this CPU writes it.
        if total != seen.total.load(Relaxed) {
            seen.total.store(total, Relaxed);
            self.take_new(seen, run);
        }
    }

    fn take_new(&self, seen: &Seen<A, N>, mut run: impl FnMut(usize)) {
        for (action, seen) in seen.counters.iter().enumerate() {
            // Acquire: the sender's past; pairs with the release in `send`.
            let now = self.counters[action].load(Acquire);
            // Relaxed: only this CPU writes it.
            let before = seen.load(Relaxed);
            if now != before {
                seen.store(now, Relaxed);
            }
            for _ in 0..now.wrapping_sub(before) {
                run(action);
            }
        }
    }

    /// Waits until all CPUs have seen the broadcasts of an action so far: each CPU is about to run
    /// the action, or has begun. Called with interrupts on, outside of the handler.
    pub fn wait<'a>(&self, action: usize, all: impl Iterator<Item = &'a Seen<A, N>>) {
        // Relaxed, both: the fence in `Table::unregister` orders them.
        let sent = self.counters[action].load(Relaxed);
        for seen in all {
            let is_behind = |seen: u32| (sent.wrapping_sub(seen) as i32) > 0;
            seen.counters[action].wait_while(Relaxed, is_behind);
        }
    }
}

/// Adds 1 to a word that only the caller writes.
#[inline]
fn advance<A: Atomics>(word: &A::U32) {
    // Relaxed: only the caller's CPU writes it.
    word.store(word.load(Relaxed).wrapping_add(1), Relaxed);
}

//! The atomic words of bare metal: those of `core`. A wait spins with `pause`, and after a while
//! lets the other threads of its CPU run: it may wait for one of them.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use antiphon_platform::{Atomic, Budget, CoreWord, Spins, Word};

use crate::kernel::schedule;
use crate::x86::clock;
use crate::x86::cpu::tsc_unordered;

/// Spins until `look` returns a value, or until `budget` is spent.
#[inline]
fn spin<T>(budget: Budget, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    if let Some(found) = look() {
        return Some(found);
    }
    if budget.ns == 0 {
        return None;
    }
    let end = tsc_unordered() + clock::ticks(budget.ns.into());
    // With backoff, the time between two looks doubles each time, up to 1024 pauses.
    let mut pause = budget.backoff.map_or(1, |ns| ns.max(1));
    loop {
        for _ in 0..if budget.backoff.is_some() { pause.min(1 << 10) } else { 1 } {
            core::hint::spin_loop();
        }
        if let Some(found) = look() {
            return Some(found);
        }
        if tsc_unordered() >= end {
            return None;
        }
        pause = pause.saturating_mul(2);
    }
}

/// An atomic byte.
pub type U8 = CoreWord<AtomicU8, Spinning>;
/// An atomic half word.
pub type U16 = CoreWord<AtomicU16, Spinning>;
/// An atomic word.
pub type U32 = CoreWord<AtomicU32, Spinning>;
/// An atomic double word.
pub type U64 = CoreWord<AtomicU64, Spinning>;

/// How a thread on bare metal spins.
#[derive(Debug)]
pub struct Spinning;

impl Spins for Spinning {
    #[inline]
    fn wait_while<W: Word>(word: &impl Atomic<W>, order: Ordering, keep: impl Fn(W) -> bool) -> W {
        let look = || Some(word.load(order)).filter(|&value| !keep(value));
        loop {
            if let Some(value) = spin(Budget::PATIENCE, look) {
                return value;
            }
            schedule::yield_now();
        }
    }

    #[inline]
    fn spin_while<W: Word>(
        word: &impl Atomic<W>,
        order: Ordering,
        budget: Budget,
        keep: impl Fn(W) -> bool,
    ) -> Result<W, W> {
        let mut last = word.load(order);
        let found = spin(budget, || {
            last = word.load(order);
            (!keep(last)).then_some(last)
        });
        found.ok_or(last)
    }
}

//! The slot of a CPU: the one action that it is asked to run, as in Nemo.
//!
//! | word | meaning |
//! |---|---|
//! | 0 | free: a sender may fill it |
//! | action + 1 | filled: an interrupt is on its way, and its handler empties the slot |
//!
//! An action has sixteen bits, as the number of a [name](crate::names) has, and so one more than
//! the last of them is not 0.
//!
//! - SLOT-1: a sender fills a free slot only, and sends one interrupt for it. So nothing is
//!   overwritten: in Nemo a second sender replaces the action of the first.
//! - SLOT-2: the handler empties the slot before it runs the action, so an interrupt that is sent
//!   for the next action is not merged with the one that it handles.
//! - SLOT-3: an action that was taken back is not run. Its interrupt finds the slot empty, or the
//!   next action, whose own interrupt then finds it empty.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Atomics};

const FREE: u32 = 0;

/// The slot of a CPU.
pub struct Slot<A: Atomics>(A::U32);

impl<A: Atomics> Slot<A> {
    /// A free slot.
    pub const NEW: Self = Self(A::U32::ZERO);

    /// Fills the slot, if it is free. Returns whether it was; the caller must then send an
    /// interrupt.
    #[inline]
    #[must_use]
    pub fn fill(&self, action: u16) -> bool {
        // Release: the sender's past; pairs with the acquire in `empty`.
        self.0.compare_exchange(FREE, filled(action), Release, Relaxed).is_ok()
    }

    /// Waits until the slot is free. Another sender may fill it first.
    pub fn wait(&self) {
        // Relaxed: `fill` checks again.
        self.0.wait_while(Relaxed, |word| word != FREE);
    }

    /// Empties the slot; returns the action that was in it. Called by the handler of its CPU.
    #[inline]
    pub fn empty(&self) -> Option<u16> {
        // Acquire: the sender's past; pairs with the release in `fill`.
        self.0.swap(FREE, Acquire).checked_sub(1).map(|action| action as u16)
    }

    /// Takes an action back, if it is there (SLOT-3).
    pub fn retract(&self, action: u16) {
        // Relaxed: it fails only if the handler, or another, has taken the action.
        let _ = self.0.compare_exchange(filled(action), FREE, Relaxed, Relaxed);
    }
}

/// The word of a slot with this action.
#[inline]
fn filled(action: u16) -> u32 {
    u32::from(action) + 1
}

//! Critical sections in a slot. The slot's thread calls these; each is a load and a store at most.

use std::sync::atomic::Ordering;

use crate::layout::Slot;

impl Slot {
    /// Begins a critical section. Sections may nest.
    pub fn enter(&self) {
        // Relaxed, here and below: the scheduler reads on this thread's CPU, in an interrupt of it
        // or after a switch from it.
        let depth = self.section.load(Ordering::Relaxed);
        self.section.store(depth + 1, Ordering::Relaxed);
    }

    /// Ends a critical section. Returns whether the thread is in none any more.
    pub fn leave(&self) -> bool {
        let depth = self.section.load(Ordering::Relaxed).saturating_sub(1);
        self.section.store(depth, Ordering::Relaxed);
        depth == 0
    }

    /// Returns whether a preemption was put off since the last call: then the thread should give
    /// its CPU away.
    #[must_use]
    pub fn take_wanted(&self) -> bool {
        let wanted = self.wanted.load(Ordering::Relaxed) != 0;
        if wanted {
            self.wanted.store(0, Ordering::Relaxed);
        }
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_nest_and_an_end_without_a_beginning_does_nothing() {
        let slot = Slot::default();
        slot.enter();
        slot.enter();
        assert_eq!(slot.section.load(Ordering::Relaxed), 2);
        assert_eq!([slot.leave(), slot.leave(), slot.leave()], [false, true, true]);
        assert_eq!(slot.section.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_wish_is_taken_once() {
        let slot = Slot::default();
        assert!(!slot.take_wanted());
        slot.wanted.store(1, Ordering::Relaxed);
        assert_eq!([slot.take_wanted(), slot.take_wanted()], [true, false]);
    }
}

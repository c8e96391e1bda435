//! The state word of the semaphore, unpacked.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0–31 | `permits` | the number of free permits, less the initial number |
//! | 32 | `WAKE` | the head sleeps: a release must wake it |
//! | 33 | `FAIR` | permits are kept for the head |
//! | 34–47 | `wanted` | how many the sleeping head wants; 16 383 means at least that many |
//! | 48–63 | `name` | low half of the index of the head, if it sleeps or was called |
//!
//! All of it is one word so that a thread that releases learns, by the same exchange, whether a
//! waiter must be woken and which (SEM-3).

const PERMITS: u64 = 0xFFFF_FFFF;
const WAKE: u64 = 1 << 32;
const FAIR: u64 = 1 << 33;
const WANTED_SHIFT: u32 = 34;
const WANTED_MOST: u32 = (1 << 14) - 1;
const WANTED: u64 = (WANTED_MOST as u64) << WANTED_SHIFT;
const NAME_SHIFT: u32 = 48;
const NAME: u64 = 0xFFFF << NAME_SHIFT;
/// The head's requests.
const HEADS: u64 = WAKE | FAIR | WANTED | NAME;

const _: () = assert!(PERMITS ^ HEADS == u64::MAX && PERMITS & HEADS == 0);

/// The most permits that a semaphore can have: as many as POSIX requires.
pub const MAX_PERMITS: u32 = i32::MAX as u32;

/// Which waiters a thread that wants permits must not overtake.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Heed {
    /// The head, if permits are kept for it.
    Head,
    /// No waiter.
    Nobody,
}

/// A value of the state word, in which `permits` is the number of free permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) struct State(u64);

impl State {
    /// Returns the state for a word that was zero with `first` permits.
    pub(super) fn of(word: u64, first: u32) -> Self {
        Self(word & HEADS | u64::from((word as u32).wrapping_add(first)))
    }

    /// Returns the word for this state: the inverse of [`of`](Self::of).
    pub(super) fn word(self, first: u32) -> u64 {
        self.0 & HEADS | u64::from((self.0 as u32).wrapping_sub(first))
    }

    pub(super) fn permits(self) -> u32 {
        self.0 as u32
    }

    fn with_permits(self, permits: u32) -> Self {
        Self(self.0 & HEADS | u64::from(permits))
    }

    pub(super) fn has(self, wanted: u32) -> bool {
        self.permits() >= wanted
    }

    pub(super) fn is_fair(self) -> bool {
        self.0 & FAIR != 0
    }

    /// Returns whether a head sleeps, or was called and has not come.
    pub(super) fn is_called(self) -> bool {
        self.0 & NAME != 0
    }

    /// Returns whether a release wakes a waiter.
    pub(super) fn is_to_be_woken(self) -> bool {
        self.0 & WAKE != 0
    }

    /// Returns whether a head was called and has not come, and permits are not kept for it.
    pub(super) fn is_overtaken(self) -> bool {
        self.is_called() && self.0 & (WAKE | FAIR) == 0
    }

    /// Returns the name of the waiter to wake.
    pub(super) fn calls(self) -> Option<u16> {
        (self.0 & WAKE != 0).then_some(self.name())
    }

    /// Returns the name of the head.
    pub(super) fn name(self) -> u16 {
        (self.0 >> NAME_SHIFT) as u16
    }

    /// Returns the state after `wanted` permits were taken; `None` if they can't be taken.
    pub(super) fn take(self, wanted: u32, heed: Heed) -> Option<Self> {
        let kept = heed == Heed::Head && self.is_fair();
        let left = self.permits().checked_sub(wanted)?;
        (!kept).then(|| self.with_permits(left))
    }

    /// Returns the state after `more` permits have come, and the waiter to wake; `None` if there
    /// would be too many.
    pub(super) fn release(self, more: u32) -> Option<(Self, Option<u16>)> {
        let permits = self.permits().checked_add(more).filter(|&all| all <= MAX_PERMITS)?;
        let after = self.with_permits(permits);
        // A head that others may overtake is called even for fewer permits than it wants, so that
        // its patience begins to run. A head that no other waiter may overtake has nothing to do
        // before there are enough.
        let wanted = ((self.0 & WANTED) >> WANTED_SHIFT) as u32;
        let called = self.calls().filter(|_| !self.is_fair() || permits >= wanted);
        Some((if called.is_some() { Self(after.0 & !WAKE) } else { after }, called))
    }

    /// Returns the state in which the head of this name must be woken, and wants `wanted` permits.
    pub(super) fn with_sleeper(self, name: u16, wanted: u32) -> Self {
        let wanted = u64::from(wanted.min(WANTED_MOST)) << WANTED_SHIFT;
        let others = self.0 & !(NAME | WANTED);
        Self(others | WAKE | wanted | u64::from(name) << NAME_SHIFT)
    }

    /// Returns the state after the head has come, or has given up: its requests are removed.
    pub(super) fn without_head(self) -> Self {
        Self(self.0 & !HEADS)
    }

    pub(super) fn with_fair(self) -> Self {
        Self(self.0 | FAIR)
    }

    /// Returns the state in which nothing is kept for the head any longer.
    pub(super) fn without_fair(self) -> Self {
        Self(self.0 & !FAIR)
    }

    /// Returns the state that `change` makes of this one, if it differs.
    pub(super) fn changed(self, change: impl Fn(Self) -> Self) -> Option<Self> {
        let new = change(self);
        (new != self).then_some(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(permits: u32) -> State {
        State::of(0, permits)
    }

    #[test]
    fn a_word_of_zero_has_the_first_permits_and_fields_do_not_touch_each_other() {
        for first in [0, 1, 7, MAX_PERMITS] {
            assert_eq!(State::of(0, first).permits(), first);
            let state = with(MAX_PERMITS).with_sleeper(0xFFFF, u32::MAX).with_fair();
            assert_eq!(State::of(state.word(first), first), state);
            assert_eq!((state.permits(), state.name()), (MAX_PERMITS, 0xFFFF));
            assert_eq!(state.without_head(), with(MAX_PERMITS));
        }
    }

    #[test]
    fn one_permit_too_many_is_refused() {
        assert!(with(MAX_PERMITS).release(1).is_none());
        assert!(with(1).release(u32::MAX).is_none());
        assert_eq!(with(1).release(MAX_PERMITS - 1), Some((with(MAX_PERMITS), None)));
    }

    #[test]
    fn what_is_not_there_or_kept_is_not_taken() {
        assert_eq!(with(2).take(2, Heed::Head), Some(with(0)));
        assert_eq!(with(2).take(3, Heed::Nobody), None);
        assert_eq!(with(2).with_fair().take(1, Heed::Head), None);
        assert!(with(2).with_fair().take(1, Heed::Nobody).is_some());
    }

    #[test]
    fn a_head_is_called_once_and_one_that_nobody_overtakes_for_enough() {
        let asleep = with(0).with_sleeper(7, 3);
        let (after, called) = asleep.release(1).expect("room");
        assert_eq!((called, after.permits(), after.name()), (Some(7), 1, 7));
        assert!(
            after.is_overtaken() && !asleep.is_overtaken() && !after.with_fair().is_overtaken()
        );
        assert_eq!(after.release(1).expect("room").1, None);
        let (two, called) = asleep.with_fair().release(2).expect("room");
        assert_eq!(called, None);
        assert_eq!(two.release(1).expect("room").1, Some(7));
        let many = with(0).with_sleeper(7, MAX_PERMITS).with_fair();
        assert_eq!(many.release(WANTED_MOST).expect("room").1, Some(7), "it asks again");
    }
}

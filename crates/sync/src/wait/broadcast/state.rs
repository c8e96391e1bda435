//! The state word of a broadcast, unpacked.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0–31 | generation | number of sends; wraps around |
//! | 32–39 | lists | the nodes with a list that a waiter sleeps on |
//! | 40–47 | sleepers | the nodes of which a waiter sleeps, or slept, on this word |
//! | 48–62 | count | number of sleepers on this word; saturates until the next send |
//! | 63 | crowd before | a crowd slept on this word until the generation began |
//!
//! For a waiter that sleeps on the word the kernel compares the low half, which changes with each
//! generation and by nothing else.

/// The largest number of nodes that a broadcast may have.
pub(super) const MOST_NODES: usize = 8;

/// A value of the word.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct State(pub(super) u64);

/// The number of sends; compare it only with others of the same broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(u64);

const LISTS: usize = 32;
const SLEEPERS: usize = 40;
const ONE: u64 = 1 << 48;
const COUNT: u64 = CROWD_BEFORE - ONE;
const CROWD_BEFORE: u64 = 1 << 63;
/// The bits of all nodes.
const NODES: u32 = (1 << MOST_NODES) - 1;

impl State {
    pub(super) fn generation(self) -> Generation {
        Generation(self.0 & u64::from(u32::MAX))
    }

    /// Returns the bits of nodes with a list that a waiter sleeps on.
    pub(super) fn lists(self) -> u32 {
        (self.0 >> LISTS) as u32 & NODES
    }

    /// Returns the bits of nodes of which a waiter sleeps, or slept, on the word; 0 if no waiter
    /// sleeps on it.
    pub(super) fn sleepers(self) -> u32 {
        (self.0 >> SLEEPERS) as u32 & NODES
    }

    /// Returns whether more than `alone` waiters of several nodes sleep on the word: if so, they
    /// wake each other.
    pub(super) fn is_crowd(self, alone: u32) -> bool {
        self.sleepers().count_ones() > 1 && self.count() > u64::from(alone)
    }

    /// Returns whether one more waiter may sleep on the word. Of several nodes, the limit is what
    /// the sender and the waiters that it wakes can wake.
    pub(super) fn has_room(self, alone: u32) -> bool {
        let most = u64::from(alone) * (u64::from(alone) + 1);
        self.sleepers().count_ones() <= 1 || self.count() < most
    }

    /// Returns whether the waiters that slept on the word with the generation before were a crowd.
    pub(super) fn crowd_before(self) -> bool {
        self.0 & CROWD_BEFORE != 0
    }

    /// Returns whether the sleepers of the generation `ended` were a crowd. May be wrongly `true`
    /// once that generation is longer ago.
    pub(super) fn by_crowd(self, ended: Generation) -> bool {
        self.generation() != ended.next() || self.crowd_before()
    }

    /// Returns the state after a send by a thread that wakes at most `alone` waiters by itself.
    pub(super) fn next(self, alone: u32) -> Self {
        let crowd = if self.is_crowd(alone) { CROWD_BEFORE } else { 0 };
        Self(self.generation().next().0 | crowd)
    }

    pub(super) fn with_list(self, node: usize) -> Self {
        Self(self.0 | 1 << (LISTS + node))
    }

    pub(super) fn without_list(self, node: usize) -> Self {
        Self(self.0 & !(1 << (LISTS + node)))
    }

    /// Returns the state with one more sleeper on the word, of this node.
    pub(super) fn with_sleeper(self, node: usize) -> Self {
        let more = if self.is_full() { 0 } else { ONE };
        Self((self.0 | 1 << (SLEEPERS + node)) + more)
    }

    /// Returns the state with one sleeper less on the word.
    pub(super) fn without_sleeper(self) -> Self {
        match self.0 & COUNT {
            _ if self.is_full() => self,
            ONE => Self((self.0 - ONE) & !(u64::from(NODES) << SLEEPERS)),
            _ => Self(self.0 - ONE),
        }
    }

    /// Returns the upper bound of the number of sleepers on the word; saturates at the largest
    /// count.
    fn count(self) -> u64 {
        (self.0 & COUNT) / ONE
    }

    /// Returns whether the count of sleepers is saturated.
    fn is_full(self) -> bool {
        self.0 & COUNT == COUNT
    }
}

impl Generation {
    /// Returns the number of sends from `earlier` to this generation, modulo 2³².
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        u64::from((self.0 as u32).wrapping_sub(earlier.0 as u32))
    }

    /// Returns the generation as a number, for storage where this type is not known.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Returns the generation of a number that [`to_bits`](Self::to_bits) returned. Any other
    /// number is a generation that has ended.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the tag that sleepers have in their nodes and on the word.
    pub(super) fn tag(self) -> u32 {
        self.0 as u32
    }

    /// Returns the generation before this one.
    pub(super) fn before(self) -> Self {
        Self(u64::from(self.tag().wrapping_sub(1)))
    }

    /// Returns the mark in `woken` which says that all waiters of this generation were woken.
    pub(super) fn mark(self) -> u64 {
        self.0 + 1
    }

    /// Returns the place in which a waiter sleeps on the word with this generation, for a thread
    /// that wakes it. Waiters of the next generation are in the other place; those of the
    /// generation after that are in this place again.
    pub(super) fn place(self) -> u32 {
        self.tag() & 1
    }

    fn next(self) -> Self {
        Self(u64::from(self.tag().wrapping_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sleeper_takes_the_bits_with_it() {
        let two = State(7).with_list(1).with_sleeper(0).with_sleeper(7);
        assert_eq!((two.sleepers(), two.lists()), (0b1000_0001, 0b10));
        let one = two.without_sleeper();
        assert_eq!(one.sleepers(), 0b1000_0001);
        assert!(one.without_sleeper() == State(7).with_list(1));
    }

    #[test]
    fn more_than_can_be_counted_are_there_until_the_next_send() {
        let full = State(COUNT - ONE).with_sleeper(3);
        let more = full.with_sleeper(2).without_sleeper().without_sleeper();
        assert_eq!(more.sleepers(), 0b1100);
        assert!(!more.crowd_before() && more.next(8) == State(CROWD_BEFORE | 1));
    }

    #[test]
    fn generations_begin_anew() {
        let last = State(u64::from(u32::MAX));
        assert_eq!(last.next(8).generation(), Generation::from_bits(0));
        assert_eq!(last.next(8).generation().since(last.generation()), 1);
        assert_eq!(last.next(8).generation().before(), last.generation());
        assert_ne!(last.generation().place(), last.next(8).generation().place());
    }

    #[test]
    fn a_crowd_is_of_several_nodes_and_more_than_one_wakes_alone() {
        let of = |nodes: usize, sleepers| {
            (0..sleepers).fold(State(0), |state, sleeper| state.with_sleeper(sleeper % nodes))
        };
        assert!(!of(1, 500).is_crowd(8) && of(1, 500).has_room(8));
        assert!(!of(2, 8).is_crowd(8) && of(2, 9).is_crowd(8));
        assert!(of(2, 71).has_room(8) && !of(2, 72).has_room(8));
        assert!(of(2, 500).has_room(u32::MAX), "who wakes all alone has room for all");
        assert!(
            of(2, 9).next(8).by_crowd(Generation(0)) && !of(2, 8).next(8).by_crowd(Generation(0))
        );
    }
}

//! The word of a broadcast.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0–31 | generation | how often was sent; begins anew at the end |
//! | 32–39 | lists | the nodes with a list that somebody sleeps on |
//! | 40–47 | sleepers | the nodes of which somebody sleeps, or did, on this word |
//! | 48–62 | count | how many do; the largest number is that or more, until the next send |
//! | 63 | heads | sleepers of more than one node waited for the generation to begin |
//!
//! Who sleeps on the word has the kernel compare the low half, which changes with each generation
//! and by nothing else.

/// The most nodes that a broadcast may have.
pub(super) const MOST_NODES: usize = 8;

/// A value of it.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct State(pub(super) u64);

/// How often was sent; to be compared with others of the same broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(u64);

const LISTS: usize = 32;
const SLEEPERS: usize = 40;
const ONE: u64 = 1 << 48;
const COUNT: u64 = HEADS - ONE;
const HEADS: u64 = 1 << 63;
/// The bits of all nodes.
pub(super) const ALL_NODES: u32 = (1 << MOST_NODES) - 1;

impl State {
    pub(super) fn generation(self) -> Generation {
        Generation(self.0 & u64::from(u32::MAX))
    }

    /// The bits of nodes that somebody sleeps at.
    pub(super) fn lists(self) -> u32 {
        (self.0 >> LISTS) as u32 & ALL_NODES
    }

    /// The bits of nodes of which somebody sleeps, or did, on the word; none if nobody does.
    pub(super) fn sleepers(self) -> u32 {
        (self.0 >> SLEEPERS) as u32 & ALL_NODES
    }

    /// Whether who slept on the word with the generation before was let go by the first of its
    /// node.
    pub(super) fn heads(self) -> bool {
        self.0 & HEADS != 0
    }

    /// … or with the generation `ended`. May be `true` though it is not so, once that is longer
    /// ago.
    pub(super) fn by_heads(self, ended: Generation) -> bool {
        self.generation() != ended.next() || self.heads()
    }

    /// After a send.
    pub(super) fn next(self) -> Self {
        let heads = if self.sleepers().count_ones() > 1 { HEADS } else { 0 };
        Self(self.generation().next().0 | heads)
    }

    pub(super) fn with_list(self, node: usize) -> Self {
        Self(self.0 | 1 << (LISTS + node))
    }

    pub(super) fn without_list(self, node: usize) -> Self {
        Self(self.0 & !(1 << (LISTS + node)))
    }

    /// With one sleeper more on the word, of a node.
    pub(super) fn with_sleeper(self, node: usize) -> Self {
        let more = if self.is_full() { 0 } else { ONE };
        Self((self.0 | 1 << (SLEEPERS + node)) + more)
    }

    /// With one less.
    pub(super) fn without_sleeper(self) -> Self {
        match self.0 & COUNT {
            _ if self.is_full() => self,
            ONE => Self((self.0 - ONE) & !(u64::from(ALL_NODES) << SLEEPERS)),
            _ => Self(self.0 - ONE),
        }
    }

    /// Whether there are more sleepers than can be counted.
    fn is_full(self) -> bool {
        self.0 & COUNT == COUNT
    }
}

impl Generation {
    /// How often was sent from `earlier` to here, modulo 2³².
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        u64::from((self.0 as u32).wrapping_sub(earlier.0 as u32))
    }

    /// As a number, to be kept where this type is not known.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// What [`to_bits`](Self::to_bits) returned. A number of another origin is a generation that
    /// has ended.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// What sleepers have in their nodes and on the word.
    pub(super) fn tag(self) -> u32 {
        self.0 as u32
    }

    /// The one before.
    pub(super) fn before(self) -> Self {
        Self(u64::from(self.tag().wrapping_sub(1)))
    }

    /// Where who sleeps on the word with this generation, in a node, is for who wakes it: not where
    /// those of the next generation are, but where those of the one behind that are.
    pub(super) fn place(self, node: usize) -> u32 {
        node as u32 + MOST_NODES as u32 * (self.tag() & 1)
    }

    /// The bits of these places, of the nodes with these bits.
    pub(super) fn places(self, nodes: u32) -> u32 {
        nodes << self.place(0)
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
        assert!(!more.heads() && more.next() == State(HEADS | 1));
    }

    #[test]
    fn generations_begin_anew() {
        let last = State(u64::from(u32::MAX));
        assert_eq!(last.next().generation(), Generation::from_bits(0));
        assert_eq!(last.next().generation().since(last.generation()), 1);
        assert_eq!(last.next().generation().before(), last.generation());
        let [odd, even] = [last, last.next()].map(|state| state.generation().places(ALL_NODES));
        assert_eq!(odd & even, 0);
    }
}

//! A list without an allocator, for the words that a transaction has read and will write.

use core::iter::Flatten;
use core::slice::IterMut;

/// A list of at most `N` items.
pub(super) struct Log<T, const N: usize> {
    things: [Option<T>; N],
    len: usize,
}

impl<T, const N: usize> Log<T, N> {
    pub(super) fn new() -> Self {
        Self { things: [const { None }; N], len: 0 }
    }

    pub(super) fn push(&mut self, thing: T) {
        assert!(self.len < N, "a transaction of more than {N} words");
        self.things[self.len] = Some(thing);
        self.len += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.things[..self.len].iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> Flatten<IterMut<'_, Option<T>>> {
        self.things[..self.len].iter_mut().flatten()
    }

    pub(super) fn sort_by_key(&mut self, key: impl Fn(&T) -> usize) {
        self.things[..self.len].sort_unstable_by_key(|thing| thing.as_ref().map(&key));
    }
}

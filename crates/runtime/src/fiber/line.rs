//! The run queue of a thread: its fibers that may go on, first in, first out.

use core::cell::Cell;

/// A fiber, as a handle that its thread uses.
pub trait InLine: Copy + PartialEq {
    /// Returns the fiber's cell for the next fiber. It belongs to the list that the fiber is in; a
    /// fiber is in at most one list.
    fn behind(&self) -> &Cell<Option<Self>>;
}

/// An intrusive list of the fibers of one thread.
pub struct Line<F> {
    first: Cell<Option<F>>,
    last: Cell<Option<F>>,
}

impl<F: InLine> Line<F> {
    /// Creates an empty line.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: Cell::new(None), last: Cell::new(None) }
    }

    /// Returns whether the line is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.get().is_none()
    }

    /// Returns all fibers of the line, which stay in it.
    pub fn iter(&self) -> impl Iterator<Item = F> {
        core::iter::successors(self.first.get(), |fiber| fiber.behind().get())
    }

    /// Appends a fiber.
    #[inline]
    pub fn push(&self, fiber: F) {
        fiber.behind().set(None);
        match self.last.replace(Some(fiber)) {
            Some(last) => last.behind().set(Some(fiber)),
            None => self.first.set(Some(fiber)),
        }
    }

    /// Takes the first fiber.
    #[inline]
    pub fn pop(&self) -> Option<F> {
        let first = self.first.get()?;
        let next = first.behind().get();
        self.first.set(next);
        if next.is_none() {
            self.last.set(None);
        }
        Some(first)
    }

    /// Removes a fiber; `false` if it is not in the line. Linear in the length of the line.
    pub fn remove(&self, fiber: F) -> bool {
        // Rotates all fibers once.
        let (mut found, Some(last)) = (false, self.last.get()) else { return false };
        while let Some(other) = self.pop() {
            if other == fiber {
                found = true;
            } else {
                self.push(other);
            }
            if other == last {
                break;
            }
        }
        found
    }
}

impl<F: InLine> Default for Line<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: InLine> core::fmt::Debug for Line<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Line").field("count", &self.iter().count()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Body<'a> {
        number: u32,
        behind: Cell<Option<Named<'a>>>,
    }

    #[derive(Clone, Copy)]
    struct Named<'a>(&'a Body<'a>);

    impl PartialEq for Named<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.0.number == other.0.number
        }
    }

    impl InLine for Named<'_> {
        fn behind(&self) -> &Cell<Option<Self>> {
            &self.0.behind
        }
    }

    fn left(line: &Line<Named<'_>>) -> alloc::vec::Vec<u32> {
        core::iter::from_fn(|| line.pop()).map(|fiber| fiber.0.number).collect()
    }

    #[test]
    fn the_first_that_came_goes_first_and_any_may_leave() {
        let all = [0, 1, 2].map(|number| Body { number, behind: Cell::new(None) });
        let line = Line::new();
        for leaves in 0..3 {
            all.iter().for_each(|body| line.push(Named(body)));
            assert_eq!(line.iter().count(), 3);
            assert!(line.remove(Named(&all[leaves])));
            assert!(!line.remove(Named(&all[leaves])));
            let others: alloc::vec::Vec<_> = (0..3).filter(|&it| it != leaves as u32).collect();
            assert_eq!(left(&line), others);
            assert!(line.is_empty());
        }
    }
}

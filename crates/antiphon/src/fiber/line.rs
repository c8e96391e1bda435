//! Fibers in a line: those that may go on, and the first that came goes first.

use std::cell::Cell;

use super::control::Fiber;

/// A list through the control blocks: a fiber is on one list at most.
#[derive(Default)]
pub(super) struct Line {
    first: Cell<Option<Fiber>>,
    last: Cell<Option<Fiber>>,
}

impl Line {
    pub(super) fn is_empty(&self) -> bool {
        self.first.get().is_none()
    }

    /// How many there are: walks along the line.
    pub(super) fn count(&self) -> usize {
        std::iter::successors(self.first.get(), |fiber| fiber.get().next.get()).count()
    }

    /// Puts one in, behind all others.
    #[inline]
    pub(super) fn push(&self, fiber: Fiber) {
        fiber.get().next.set(None);
        match self.last.replace(Some(fiber)) {
            Some(last) => last.get().next.set(Some(fiber)),
            None => self.first.set(Some(fiber)),
        }
    }

    /// Takes the first.
    #[inline]
    pub(super) fn pop(&self) -> Option<Fiber> {
        let first = self.first.get()?;
        let next = first.get().next.get();
        self.first.set(next);
        if next.is_none() {
            self.last.set(None);
        }
        Some(first)
    }

    /// Takes this one, if it is there: walks along the line.
    pub(super) fn remove(&self, fiber: Fiber) -> bool {
        // All go round once.
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

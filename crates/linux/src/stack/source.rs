//! The state behind [`Stacks`](super::Stacks): the slabs, and lists of the stacks without an owner.

use core::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::NoStack;
use super::shape::Shape;
use super::slab::{Guards, Slab};

/// The state that all clones and stacks of a source share.
pub(super) struct Source {
    pub(super) shape: Shape,
    /// The preferred kind of guards for the next slab.
    guards: Guards,
    /// The oldest slab, which leads to all others.
    slabs: OnceLock<Arc<Slab>>,
    free: Mutex<Free>,
}

/// The limits of stacks without an owner, and the slab for new ones.
#[derive(Default)]
pub(super) struct Free {
    pub(super) hot: Vec<NonZeroUsize>,
    pub(super) cold: Vec<NonZeroUsize>,
    /// Number of all stacks, free or not.
    pub(super) made: usize,
    newest: Option<Arc<Slab>>,
}

impl Source {
    pub(super) fn new(shape: Shape, guards: Guards) -> Self {
        Self { shape, guards, slabs: OnceLock::new(), free: Mutex::default() }
    }

    pub(super) fn free(&self) -> MutexGuard<'_, Free> {
        // Nothing unwinds with the lock held; if it did, the lists would still be consistent.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a new stack, and returns its limit.
    #[cold]
    pub(super) fn make(&self, free: &mut Free) -> Result<NonZeroUsize, NoStack> {
        let made = free.made + 1;
        // STACK-3: both lists are empty here.
        for list in [&mut free.hot, &mut free.cold] {
            list.try_reserve(made).map_err(|_| NoStack::Memory)?;
        }
        let newest = match &free.newest {
            Some(slab) if !slab.is_used_up() => slab,
            full => {
                let grown = self.grow(full.as_deref(), free.made)?;
                free.newest.insert(grown)
            }
        };
        let limit = newest.make()?;
        free.made = made;
        Ok(limit)
    }

    /// Makes one more slab, after the full one.
    fn grow(&self, full: Option<&Slab>, made: usize) -> Result<Arc<Slab>, NoStack> {
        let slab = Arc::new(Slab::reserve(self.shape, made, self.guards).ok_or(NoStack::Memory)?);
        let next = full.map_or(&self.slabs, |full| &full.next);
        Ok(Arc::clone(next.get_or_init(|| slab)))
    }

    /// Returns whether `address` is in the guard of a stack that was made. Takes no lock.
    pub(super) fn guards(&self, address: usize) -> bool {
        let slabs = core::iter::successors(self.slabs.get(), |slab| slab.next.get());
        slabs.into_iter().any(|slab| slab.guards(address))
    }
}

impl Drop for Source {
    /// Unmaps all slabs: no `Stack` exists any more (STACK-4). In a loop, because with a recursive
    /// drop the depth would be the number of slabs. The newest slab is dropped with `free`.
    fn drop(&mut self) {
        let mut first = self.slabs.take();
        while let Some(slab) = first {
            first = Arc::into_inner(slab).and_then(|mut slab| slab.next.take());
        }
    }
}

//! Stages: a queue for each kind of task, and workers that each have a home stage.

use alloc::boxed::Box;

use antiphon_platform::Platform;
use antiphon_sync::queue::{Full, Item, RelaxedQueue, Stolen};

use super::policy::{Others, Own, Policy};

/// A task's rank is its stage, from 0 on; each stage has a queue, first in, first out. A worker
/// runs the tasks of its home stage. If that has none, it runs those of other stages, the last
/// stage first: work in progress is finished before new work is begun.
///
/// Home stages are assigned to workers in turn, stage 0 to worker 0. Starvation-free if there are
/// at least as many workers as stages: a stage without a home worker waits for the others.
///
/// The staged architecture of SEDA (SOSP 2001) and of the dissertation has dedicated threads for
/// each stage. That corresponds to a pool for each stage, whose tasks spawn into the next; here
/// workers are lent to other stages while their own has no tasks.
pub struct Staged<P: Platform> {
    stages: Box<[RelaxedQueue<P>]>,
}

impl<P: Platform> Staged<P> {
    /// Creates `stages` stages, each with room for `capacity` tasks, rounded up to a power of two.
    /// A task without a rank belongs to stage 0, one whose rank is too large to the last stage.
    ///
    /// # Panics
    ///
    /// If `stages` is 0, or `capacity` is above 2³¹.
    #[must_use]
    pub fn new(stages: usize, capacity: usize) -> Self {
        assert!(stages > 0, "no stages");
        Self { stages: (0..stages).map(|_| RelaxedQueue::new(capacity)).collect() }
    }

    fn put(&self, task: Item, stage: Option<u64>) -> Result<(), Full> {
        let last = self.stages.len() - 1;
        self.stages[usize::try_from(stage.unwrap_or(0)).map_or(last, |stage| stage.min(last))]
            .push(task)
    }

    fn take(&self) -> Option<Item> {
        self.stages.iter().rev().find_map(RelaxedQueue::pop)
    }
}

// SAFETY: each task goes into one queue, and tasks come only out of queues.
unsafe impl<P: Platform> Policy<P> for Staged<P> {
    type Queue = ();
    type State = ();

    fn queue(&self) {}

    fn push(
        &self,
        _: &Own<'_, ()>,
        (): &mut (),
        task: Item,
        stage: Option<u64>,
    ) -> Result<(), Full> {
        self.put(task, stage)
    }

    fn submit(&self, shared: &RelaxedQueue<P>, task: Item, stage: Option<u64>) -> Result<(), Full> {
        self.put(task, stage).or_else(|Full(task)| shared.push(task))
    }

    fn has_tasks(&self) -> bool {
        self.stages.iter().any(|stage| !stage.is_empty())
    }

    fn take_left(&self) -> Option<Item> {
        self.take()
    }

    fn pop(&self, own: &Own<'_, ()>, (): &mut ()) -> Option<Item> {
        self.stages[own.seat() % self.stages.len()].pop().or_else(|| self.take())
    }

    fn steal(&self, _: &Own<'_, ()>, (): &mut (), _: &Others<'_, ()>) -> Stolen {
        self.take().map_or(Stolen::Empty, Stolen::Got)
    }
}

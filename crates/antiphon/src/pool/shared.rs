//! What the threads of a pool share: its crew, and the tasks in that.

use antiphon_linux::Linux;
use antiphon_runtime::sched::{Crew, Policy, Stats, Worker};
use antiphon_runtime::task::Task;
use antiphon_sync::queue::{Full, Item};

use super::here::{self, Nested, ask, surely};

/// A crew whose items are all tasks.
pub(super) struct Shared<Y: Policy<Linux>>(pub(super) Crew<Linux, Y>);

impl<Y: Policy<Linux>> Shared<Y> {
    pub(super) fn new(policy: Y, workers: usize, outside: usize) -> Self {
        Self(Crew::new(policy, workers, outside))
    }

    pub(super) fn stats(&self) -> Stats {
        self.0.stats()
    }

    pub(super) fn close(&self) {
        self.0.close();
    }

    /// Is the worker of a seat until the crew is closed and there is nothing to do.
    pub(super) fn work(&self, seat: usize) {
        here::work(&self.0, seat);
    }

    /// Puts a task in, of a worker into its own queue. Hands it back if there is no room.
    pub(super) fn put(&self, task: Task<Linux>) -> Result<(), Task<Linux>> {
        self.put_by(task, |worker, item| worker.push(item), |crew, item| crew.submit(item))
    }

    /// As [`put`](Self::put), of a rank.
    pub(super) fn put_ranked(&self, task: Task<Linux>, rank: u64) -> Result<(), Task<Linux>> {
        self.put_by(
            task,
            |worker, item| worker.push_ranked(item, rank),
            |crew, item| crew.submit_ranked(item, rank),
        )
    }

    fn put_by(
        &self,
        task: Task<Linux>,
        push: impl FnOnce(&mut Worker<'_, Linux, Y>, Item) -> Result<(), Full>,
        submit: impl FnOnce(&Crew<Linux, Y>, Item) -> Result<(), Full>,
    ) -> Result<(), Task<Linux>> {
        here::put(task, |item| {
            ask(&self.0, |here| match here.map(|here| here.worker.try_borrow_mut()) {
                Some(Ok(mut worker)) => push(&mut worker, item),
                // From outside, or by the policy itself.
                Some(Err(_)) | None => submit(&self.0, item),
            })
        })
    }

    /// Puts a task in, always.
    pub(super) fn put_always(&self, task: Task<Linux>) {
        let item = task.into_item();
        surely(|| {
            ask(&self.0, |here| match here.map(|here| here.worker.try_borrow_mut()) {
                Some(Ok(mut worker)) => worker.push_always(item),
                // From outside, or by the policy itself.
                Some(Err(_)) | None => self.0.submit_always(item),
            });
        });
    }

    /// Puts a task in, or runs it if there is no room.
    pub(super) fn put_or_run(&self, task: Task<Linux>) {
        if let Err(task) = self.put(task) {
            self.run(task);
        }
    }

    /// Runs a task for which there was no room; unless it is made in too many that are run so.
    pub(super) fn run(&self, task: Task<Linux>) {
        match Nested::new() {
            Some(_nested) => task.run(),
            None => self.put_always(task),
        }
    }
}

impl<Y: Policy<Linux>> Drop for Shared<Y> {
    /// Drops what nobody has run: there is something only where workers ended early, by a panic of
    /// the policy's.
    fn drop(&mut self) {
        while let Some(item) = self.0.take_left() {
            // SAFETY: all items of the crew are of `put`, and it hands each out once.
            drop(unsafe { Task::<Linux>::from_item(item) });
        }
    }
}

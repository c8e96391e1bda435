//! The state that the threads of a pool share: its crew, and the tasks in that.

use std::cell::Cell;
use std::sync::Arc;
use std::thread;

use antiphon_linux::Linux;
use antiphon_linux::stack::Stacks;
use antiphon_runtime::sched::{Crew, Policy, Stats, Worker};
use antiphon_runtime::task::Task;
use antiphon_sync::queue::{Full, Item};

use super::here::{self, Here, ask};
use super::hogs::Hogs;
use super::ledger::Ledger;
use super::places::Places;
use super::sample::sampled;
use super::spare::Bench;
use crate::fiber::{self, Desks, GoesOn, Host, has_begun};
use crate::look;
use crate::observe::Caller;
use crate::worker::{self, Nested, surely};

/// A crew whose items are all tasks, and the threads that have no seat in it.
pub(super) struct Shared<Y: Policy<Linux>> {
    pub(super) crew: Crew<Linux, Y>,
    pub(super) bench: Bench,
    pub(super) places: Places,
    /// The stacks on which tasks run as fibers; `None`: tasks are no fibers.
    pub(super) stacks: Option<Stacks>,
    /// Whether fibers that have begun move to other threads.
    pub(super) moves: bool,
    /// The desks at which threads are asked about their fibers.
    pub(super) desks: Arc<Desks>,
    /// The ledger in which fibers are recorded, if they are.
    pub(super) ledger: Option<Arc<Ledger>>,
    pub(super) hogs: Hogs,
    /// The time for which a task may have its thread while others wait for that, in nanoseconds.
    pub(super) hog_ns: u64,
}

impl<Y: Policy<Linux> + 'static> Shared<Y> {
    /// Makes the calling thread the worker of a seat, and then of each that there is for it, until
    /// the pool is closed and there is nothing to do.
    pub(super) fn serve(self: &Arc<Self>, seat: Option<usize>) {
        // Though the policy panics.
        let _goes = Goes(self);
        let host = self
            .stacks
            .clone()
            .map(|stacks| Host::new(stacks, self.moves, self.desks.clone(), self.hog_ns));
        let mut seat = seat.or_else(|| self.bench.wait());
        while let Some(number) = seat {
            // If the CPU is gone meanwhile, the tasks of that seat are run where the thread is.
            let _: Result<(), u32> = self.places.settle(number);
            let worker = self.worker(number);
            self.hogs.sits(worker.number());
            seat = here::work(self, worker, host.as_ref()).or_else(|| {
                self.bench.come();
                self.bench.wait()
            });
        }
    }

    /// Gives a thread without a seat the one that `give` has: see [`Bench::lend`].
    pub(super) fn lend(self: &Arc<Self>, give: impl FnOnce() -> Option<usize>) {
        let spare = || {
            let shared = self.clone();
            move || shared.serve(None)
        };
        self.bench.lend(spare, give);
    }

    /// The worker of a seat that is the caller's.
    fn worker(&self, seat: usize) -> Worker<'_, Linux, Y> {
        loop {
            // Each thread is one worker at the most: where all places for these were seen taken,
            // some have come and gone meanwhile.
            if let Some(worker) = self.crew.worker(seat) {
                return worker;
            }
            thread::yield_now();
        }
    }
}

/// A thread of a pool goes.
struct Goes<'a, Y: Policy<Linux>>(&'a Shared<Y>);

impl<Y: Policy<Linux>> Drop for Goes<'_, Y> {
    fn drop(&mut self) {
        if self.0.bench.go() {
            self.0.crew.dismiss();
        }
    }
}

impl<Y: Policy<Linux>> Shared<Y> {
    pub(super) fn stats(&self) -> Stats {
        self.crew.stats()
    }

    pub(super) fn close(&self) {
        self.crew.close();
        if self.bench.close() {
            self.crew.dismiss();
        }
    }

    /// The task, or one that has it recorded.
    fn sampled(&self, task: Task<Linux>, caller: Caller) -> Task<Linux> {
        let recorder = (&self.crew, self.ledger.as_ref());
        sampled(recorder, task, caller, || here::seat(&self.crew))
    }

    /// Puts a task in that the caller has made, of a worker into its own queue. Hands it back if
    /// there is no room.
    pub(super) fn put(&self, task: Task<Linux>, caller: Caller) -> Result<(), Task<Linux>> {
        self.put_again(self.sampled(task, caller))
    }

    /// As [`put`](Self::put), of a task that was [sampled] when it was first to be put in.
    pub(super) fn put_again(&self, task: Task<Linux>) -> Result<(), Task<Linux>> {
        self.put_by(task, |worker, item| worker.push(item), |crew, item| crew.submit(item))
    }

    /// As [`put`](Self::put), of a task with a rank.
    pub(super) fn put_ranked(
        &self,
        task: Task<Linux>,
        rank: u64,
        caller: Caller,
    ) -> Result<(), Task<Linux>> {
        self.put_by(
            self.sampled(task, caller),
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
        worker::put(task, |item| {
            ask(&self.crew, |here| match here.map(|here| here.worker.try_borrow_mut()) {
                Some(Ok(mut worker)) => self.kept(push(&mut worker, item)),
                // The task comes from outside, or from the policy itself.
                Some(Err(_)) | None => self.kept(submit(&self.crew, item)),
            })
        })
    }

    /// Deals with a task that the policy has given back for another one. If it has begun, it can't
    /// be run here, and is put in, always.
    pub(super) fn kept(&self, put: Result<(), Full>) -> Result<(), Full> {
        put.or_else(|Full(back)| {
            if !has_begun(back) {
                return Err(Full(back));
            }
            self.crew.submit_always(back);
            Ok(())
        })
    }

    /// Puts a fiber in that has begun, and may go on.
    pub(super) fn put_begun(&self, fiber: Item, goes: GoesOn) {
        surely(|| {
            ask(&self.crew, |here| match here.map(|here| here.worker.try_borrow_mut()) {
                Some(Ok(mut worker)) if goes == GoesOn::Own => worker.push_always(fiber),
                Some(_) | None => self.crew.submit_always(fiber),
            });
        });
    }

    /// Puts tasks in, runs those that have no room, and tells others of all others together.
    pub(super) fn put_many(&self, tasks: Vec<Task<Linux>>, caller: Caller) {
        let found = Cell::new(0);
        let add = |is_found| found.set(found.get() + usize::from(is_found));
        for task in tasks {
            let put = self.put_by(
                self.sampled(task, caller),
                |worker, item| worker.push_untold(item).map(add),
                |crew, item| crew.submit_untold(item).map(|()| add(true)),
            );
            if let Err(task) = put {
                self.crew.tell(found.take());
                self.run_or_wait(task);
            }
        }
        if found.get() > 0 {
            self.crew.tell(found.get());
        }
    }

    /// Puts a task in when there is room, and waits for that: a worker of the pool runs tasks of
    /// its own meanwhile, and this one if it has none; others sleep.
    pub(super) fn put_waiting(&self, mut task: Task<Linux>) {
        if fiber::is_fiber() {
            return self.put_yielding(task);
        }
        loop {
            match self.put_again(task) {
                Ok(()) => return,
                Err(refused) => task = refused,
            }
            // A worker whose policy is being asked has a seat.
            let is_away =
                |here: &Here<'_, Y>| here.worker.try_borrow().is_ok_and(|it| !it.has_seat());
            let helped = ask(&self.crew, |here| match (here, Nested::new()) {
                (Some(here), _) if is_away(here) => None,
                (Some(here), Some(_nested)) => Some(here.run_one(Worker::try_next_task)),
                (Some(_), None) => Some(false),
                (None, _) => None,
            });
            match helped {
                Some(true) => {}
                Some(false) => return self.run(task),
                None => break,
            }
        }
        self.submit_waiting(task);
    }

    /// Puts a task in when there is room, and sleeps until then.
    fn submit_waiting(&self, task: Task<Linux>) {
        let put = surely(|| self.crew.submit_waiting(task.into_item()));
        if let Err(Full(item)) = self.kept(put) {
            // SAFETY: it is back, as it was made of a task.
            self.run(unsafe { Task::from_item(item) });
        }
    }

    /// Puts a task in when there is room. The caller is a fiber, and lets others run meanwhile. A
    /// fiber that unwinds can't: room is made for it.
    fn put_yielding(&self, mut task: Task<Linux>) {
        if thread::panicking() {
            return self.put_refused(task);
        }
        if !ask(&self.crew, |here| here.is_some()) {
            return self.submit_waiting(task);
        }
        loop {
            match self.put_again(task) {
                Ok(()) => return,
                Err(refused) => task = refused,
            }
            // Now and then that begins a task, if there is one: so there is room, in the end.
            fiber::yield_now();
        }
    }

    /// Puts a task in, always.
    pub(super) fn put_always(&self, task: Task<Linux>, caller: Caller) {
        self.put_refused(self.sampled(task, caller));
    }

    /// As [`put_always`](Self::put_always), of a task that was [sampled] when it was refused.
    pub(super) fn put_refused(&self, task: Task<Linux>) {
        let item = task.into_item();
        surely(|| {
            ask(&self.crew, |here| match here.map(|here| here.worker.try_borrow_mut()) {
                Some(Ok(mut worker)) => worker.push_always(item),
                // The task comes from outside, or from the policy itself.
                Some(Err(_)) | None => self.crew.submit_always(item),
            });
        });
    }

    /// As [`put_always`](Self::put_always), as from outside.
    pub(super) fn put_behind(&self, task: Task<Linux>, caller: Caller) {
        self.put_outside(self.sampled(task, caller));
    }

    /// As [`put_refused`](Self::put_refused), as from outside.
    pub(super) fn put_outside(&self, task: Task<Linux>) {
        let item = task.into_item();
        surely(|| ask(&self.crew, |_| self.crew.submit_always(item)));
    }

    /// Lets other workers find the tasks that the caller keeps, if it is a worker.
    pub(super) fn share(&self) {
        ask(&self.crew, |here| {
            if let Some(Ok(mut worker)) = here.map(|here| here.worker.try_borrow_mut()) {
                worker.share();
            }
        });
    }

    /// Puts a task in; if there is no room, does what [`run_or_wait`](Self::run_or_wait) says.
    pub(super) fn put_or_run(&self, task: Task<Linux>, caller: Caller) {
        if let Err(task) = self.put(task, caller) {
            self.run_or_wait(task);
        }
    }

    /// Deals with a task for which there is no room: the caller runs it; on a fiber, it waits for
    /// some. A task that is to be a fiber may wait for what the caller does next, so a thread can
    /// neither run it nor wait for room: room is made.
    pub(super) fn run_or_wait(&self, task: Task<Linux>) {
        if fiber::is_fiber() {
            self.put_yielding(task);
        } else if self.stacks.is_some() {
            self.put_refused(task);
        } else {
            self.run(task);
        }
    }

    /// Runs a task for which there was no room; unless it is made in too many that are run so.
    pub(super) fn run(&self, task: Task<Linux>) {
        match Nested::new() {
            Some(_nested) => task.run(),
            None => self.put_refused(task),
        }
    }
}

impl<Y: Policy<Linux>> Drop for Shared<Y> {
    /// Drops tasks that were not run: there are some only where workers ended early, by a panic of
    /// the policy's.
    fn drop(&mut self) {
        look::leave(std::ptr::from_ref(self).cast());
        while let Some(item) = self.crew.take_left() {
            // Other threads may wait for values on the stack of a fiber that has begun: it can't be
            // dropped.
            if has_begun(item) {
                continue;
            }
            // SAFETY: all items of the crew are of `put`, and it hands each out once.
            drop(unsafe { Task::<Linux>::from_item(item) });
        }
    }
}

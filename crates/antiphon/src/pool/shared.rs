//! The state that the threads of a pool share: its crew, and the tasks in the crew's queues.

use std::cell::Cell;
use std::sync::Arc;
use std::thread;

use antiphon_linux::Linux;
use antiphon_linux::stack::Stacks;
use antiphon_runtime::sched::{Crew, Policy, Put, Room, Stats, Wake, Worker};
use antiphon_runtime::task::Task;

use super::here::{self, Here, ask};
use super::hogs::Hogs;
use super::ledger::Ledger;
use super::places::Places;
use super::sample::sampled;
use super::spare::Bench;
use crate::fiber::{self, Desks, Host, has_begun};
use crate::look;
use crate::observe::Caller;
use crate::worker::{Nested, refused, surely};

/// A crew whose items are all tasks, and the threads that have no seat in it.
pub(super) struct Shared<Y: Policy<Linux>> {
    pub(super) crew: Crew<Linux, Y>,
    pub(super) bench: Bench,
    pub(super) places: Places,
    /// The stacks on which tasks run as fibers; `None` if tasks are not fibers.
    pub(super) stacks: Option<Stacks>,
    /// Whether fibers that have begun move to other threads.
    pub(super) moves: bool,
    /// The desks where questions about fibers are posted to the threads.
    pub(super) desks: Arc<Desks>,
    /// The ledger, if fibers are recorded.
    pub(super) ledger: Option<Arc<Ledger>>,
    pub(super) hogs: Hogs,
    /// How long a task may occupy its thread while other tasks wait, in nanoseconds.
    pub(super) hog_ns: u64,
}

impl<Y: Policy<Linux> + 'static> Shared<Y> {
    /// Makes the calling thread the worker of a seat, and of each later seat that it gets, until
    /// the pool is closed and there is nothing to do.
    pub(super) fn serve(self: &Arc<Self>, seat: Option<usize>) {
        // Dropped even if the policy panics.
        let _goes = Goes(self);
        let host = self
            .stacks
            .clone()
            .map(|stacks| Host::new(stacks, self.moves, self.desks.clone(), self.hog_ns));
        let mut seat = seat.or_else(|| self.bench.wait());
        while let Some(number) = seat {
            // If the CPU is gone by now, the tasks of that seat run where the thread is.
            let _: Result<(), u32> = self.places.settle(number);
            let worker = self.worker(number);
            self.hogs.sits(worker.number());
            seat = here::work(self, worker, host.as_ref()).or_else(|| {
                self.bench.come();
                self.bench.wait()
            });
        }
    }

    /// Gives a thread without a seat the seat that `give` returns: see [`Bench::lend`].
    pub(super) fn lend(self: &Arc<Self>, give: impl FnOnce() -> Option<usize>) {
        let spare = || {
            let shared = self.clone();
            move || shared.serve(None)
        };
        self.bench.lend(spare, give);
    }

    /// Returns the worker of a seat that the caller has.
    fn worker(&self, seat: usize) -> Worker<'_, Linux, Y> {
        loop {
            // Each thread is at most one worker: if all worker places were seen taken, some threads
            // have come and gone meanwhile.
            if let Some(worker) = self.crew.worker(seat) {
                return worker;
            }
            thread::yield_now();
        }
    }
}

/// Reports on drop that a thread of the pool has ended.
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

    /// Returns the task, or a task that runs and records it.
    pub(super) fn sampled(&self, task: Task<Linux>, caller: Caller) -> Task<Linux> {
        let recorder = (&self.crew, self.ledger.as_ref());
        sampled(recorder, task, caller, || here::seat(&self.crew))
    }

    /// Queues a new task: see [`put_or_run`](Self::put_or_run).
    #[inline]
    pub(super) fn spawn(&self, task: Task<Linux>, caller: Caller, how: Put<'_>) {
        self.put_or_run(self.sampled(task, caller), how);
    }

    /// Queues new tasks, runs those that have no room, and wakes workers once for all queued tasks.
    pub(super) fn spawn_many(&self, tasks: Vec<Task<Linux>>, caller: Caller) {
        let found = Cell::new(0);
        let later = Put { wake: Wake::Later(&found), ..Put::PLAIN };
        for task in tasks {
            if let Err(task) = self.put(self.sampled(task, caller), later) {
                self.crew.tell(found.take());
                self.run_or_wait(task, Put::PLAIN);
            }
        }
        if found.get() > 0 {
            self.crew.tell(found.get());
        }
    }

    /// Queues a [sampled](Self::sampled) task; if it is refused, calls
    /// [`run_or_wait`](Self::run_or_wait).
    #[inline]
    pub(super) fn put_or_run(&self, task: Task<Linux>, how: Put<'_>) {
        if let Err(task) = self.put(task, how) {
            self.run_or_wait(task, how);
        }
    }

    /// Queues a [sampled](Self::sampled) task; a worker puts it into its own queue. Hands it back
    /// if there is no room and it may be [refused](Room::Refuse).
    // Out of line: the layers below are inlined here, and not into each of its callers.
    #[inline(never)]
    pub(super) fn put(&self, task: Task<Linux>, how: Put<'_>) -> Result<(), Task<Linux>> {
        if how.room == Room::Wait {
            self.put_waiting(task, how);
            return Ok(());
        }
        let item = task.into_item();
        refused(item, surely(|| here::put(&self.crew, item, how)))
    }

    /// Handles a task for which there is no room: a thread runs it; a fiber waits for room. In a
    /// pool of fibers the task may wait for something that the caller does next, so a thread can
    /// neither run it nor wait for room: room is made.
    #[cold]
    fn run_or_wait(&self, task: Task<Linux>, how: Put<'_>) {
        if fiber::is_fiber() {
            self.put_waiting(task, how);
        } else if self.stacks.is_some() {
            self.put_or_run(task, Put { room: Room::Make, ..how });
        } else {
            self.run(task, how);
        }
    }

    /// Runs a task for which there was no room. If too many such tasks are nested, makes room.
    fn run(&self, task: Task<Linux>, how: Put<'_>) {
        match Nested::new() {
            Some(_nested) => task.run(),
            None => self.put_or_run(task, Put { room: Room::Make, ..how }),
        }
    }

    /// Queues a task when there is room; until then, the caller does what
    /// [`meanwhile`](Self::meanwhile) returns.
    #[cold]
    fn put_waiting(&self, mut task: Task<Linux>, how: Put<'_>) {
        loop {
            match self.put(task, Put { room: Room::Refuse, ..how }) {
                Ok(()) => return,
                Err(refused) => task = refused,
            }
            match self.meanwhile() {
                Meanwhile::Worked => {}
                Meanwhile::Sleep => break,
                Meanwhile::Run => return self.run(task, how),
                Meanwhile::Make => return self.put_or_run(task, Put { room: Room::Make, ..how }),
            }
        }
        let (item, how) = (task.into_item(), Put { room: Room::Wait, ..how });
        let submit = || self.crew.submit(item, how);
        // Not by `here::put`: a fiber of another pool waits as a fiber.
        let put = surely(|| submit().or_else(|full| here::put_back_begun(&self.crew, full)));
        if let Err(task) = refused(item, put) {
            self.run(task, how);
        }
    }

    /// Does something useful while the caller's task waits for room, or returns what the caller
    /// must do: a worker of the pool runs a task of its own, or the waiting task if it has none; a
    /// fiber of the pool lets others run; other threads and fibers sleep.
    fn meanwhile(&self) -> Meanwhile {
        if fiber::is_fiber() {
            // A fiber that unwinds can't let others run.
            if thread::panicking() {
                return Meanwhile::Make;
            }
            if !ask(&self.crew, |here| here.is_some()) {
                return Meanwhile::Sleep;
            }
            // A yield begins a task now and then, if there is one: so there will be room.
            fiber::yield_now();
            return Meanwhile::Worked;
        }
        // A worker whose policy is deciding has a seat.
        let is_away = |here: &Here<'_, Y>| here.worker.try_borrow().is_ok_and(|it| !it.has_seat());
        ask(&self.crew, |here| match (here, Nested::new()) {
            (Some(here), _) if is_away(here) => Meanwhile::Sleep,
            (Some(here), Some(_nested)) if here.run_one(Worker::try_next_task) => Meanwhile::Worked,
            (Some(_), _) => Meanwhile::Run,
            (None, _) => Meanwhile::Sleep,
        })
    }

    /// Lets other workers find the tasks that the caller keeps, if it is a worker.
    pub(super) fn share(&self) {
        ask(&self.crew, |here| {
            if let Some(Ok(mut worker)) = here.map(|here| here.worker.try_borrow_mut()) {
                worker.share();
            }
        });
    }
}

/// See [`Shared::meanwhile`].
enum Meanwhile {
    /// The caller has run another task, or let other fibers run: there may be room now.
    Worked,
    /// The caller must sleep until there is room.
    Sleep,
    /// The caller must run the task.
    Run,
    /// The caller must make room for the task.
    Make,
}

impl<Y: Policy<Linux>> Drop for Shared<Y> {
    /// Drops tasks that were not run. There are some only if workers ended early because the policy
    /// panicked.
    fn drop(&mut self) {
        look::leave(std::ptr::from_ref(self).cast());
        while let Some(item) = self.crew.take_left() {
            // Other threads may wait for values on the stack of a fiber that has begun: it can't be
            // dropped.
            if has_begun(item) {
                continue;
            }
            // SAFETY: all items of the crew are of tasks, and it hands each out once.
            drop(unsafe { Task::<Linux>::from_item(item) });
        }
    }
}

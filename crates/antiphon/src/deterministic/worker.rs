//! The workers and the waits of a run, on its simulated threads: the counterpart of `here` in
//! [`pool`](crate::pool).

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::thread::panicking;

use antiphon_runtime::sched::{Put, Room, Worker};
use antiphon_runtime::task::{Awaited, Task};
use antiphon_sim::Sim;
use antiphon_sync::queue::{Full, Item};

use super::BoxedPolicy;
use super::run::{Ongoing, message, thread};

/// Borrowed while the policy decides, and not while a task runs.
type Here<'a> = RefCell<Worker<'a, Sim, BoxedPolicy>>;

/// The state of one thread.
#[derive(Default)]
pub(super) struct Seat {
    /// The worker of the thread, on its stack.
    worker: Cell<Option<NonNull<Here<'static>>>>,
    /// The number of nested tasks that it runs where they were spawned.
    nested: Cell<u32>,
    /// Tasks that destructors have spawned while a panic unwound, and their ranks. A panicking
    /// thread can't wait, which a queue or a wake-up may require; so they are queued later.
    late: RefCell<Vec<(Item, Option<u64>)>>,
}

/// Maximum number of nested tasks, as on Linux.
const DEPTH: u32 = 64;

impl Ongoing {
    /// Makes the calling thread a worker until the crew is closed and there is nothing to do.
    pub(super) fn be_worker(&self, number: usize) {
        let here: Here<'_> = RefCell::new(self.crew.worker(number).expect("a seat for each"));
        self.seats[thread()].worker.set(Some(NonNull::from(&here).cast()));
        while self.run_one(&here, Worker::next_task) {}
        self.seats[thread()].worker.set(None);
    }

    /// Returns the worker of the calling thread, if it is one.
    fn here(&self) -> Option<&Here<'_>> {
        // SAFETY: set by `be_worker`, whose frame is on this thread's stack below us; if it was
        // unwound, so was the simulation, and this is not called any more.
        self.seats[thread()].worker.get().map(|here| unsafe { here.cast::<Here<'_>>().as_ref() })
    }

    /// Waits; a worker runs other tasks meanwhile. `awaited` is over on return, even if the policy
    /// panics.
    pub(super) fn wait_for(&self, awaited: &Awaited<'_, Sim>) {
        let seed = self.seed;
        assert!(!panicking() || awaited.is_over(), "seed {seed}: a destructor waits in a panic");
        self.put_late();
        if let Some(here) = self.here() {
            let help = || while self.run_one(here, |worker| worker.next_until(awaited, None)) {};
            self.outlast(help);
        }
        awaited.wait();
    }

    /// Calls the closure, and keeps its panic for the end of the run.
    fn outlast(&self, may_panic: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(may_panic)) {
            self.uncaught.borrow_mut().push((0, message(panic.as_ref())));
        }
    }

    /// Runs the task that `next` returns. Returns `false` if it returns none, or the policy is
    /// deciding.
    fn run_one<'a>(
        &self,
        here: &Here<'a>,
        next: impl FnOnce(&mut Worker<'a, Sim, BoxedPolicy>) -> Option<Item>,
    ) -> bool {
        let item = here.try_borrow_mut().ok().and_then(|mut worker| next(&mut worker));
        // SAFETY: all items of the crew are made of tasks, and it hands each out once.
        item.map(|item| self.run(unsafe { Task::from_item(item) })).is_some()
    }

    fn run(&self, task: Task<Sim>) {
        // Panics of the task were caught, but not a panic of a value that the task has to drop.
        self.outlast(|| task.run());
        self.put_late();
    }

    /// Queues the tasks that the calling thread has spawned while it panicked.
    pub(super) fn put_late(&self) {
        for (item, rank) in self.seats[thread()].late.take() {
            // SAFETY: the item was made of a task in `put_later`, and is taken once.
            let task = unsafe { Task::from_item(item) };
            let put = self.put(task, Put { rank, room: Room::Make, ..Put::PLAIN });
            debug_assert!(put.is_ok(), "room was made for it");
        }
    }

    /// Keeps the task for later if the calling thread panics. Otherwise queues the tasks that the
    /// thread has kept, and returns the task.
    fn put_later(&self, task: Task<Sim>, rank: Option<u64>) -> Option<Task<Sim>> {
        if panicking() {
            self.seats[thread()].late.borrow_mut().push((task.into_item(), rank));
            return None;
        }
        self.put_late();
        Some(task)
    }

    /// Queues a task; a worker puts it into its own queue. Hands it back if there is no room and
    /// `how` allows that it is refused.
    fn put(&self, task: Task<Sim>, how: Put<'_>) -> Result<(), Task<Sim>> {
        let item = task.into_item();
        let pushed = match self.here().map(RefCell::try_borrow_mut) {
            Some(Ok(mut worker)) => worker.push(item, how),
            // The task comes from outside the pool, or from the policy itself.
            Some(Err(_)) | None => self.crew.submit(item, how),
        };
        let Err(Full(back)) = pushed else {
            return Ok(());
        };
        // SAFETY: the policy has handed the item back: it was made of a task here or earlier.
        let task = unsafe { Task::from_item(back) };
        if back == item {
            return Err(task);
        }
        // A policy may make room by handing back another task, which has no other place to go.
        self.run(task);
        Ok(())
    }

    /// Queues a task, or runs it if it is refused. If too many such tasks are nested, makes room.
    pub(super) fn put_or_run(&self, task: Task<Sim>, how: Put<'_>) {
        let Some(task) = self.put_later(task, how.rank) else { return };
        let Err(task) = self.put(task, how) else { return };
        let nested = &self.seats[thread()].nested;
        let depth = nested.get();
        if depth == DEPTH {
            return self.put_or_run(task, Put { room: Room::Make, ..how });
        }
        nested.set(depth + 1);
        self.run(task);
        nested.set(depth);
    }
}

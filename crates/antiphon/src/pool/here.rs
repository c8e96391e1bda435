//! The calling thread as a worker of a pool. Here the types of the pool and its policy are known;
//! [`worker`](crate::worker) has the parts that don't need them.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::Arc;

use antiphon_linux::Linux;
use antiphon_runtime::flight::Event;
use antiphon_runtime::sched::{Crew, Policy, Put, Room, Worker};
use antiphon_runtime::task::{Awaited, Task};
use antiphon_sync::queue::{Full, Item};

use super::shared::Shared;
use crate::fiber::{GoesOn, Host, Next, has_begun, not_here};
use crate::local;
use crate::worker::{AnyWorker, Known, known, on_fiber, run, surely};

/// The state of the calling thread while it is a worker, kept on its stack.
pub(super) struct Here<'a, Y: Policy<Linux>> {
    /// Borrowed while the policy decides, and not while a task runs.
    pub(super) worker: RefCell<Worker<'a, Linux, Y>>,
    shared: &'a Arc<Shared<Y>>,
}

/// Runs a worker's tasks until it has lost its seat, or the crew is closed and there is nothing to
/// do. With fibers, runs until these have ended, too, or the thread gets another seat, which is
/// returned.
pub(super) fn work<'a, Y>(
    shared: &'a Arc<Shared<Y>>,
    worker: Worker<'a, Linux, Y>,
    host: Option<&'a Host>,
) -> Option<usize>
where
    Y: Policy<Linux> + 'static,
{
    let here = Here { worker: RefCell::new(worker), shared };
    let known = Known { crew: ptr::from_ref(&shared.crew).cast(), worker: &here };
    // SAFETY: it is dropped at the end of this function, and the worker belongs to that crew.
    let _shown = unsafe { known.show() };
    if let Some(host) = host {
        return here.host(host);
    }
    while here.run_one(Worker::next_task) {}
    None
}

/// Calls `ask` with the calling thread's state, if it is a worker of this crew, otherwise with
/// `None`.
pub(super) fn ask<Y: Policy<Linux>, R>(
    crew: &Crew<Linux, Y>,
    ask: impl FnOnce(Option<&Here<'_, Y>>) -> R,
) -> R {
    local::with(|own| {
        let is_ours = |known: &&Known<'_>| ptr::eq(known.crew, ptr::from_ref(crew).cast());
        // A fiber might continue on another thread while the policy waits for a lock.
        let ours = known(own).filter(|known| is_ours(known) && !on_fiber(own));
        let ours = ours.map(|known| ptr::from_ref(known.worker).cast::<Here<'_, Y>>());
        // SAFETY: `work` has set it, for this crew and so with this type, and its frame is on the
        // stack below us; or below the fiber that we are, which does not wait as a fiber meanwhile.
        let ours = ours.map(|here| unsafe { &*here });
        // If the policy waits, the whole thread waits: it has borrowed the worker.
        not_here(own, || ask(ours))
    })
}

/// Returns the seat of the calling thread, if it is a worker of this crew and has a seat.
pub(super) fn seat<Y: Policy<Linux>>(crew: &Crew<Linux, Y>) -> Option<usize> {
    let seat = |here: &Here<'_, Y>| {
        here.worker.try_borrow().ok().filter(|it| it.has_seat()).map(|it| it.seat())
    };
    ask(crew, |here| here.and_then(seat))
}

/// Queues the item of a task; a worker puts it into its own queue. An item that the policy hands
/// back is a task, but may not be the one that was passed.
#[inline]
pub(super) fn put<Y: Policy<Linux>>(
    crew: &Crew<Linux, Y>,
    item: Item,
    how: Put<'_>,
) -> Result<(), Full> {
    ask(crew, |here| {
        let put = match here.map(|here| here.worker.try_borrow_mut()) {
            Some(Ok(mut worker)) => worker.push(item, how),
            // The task comes from outside the pool, or from the policy itself.
            Some(Err(_)) | None => crew.submit(item, how),
        };
        put.or_else(|full| put_back_begun(crew, full))
    })
}

/// Queues an item that the policy has handed back again, if it is a fiber that has begun: such a
/// fiber can't be run here.
#[cold]
pub(super) fn put_back_begun<Y: Policy<Linux>>(
    crew: &Crew<Linux, Y>,
    Full(back): Full,
) -> Result<(), Full> {
    if !has_begun(back) {
        return Err(Full(back));
    }
    crew.submit(back, Put { room: Room::Make, ..Put::PLAIN })
}

impl<Y: Policy<Linux> + 'static> AnyWorker for Here<'_, Y> {
    fn help(&self, awaited: &Awaited<'_, Linux>) {
        while self.run_one(|worker| worker.next_until(awaited, None)) {}
    }

    fn put(&self, item: Item) -> Result<(), Full> {
        // A policy that is already deciding can't be called again.
        let Ok(mut worker) = self.worker.try_borrow_mut() else { return Err(Full(item)) };
        local::with(|own| {
            not_here(own, || {
                let put = worker.push(item, Put::PLAIN);
                put.or_else(|full| put_back_begun(&self.shared.crew, full))?;
                // The task's producer continues with something else.
                worker.share();
                Ok(())
            })
        })
    }

    fn has_idle(&self) -> bool {
        self.shared.crew.has_idle()
    }

    fn leave(&self) {
        // Not while the policy decides.
        if let Ok(mut worker) = self.worker.try_borrow_mut()
            && worker.has_seat()
        {
            self.shared.lend(|| worker.leave());
        }
    }

    fn record(&self, event: Event) {
        // Events that occur while the policy decides are not recorded.
        if let Ok(mut worker) = self.worker.try_borrow_mut() {
            worker.record(event);
        }
    }

    fn passes(&self, now_ns: u64) {
        if let Ok(mut worker) = self.worker.try_borrow_mut() {
            worker.passes(now_ns);
        }
    }
}

impl<'a, Y: Policy<Linux>> Here<'a, Y> {
    /// Runs the task that `next` returns. Returns `false` if it returns none, or the policy is
    /// deciding.
    pub(super) fn run_one(
        &self,
        next: impl FnOnce(&mut Worker<'a, Linux, Y>) -> Option<Item>,
    ) -> bool {
        let Some(item) = self.worker.try_borrow_mut().ok().and_then(|mut worker| next(&mut worker))
        else {
            return false;
        };
        // A thread with fibers that have begun runs tasks on fiber stacks only: see
        // `Host::run_or_adopt`.
        debug_assert!(!has_begun(item), "on the thread's stack, it would never be resumed");
        // SAFETY: all items of the crew come from `Shared::put`, and it hands each out once.
        run(unsafe { Task::from_item(item) });
        true
    }

    /// Runs fibers until there are none and nothing else to do, or until the thread, having lost
    /// its seat, gets another, which is returned. A fiber that has begun stays on its thread: so if
    /// the policy panics, the thread keeps running its fibers, without a seat.
    fn host(&self, host: &Host) -> Option<usize> {
        host.attach();
        let for_seats = || self.shared.bench.wait_beside(host.mail(), || host.wait(None));
        let turns = || {
            if !self.shared.moves {
                let begin = |item| self.begin(host, item);
                return self.take_turns(host, || host.go_on(), begin, for_seats);
            }
            let release = || host.release(|fiber, goes| self.put_begun(fiber, goes));
            self.take_turns(host, release, |item| self.begin_or_adopt(host, item), for_seats)
        };
        let panic = match catch_unwind(AssertUnwindSafe(turns)) {
            Ok(seat) => return seat,
            Err(panic) => panic,
        };
        {
            let mut worker = self.worker.borrow_mut();
            // As when a worker leaves: no thread has the seat after it.
            worker.share();
            worker.leave();
        }
        let wait = || {
            host.wait(None);
            None
        };
        // A thread without a seat does not call the policy.
        self.take_turns(host, || host.go_on(), |item| self.begin(host, item), wait);
        resume_unwind(panic);
    }

    /// Resumes fibers with `go_on`, and starts a task with `begin` if there is one. Waits if there
    /// is neither; a thread without a seat waits with `wait`. Returns when the thread has no fibers
    /// and no seat, when the crew is closed and there is nothing to do, or with another seat.
    fn take_turns(
        &self,
        host: &Host,
        go_on: impl Fn() -> Next,
        begin: impl Fn(Item),
        wait: impl Fn() -> Option<usize>,
    ) -> Option<usize> {
        loop {
            let next = go_on();
            let mut worker = self.worker.borrow_mut();
            let item = match next {
                Next::Task => worker.try_next_task(),
                Next::AnyTask => worker.try_any_task(),
                Next::Wait if worker.has_seat() => {
                    let (awaited, deadline) = host.awaited();
                    let task = host.resting(|| worker.next_until(&awaited, deadline));
                    host.resumed(worker.resumed_ns());
                    task
                }
                Next::Dry(until) if worker.has_seat() => {
                    host.wait_until(until);
                    None
                }
                Next::Wait | Next::Dry(_) => match wait() {
                    None => None,
                    seat => return seat,
                },
                Next::Nothing => {
                    let task = worker.next_task()?;
                    host.resumed(worker.resumed_ns());
                    Some(task)
                }
            };
            drop(worker);
            if let Some(item) = item {
                begin(item);
            }
        }
    }

    /// Queues a fiber that has begun and may continue.
    fn put_begun(&self, fiber: Item, goes: GoesOn) {
        let outside = goes != GoesOn::Own;
        let how = Put { room: Room::Make, outside, ..Put::PLAIN };
        let made: Result<(), Full> = surely(|| put(&self.shared.crew, fiber, how));
        debug_assert!(made.is_ok(), "room was made for it");
    }

    #[inline(always)]
    fn begin(&self, host: &Host, item: Item) {
        // SAFETY: as in `run_one`.
        if let Err(task) = host.run(unsafe { Task::from_item(item) }) {
            self.shared.put_or_run(task, Put { room: Room::Make, ..Put::PLAIN });
            // Other workers may have free stacks.
            self.shared.share();
        }
    }

    fn begin_or_adopt(&self, host: &Host, item: Item) {
        // SAFETY: as in `run_one`; or the item comes from `put_begun`.
        if let Err(task) = unsafe { host.run_or_adopt(item) } {
            // Not where the policy would take it again next: fibers that have begun must run first,
            // because they give stacks back.
            let outside = Put { room: Room::Make, outside: true, ..Put::PLAIN };
            self.shared.put_or_run(task, outside);
        }
    }
}

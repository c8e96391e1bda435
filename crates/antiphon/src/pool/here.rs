//! The role of the calling thread: a worker of a pool, or none. A pool and its policy have types
//! here; [`worker`](crate::worker) has what is needed without these.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::Arc;

use antiphon_linux::Linux;
use antiphon_runtime::flight::Event;
use antiphon_runtime::sched::{Crew, Policy, Worker};
use antiphon_runtime::task::{Awaited, Task};
use antiphon_sync::queue::{Full, Item};

use super::shared::Shared;
use crate::fiber::{Host, Next, has_begun, not_here};
use crate::local;
use crate::worker::{Known, known, on_fiber, run};

/// The state of the calling thread while it is a worker: on its stack.
pub(super) struct Here<'a, Y: Policy<Linux>> {
    /// Borrowed while the policy is asked, and not while a task runs.
    pub(super) worker: RefCell<Worker<'a, Linux, Y>>,
    shared: &'a Arc<Shared<Y>>,
}

/// Runs the tasks that a worker has until it has no seat any more, or the crew is closed and there
/// is nothing to do; with fibers, until these have ended, too, or the thread is to have another
/// seat: which one.
pub(super) fn work<'a, Y>(
    shared: &'a Arc<Shared<Y>>,
    worker: Worker<'a, Linux, Y>,
    host: Option<&'a Host>,
) -> Option<usize>
where
    Y: Policy<Linux> + 'static,
{
    let here = Here { worker: RefCell::new(worker), shared };
    let known = Known {
        crew: ptr::from_ref(&shared.crew).cast(),
        here: ptr::from_ref(&here).cast(),
        help: help::<Y>,
        put: push::<Y>,
        has_idle: has_idle::<Y>,
        leave: leave_seat::<Y>,
        record: record::<Y>,
        passes: passes_by::<Y>,
    };
    // SAFETY: all of it is of `here`, which is on this stack, and dropped after the result.
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
        let is_ours = |known: &&Known| ptr::eq(known.crew, ptr::from_ref(crew).cast());
        // A fiber may go on elsewhere, while the policy waits for a lock.
        let ours = known(own).filter(|known| is_ours(known) && !on_fiber(own));
        // SAFETY: `work` has set it, of this crew and so of this type, and is on the stack below
        // us; or below the fiber that we are, which does not wait as one meanwhile.
        let ours = ours.map(|known| unsafe { &*known.here.cast::<Here<'_, Y>>() });
        // Where the policy waits, the thread does: it has borrowed the worker.
        not_here(own, || ask(ours))
    })
}

/// The seat of the calling thread, if it is a worker of this crew and has one.
pub(super) fn seat<Y: Policy<Linux>>(crew: &Crew<Linux, Y>) -> Option<usize> {
    let seat = |here: &Here<'_, Y>| {
        here.worker.try_borrow().ok().filter(|it| it.has_seat()).map(|it| it.seat())
    };
    ask(crew, |here| here.and_then(seat))
}

/// # Safety
///
/// `here` is a `Here<Y>` on this thread's stack.
unsafe fn help<Y: Policy<Linux>>(here: *const (), awaited: &Awaited<'_, Linux>) {
    // SAFETY: the caller's.
    let here = unsafe { &*here.cast::<Here<'_, Y>>() };
    while here.run_one(|worker| worker.next_until(awaited, None)) {}
}

/// # Safety
///
/// `here` is a `Here<Y>` on this thread's stack, and the item is of a task.
unsafe fn push<Y: Policy<Linux>>(here: *const (), item: Item) -> Result<(), Full> {
    // SAFETY: the caller's.
    let here = unsafe { &*here.cast::<Here<'_, Y>>() };
    // The policy that is being asked can't be asked.
    let Ok(mut worker) = here.worker.try_borrow_mut() else { return Err(Full(item)) };
    local::with(|own| {
        not_here(own, || {
            here.shared.kept(worker.push(item))?;
            // The maker of the task goes on with something else.
            worker.share();
            Ok(())
        })
    })
}

/// # Safety
///
/// `here` is a `Here<Y>` on this thread's stack.
unsafe fn leave_seat<Y: Policy<Linux> + 'static>(here: *const ()) {
    // SAFETY: the caller's.
    let Here { worker, shared } = unsafe { &*here.cast::<Here<'_, Y>>() };
    // Not while the policy is being asked.
    if let Ok(mut worker) = worker.try_borrow_mut()
        && worker.has_seat()
    {
        shared.lend(|| worker.leave());
    }
}

/// # Safety
///
/// `crew` is a `Crew<Linux, Y>` of which this thread is a worker.
unsafe fn has_idle<Y: Policy<Linux>>(crew: *const ()) -> bool {
    // SAFETY: the caller's.
    unsafe { &*crew.cast::<Crew<Linux, Y>>() }.has_idle()
}

/// # Safety
///
/// `here` is a `Here<Y>` on this thread's stack.
unsafe fn record<Y: Policy<Linux>>(here: *const (), event: Event) {
    // SAFETY: the caller's.
    let here = unsafe { &*here.cast::<Here<'_, Y>>() };
    // Events of a policy that runs while it is asked are not recorded.
    if let Ok(mut worker) = here.worker.try_borrow_mut() {
        worker.record(event);
    }
}

/// # Safety
///
/// `here` is a `Here<Y>` on this thread's stack.
unsafe fn passes_by<Y: Policy<Linux>>(here: *const (), now_ns: u64) {
    // SAFETY: the caller's.
    let here = unsafe { &*here.cast::<Here<'_, Y>>() };
    if let Ok(mut worker) = here.worker.try_borrow_mut() {
        worker.passes(now_ns);
    }
}

impl<'a, Y: Policy<Linux>> Here<'a, Y> {
    /// Runs the task that `next` has; `false` if it has none, or the policy is being asked.
    pub(super) fn run_one(
        &self,
        next: impl FnOnce(&mut Worker<'a, Linux, Y>) -> Option<Item>,
    ) -> bool {
        let Some(item) = self.worker.try_borrow_mut().ok().and_then(|mut worker| next(&mut worker))
        else {
            return false;
        };
        // A thread that has fibers that have begun runs tasks on stacks only: see
        // `Host::run_or_adopt`.
        debug_assert!(!has_begun(item), "on the thread's stack, nobody would see to it");
        // SAFETY: all items of the crew are of `Shared::put`, and it hands each out once.
        run(unsafe { Task::from_item(item) });
        true
    }

    /// Runs fibers until there are none, and nothing else to do; or until the thread, which has
    /// lost its seat, has another, which is returned. A fiber that has begun stays on its thread:
    /// so though the policy panics, this stays for them, without a seat.
    fn host(&self, host: &Host) -> Option<usize> {
        host.attach();
        let for_seats = || self.shared.bench.wait_beside(host.mail(), || host.wait(None));
        let turns = || {
            if !self.shared.moves {
                let begin = |item| self.begin(host, item);
                return self.take_turns(host, || host.go_on(), begin, for_seats);
            }
            let release = || host.release(|item, goes| self.shared.put_begun(item, goes));
            self.take_turns(host, release, |item| self.begin_or_adopt(host, item), for_seats)
        };
        let panic = match catch_unwind(AssertUnwindSafe(turns)) {
            Ok(seat) => return seat,
            Err(panic) => panic,
        };
        {
            let mut worker = self.worker.borrow_mut();
            // As where a worker leaves: no thread has the seat after it.
            worker.share();
            worker.leave();
        }
        let wait = || {
            host.wait(None);
            None
        };
        // A thread without a seat does not ask the policy.
        self.take_turns(host, || host.go_on(), |item| self.begin(host, item), wait);
        resume_unwind(panic);
    }

    /// Lets fibers go on by `go_on`, and begins one by `begin` if there is a task; waits if there
    /// is neither, without a seat by `wait`. Ends when the thread has no fibers any more, and no
    /// seat, or the crew is closed and there is nothing to do; or with another seat.
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

    #[inline(always)]
    fn begin(&self, host: &Host, item: Item) {
        // SAFETY: as in `run_one`.
        if let Err(task) = host.run(unsafe { Task::from_item(item) }) {
            self.shared.put_refused(task);
            // Others may have stacks.
            self.shared.share();
        }
    }

    fn begin_or_adopt(&self, host: &Host, item: Item) {
        // SAFETY: as in `run_one`; or it is of `put_begun`.
        if let Err(task) = unsafe { host.run_or_adopt(item) } {
            // Not where the policy takes it next again: fibers that have begun give stacks back.
            self.shared.put_outside(task);
        }
    }
}

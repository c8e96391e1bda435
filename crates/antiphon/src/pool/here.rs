//! The role of the calling thread: a worker of some pool, or none.

use std::cell::RefCell;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::thread;

use antiphon_linux::Linux;
use antiphon_platform::Platform as _;
use antiphon_runtime::flight::Event;
use antiphon_runtime::fork::{Aside, Forker, Forks};
use antiphon_runtime::sched::{Crew, Policy, Worker};
use antiphon_runtime::task::{Awaited, Task};
use antiphon_sync::queue::{Full, Item};

use super::shared::Shared;
use crate::budget::may_be_ready;
use crate::fiber::{Host, Next, has_begun, not_here};
use crate::local;

/// The state of the calling thread while it is a worker: on its stack.
pub(super) struct Here<'a, Y: Policy<Linux>> {
    /// Borrowed while the policy is asked, and not while a task runs.
    pub(super) worker: RefCell<Worker<'a, Linux, Y>>,
    shared: &'a Arc<Shared<Y>>,
}

/// The same without a type: on the worker's stack.
struct Known {
    crew: *const (),
    here: *const (),
    help: unsafe fn(*const (), &Awaited<'_, Linux>),
    put: unsafe fn(*const (), Item) -> Result<(), Full>,
    has_idle: unsafe fn(*const ()) -> bool,
    leave: unsafe fn(*const ()),
    record: unsafe fn(*const (), Event),
    passes: unsafe fn(*const (), u64),
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
    local::with(|own| {
        own.here.set(Some(NonNull::from(&known).cast()));
        own.forks.begin();
    });
    // Ends it though the policy panics.
    let _gone = Gone;
    if let Some(host) = host {
        return here.host(host);
    }
    while here.run_one(Worker::next_task) {}
    None
}

struct Gone;

impl Drop for Gone {
    fn drop(&mut self) {
        local::with(|own| own.here.set(None));
    }
}

/// The worker that the calling thread is known as.
#[inline]
fn known<'a>(own: &local::Thread) -> Option<&'a Known> {
    // SAFETY: on the stack of `work`, below us, or below the fiber that we are; `Gone` ends it. The
    // user of the reference does not wait as a fiber, and so is on that thread.
    own.here.get().map(|known| unsafe { known.cast().as_ref() })
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

/// Records what the calling thread has done, if it is a worker of the crew that is there.
pub(super) fn note(crew: *const (), event: Event) {
    if let Some(known) = local::with(known).filter(|known| ptr::eq(known.crew, crew)) {
        // SAFETY: as in `ask`, and `record` is that of the type.
        unsafe { (known.record)(known.here, event) };
    }
}

/// The calling thread, whose fibers went on, has looked at the clock between two of them.
pub(crate) fn passes(now_ns: u64) {
    if let Some(known) = local::with(known) {
        // SAFETY: as in `ask`, and `passes` is that of the type.
        unsafe { (known.passes)(known.here, now_ns) };
    }
}

/// Blocks until `awaited` is done. A worker, of whichever pool, runs other tasks of its own pool
/// while it waits; if the caller is a fiber, the worker under it does. If the fiber is unwinding, a
/// backup thread takes over the worker's seat first. `awaited` is done on return even if that
/// pool's policy panics.
pub(crate) fn wait_for(awaited: &Awaited<'_, Linux>) {
    may_be_ready();
    let _waits = Waits(awaited);
    // The wait blocks its thread, which might have to run the awaited task.
    let (fiber, known) = local::with(|own| (own.fiber.get(), known(own)));
    if fiber.is_some() && thread::panicking() && !awaited.is_over() {
        leave();
    }
    if let Some(known) = known.filter(|_| fiber.is_none() && Linux::waits_on_words()) {
        // SAFETY: as in `ask`, and `help` is that of the type.
        unsafe { (known.help)(known.here, awaited) };
    }
}

/// Lets another thread take the seat of the calling one, if this is a worker, and there is another.
pub(super) fn leave() {
    if let Some(known) = local::with(|own| known(own).filter(|_| !on_fiber(own))) {
        // SAFETY: as in `ask`, and `leave` is that of the type.
        unsafe { (known.leave)(known.here) };
    }
}

struct Waits<'a, 'b>(&'a Awaited<'b, Linux>);

impl Drop for Waits<'_, '_> {
    fn drop(&mut self) {
        self.0.wait();
    }
}

/// Puts a task in by `push`. Hands it back if there is no room.
pub(super) fn put(
    task: Task<Linux>,
    push: impl FnOnce(Item) -> Result<(), Full>,
) -> Result<(), Task<Linux>> {
    let item = task.into_item();
    let Err(Full(back)) = surely(|| push(item)) else {
        return Ok(());
    };
    // SAFETY: it is back: made above, or before.
    let task = unsafe { Task::from_item(back) };
    if back == item {
        return Err(task);
    }
    // A policy may make room by giving back another task: that one has nowhere else to go.
    run(task);
    Ok(())
}

/// Gives a policy a task. If the policy panics, it is unknown where the task is: a waiter for it
/// might wait for ever, and a variable that it borrows might go before it is run. So the process
/// ends.
pub(super) fn surely<R>(give: impl FnOnce() -> R) -> R {
    let ends = Ends;
    let given = give();
    forget(ends);
    given
}

struct Ends;

impl Drop for Ends {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// A task that is run where it was made, inside of others: not as deep as the stack.
pub(super) struct Nested;

/// How many at the most.
const DEPTH: u32 = 64;

impl Nested {
    /// `None`: it is to be run elsewhere, as there are too many; or as the caller is a fiber, the
    /// stack of which is short, and which may end it on another thread.
    pub(super) fn new() -> Option<Self> {
        let depth = local::with(|own| own.nested.get());
        // No fiber may wait on a word.
        (depth < DEPTH && Linux::waits_on_words()).then(|| {
            local::with(|own| own.nested.set(depth + 1));
            Self
        })
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        local::with(|own| own.nested.set(own.nested.get() - 1));
    }
}

/// Whether the caller is a fiber of another runtime, which may move: it is no worker, though its
/// thread is.
fn on_fiber(own: &local::Thread) -> bool {
    // A fiber may not: it would block the thread under it.
    own.fiber.get().is_none() && !Linux::waits_on_words()
}

/// The forks that the calling fiber has made and not begun, until it goes on.
pub(crate) struct Notes(Option<Aside>);

impl Notes {
    /// Takes it away, before others run here.
    pub(crate) fn set_aside() -> Self {
        Self(local::with(|own| own.forks.set_aside()))
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        if let Some(aside) = self.0.take() {
            local::with(|own| own.forks.put_back(aside));
        }
    }
}

/// Runs a task on the stack that the caller is on.
pub(crate) fn run(task: Task<Linux>) {
    // Panics of the task were caught, but not one of a value that the task has to drop.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| task.run())) {
        forget(panic);
    }
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
        shared.bench.lend(shared, || worker.leave());
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

/// The calling thread, of whichever pool it is a worker, as the code that forks knows it.
pub(super) struct Forking;

// SAFETY: a static of the thread.
unsafe impl Forker for Forking {
    type Platform = Linux;
    type Outcome<T> = thread::Result<T>;

    #[inline]
    fn forks<R>(ask: impl FnOnce(&Forks<Linux>) -> R) -> R {
        local::with(|own| ask(&own.forks))
    }

    fn is_worker() -> bool {
        local::with(|own| {
            if known(own).is_none() {
                own.forks.pass_all();
                return false;
            }
            !on_fiber(own)
        })
    }

    fn is_wanted() -> bool {
        // SAFETY: as in `ask`, and `has_idle` is that of the type.
        local::with(known).is_some_and(|known| unsafe { (known.has_idle)(known.crew) })
    }

    fn put(task: Task<Linux>) -> Result<(), Task<Linux>> {
        let Some(known) = local::with(known) else {
            return Err(task);
        };
        // SAFETY: as in `ask`, and `put` is that of the type.
        put(task, |item| unsafe { (known.put)(known.here, item) })
    }

    fn wait(awaited: &Awaited<'_, Linux>) {
        wait_for(awaited);
    }

    fn run<T>(work: impl FnOnce() -> T) -> thread::Result<T> {
        catch_unwind(AssertUnwindSafe(work))
    }

    fn unwrap<T>(outcome: Option<thread::Result<T>>) -> T {
        match outcome {
            Some(Ok(returned)) => returned,
            Some(Err(panic)) => resume_unwind(panic),
            None => panic!("the pool's policy has panicked, and with it went what was forked"),
        }
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

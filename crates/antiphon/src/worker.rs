//! The worker that the calling thread is, whatever its pool and the policy of that: how tasks and
//! forks get to it, and how a wait for a task goes on in other tasks.
//!
//! A worker [shows](Known) itself here while it runs. Promises, joins and fibers need this much of
//! a pool and no more.

use std::marker::PhantomData;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};
use std::thread;

use antiphon_linux::Linux;
use antiphon_platform::WordWaits as _;
use antiphon_runtime::flight::Event;
use antiphon_runtime::fork::{Aside, Forker, Forks};
use antiphon_runtime::task::{Awaited, Task};
use antiphon_sync::queue::{Full, Item};

use crate::budget::may_be_ready;
use crate::local;

/// A worker, whatever the type of its policy.
pub(crate) trait AnyWorker {
    /// Runs tasks until `awaited` is done, or the worker has lost its seat.
    fn help(&self, awaited: &Awaited<'_, Linux>);

    /// Puts the item of a task in that the worker has made, for all workers to find. Hands it back
    /// if there is no room, or the policy is being asked.
    fn put(&self, item: Item) -> Result<(), Full>;

    /// Whether a worker of the pool has nothing to do; may be stale at once.
    fn has_idle(&self) -> bool;

    /// Lets another thread take the seat, if there is another.
    fn leave(&self);

    /// Records what the worker has done.
    fn record(&self, event: Event);

    /// Notes that the fibers of the worker went on, and that the clock was read between two.
    fn passes(&self, now_ns: u64);
}

/// The worker that a thread is: on the stack of that thread.
pub(crate) struct Known<'a> {
    /// The address of its crew. Crews with the same address have workers of the same type.
    pub(crate) crew: *const (),
    pub(crate) worker: &'a dyn AnyWorker,
}

impl Known<'_> {
    /// Makes the calling thread this worker until the result is dropped, though the policy panics.
    ///
    /// # Safety
    ///
    /// The result is dropped, not forgotten. The worker is the `pool::here::Here` of the crew at
    /// that address.
    pub(crate) unsafe fn show(&self) -> Shown<'_> {
        local::with(|own| {
            own.here.set(Some(NonNull::from(self).cast()));
            own.forks.begin();
        });
        Shown(PhantomData)
    }
}

/// The calling thread is a worker.
pub(crate) struct Shown<'a>(PhantomData<&'a Known<'a>>);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        local::with(|own| own.here.set(None));
    }
}

/// The worker that the calling thread is known as.
#[inline]
pub(crate) fn known<'a>(own: &local::Thread) -> Option<&'a Known<'a>> {
    // SAFETY: on the stack of the worker, below us, or below the fiber that we are; `Shown` ends
    // it. The user of the reference does not wait as a fiber, and so is on that thread.
    own.here.get().map(|known| unsafe { known.cast().as_ref() })
}

/// Records what the calling thread has done, if it is a worker of the crew that is there.
pub(crate) fn note(crew: *const (), event: Event) {
    if let Some(known) = local::with(known).filter(|known| ptr::eq(known.crew, crew)) {
        known.worker.record(event);
    }
}

/// The calling thread, whose fibers went on, has looked at the clock between two of them.
pub(crate) fn passes(now_ns: u64) {
    if let Some(known) = local::with(known) {
        known.worker.passes(now_ns);
    }
}

/// Blocks until `awaited` is done. A worker, of whichever pool, runs other tasks of its own pool
/// while it waits; if the caller is a fiber, the worker under it does. If the fiber is unwinding, a
/// backup thread takes over the worker's seat first. `awaited` is done on return even if that
/// pool's policy panics.
pub(crate) fn wait_for(awaited: &Awaited<'_, Linux>) {
    may_be_ready();
    if awaited.is_over() {
        return;
    }
    let _waits = Waits(awaited);
    // The wait blocks its thread, which might have to run the awaited task.
    let (fiber, known) = local::with(|own| (own.fiber.get(), known(own)));
    if fiber.is_some() && thread::panicking() {
        leave();
    }
    if let Some(known) = known.filter(|_| fiber.is_none() && Linux::waits_on_words()) {
        known.worker.help(awaited);
    }
}

/// Lets another thread take the seat of the calling one, if this is a worker, and there is another.
pub(crate) fn leave() {
    if let Some(known) = local::with(|own| known(own).filter(|_| !on_fiber(own))) {
        known.worker.leave();
    }
}

struct Waits<'a, 'b>(&'a Awaited<'b, Linux>);

impl Drop for Waits<'_, '_> {
    fn drop(&mut self) {
        self.0.wait();
    }
}

/// The task that a policy was given as `item`, if it was refused. What was handed back is a task
/// that has not begun.
#[inline]
pub(crate) fn refused(item: Item, put: Result<(), Full>) -> Result<(), Task<Linux>> {
    let Err(Full(back)) = put else {
        return Ok(());
    };
    // SAFETY: the policy was given it, and hands it back: it was made of a task.
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
#[inline(always)]
pub(crate) fn surely<R>(give: impl FnOnce() -> R) -> R {
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
pub(crate) struct Nested;

/// How many at the most.
const DEPTH: u32 = 64;

impl Nested {
    /// `None`: it is to be run elsewhere, as there are too many; or as the caller is a fiber, the
    /// stack of which is short, and which may end it on another thread.
    pub(crate) fn new() -> Option<Self> {
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
pub(crate) fn on_fiber(own: &local::Thread) -> bool {
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

/// The calling thread, of whichever pool it is a worker, as the code that forks knows it.
pub(crate) struct Forking;

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
        local::with(known).is_some_and(|known| known.worker.has_idle())
    }

    fn put(task: Task<Linux>) -> Result<(), Task<Linux>> {
        let Some(known) = local::with(known) else {
            return Err(task);
        };
        let item = task.into_item();
        refused(item, surely(|| known.worker.put(item)))
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
            None => panic!("the pool's policy has panicked, and the forked closure is lost"),
        }
    }
}

//! The calling thread's worker, without the type of its pool's policy: how tasks and forks reach
//! it, and how it runs other tasks while it waits for a task.
//!
//! A worker [registers](Known) itself here while it runs. Promises, joins and fibers need no more
//! of a pool than this.

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

/// A worker with any type of policy.
pub(crate) trait AnyWorker {
    /// Runs tasks until `awaited` is done, or the worker has lost its seat.
    fn help(&self, awaited: &Awaited<'_, Linux>);

    /// Queues the item of a task that the worker has made, for all workers to find. Hands it back
    /// if there is no room, or the policy is deciding.
    fn put(&self, item: Item) -> Result<(), Full>;

    /// Returns whether a worker of the pool is idle. May be stale at once.
    fn has_idle(&self) -> bool;

    /// Lets another thread take the seat, if there is another.
    fn leave(&self);

    /// Records an event of the worker.
    fn record(&self, event: Event);

    /// Records that fibers of the worker have run, and that the clock was read between two of them.
    fn passes(&self, now_ns: u64);
}

/// The worker of a thread, kept on the stack of that thread.
pub(crate) struct Known<'a> {
    /// The address of its crew. Crews with the same address have workers of the same type.
    pub(crate) crew: *const (),
    pub(crate) worker: &'a dyn AnyWorker,
}

impl Known<'_> {
    /// Makes the calling thread this worker until the result is dropped, even if the policy panics.
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

/// Keeps the calling thread a worker until dropped.
pub(crate) struct Shown<'a>(PhantomData<&'a Known<'a>>);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        local::with(|own| own.here.set(None));
    }
}

/// Returns the worker of the calling thread, if it is one.
#[inline]
pub(crate) fn known<'a>(own: &local::Thread) -> Option<&'a Known<'a>> {
    // SAFETY: it is on the stack of the worker, below us, or below the fiber that we are; `Shown`
    // clears it. The user of the reference does not wait as a fiber, and so stays on that thread.
    own.here.get().map(|known| unsafe { known.cast().as_ref() })
}

/// Records an event of the calling thread, if it is a worker of the crew at that address.
pub(crate) fn note(crew: *const (), event: Event) {
    if let Some(known) = local::with(known).filter(|known| ptr::eq(known.crew, crew)) {
        known.worker.record(event);
    }
}

/// Records that fibers of the calling thread have run, and that it has read the clock between two
/// of them.
pub(crate) fn passes(now_ns: u64) {
    if let Some(known) = local::with(known) {
        known.worker.passes(now_ns);
    }
}

/// Blocks until `awaited` is done. A worker of any pool runs other tasks of its own pool while it
/// waits; if the caller is a fiber, the worker under it does. If the fiber is unwinding, a backup
/// thread takes over the worker's seat first. `awaited` is done on return even if that pool's
/// policy panics.
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

/// Lets another thread take the seat of the calling thread, if that is a worker and there is
/// another thread.
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

/// Returns the task that a policy was given as `item`, as an error, if it was refused. An item that
/// was handed back must be a task that has not begun.
#[inline]
pub(crate) fn refused(item: Item, put: Result<(), Full>) -> Result<(), Task<Linux>> {
    let Err(Full(back)) = put else {
        return Ok(());
    };
    // SAFETY: the policy hands back an item that it was given, which was made of a task.
    let task = unsafe { Task::from_item(back) };
    if back == item {
        return Err(task);
    }
    // A policy may make room by handing back another task, which has no other place to go.
    run(task);
    Ok(())
}

/// Gives a task to a policy. If the policy panics, it is unknown where the task is: a waiter for it
/// might wait for ever, and a variable that it borrows might be dropped before it runs. So the
/// process is aborted.
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

/// Counts a task that is run where it was spawned, inside of others. The depth is limited, because
/// the stack is.
pub(crate) struct Nested;

/// Maximum depth of nested tasks.
const DEPTH: u32 = 64;

impl Nested {
    /// Returns `None` if the task must run elsewhere: because too many are nested, or because the
    /// caller is a fiber, whose stack is short, and which may end the task on another thread.
    pub(crate) fn new() -> Option<Self> {
        let depth = local::with(|own| own.nested.get());
        // A fiber must not wait on a word.
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

/// Returns whether the caller is a fiber of another runtime, which may move: it is not a worker,
/// although its thread is.
pub(crate) fn on_fiber(own: &local::Thread) -> bool {
    // A fiber must not wait on words: it would block the thread under it.
    own.fiber.get().is_none() && !Linux::waits_on_words()
}

/// The forks that the calling fiber has made and not begun, set aside until it continues.
pub(crate) struct Notes(Option<Aside>);

impl Notes {
    /// Takes the forks away before others run on the thread. They are put back on drop.
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

/// Runs a task on the caller's stack.
pub(crate) fn run(task: Task<Linux>) {
    // Panics of the task were caught, but not a panic of a value that the task has to drop.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| task.run())) {
        forget(panic);
    }
}

/// The calling thread, a worker of any pool, as an implementation of [`Forker`].
pub(crate) struct Forking;

// SAFETY: the forks are in a thread-local.
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

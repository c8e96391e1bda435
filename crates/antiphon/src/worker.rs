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
use antiphon_platform::Platform as _;
use antiphon_runtime::flight::Event;
use antiphon_runtime::fork::{Aside, Forker, Forks};
use antiphon_runtime::task::{Awaited, Task};
use antiphon_sync::queue::{Full, Item};

use crate::budget::may_be_ready;
use crate::local;

/// A worker without the type of its policy: on its thread's stack.
pub(crate) struct Known {
    pub(crate) crew: *const (),
    pub(crate) here: *const (),
    pub(crate) help: unsafe fn(*const (), &Awaited<'_, Linux>),
    pub(crate) put: unsafe fn(*const (), Item) -> Result<(), Full>,
    pub(crate) has_idle: unsafe fn(*const ()) -> bool,
    pub(crate) leave: unsafe fn(*const ()),
    pub(crate) record: unsafe fn(*const (), Event),
    pub(crate) passes: unsafe fn(*const (), u64),
}

impl Known {
    /// Makes the calling thread this worker until the result is dropped, though the policy panics.
    ///
    /// # Safety
    ///
    /// The addresses and functions are of one worker, which stays until the result is dropped; and
    /// that is dropped, not forgotten.
    pub(crate) unsafe fn show(&self) -> Shown<'_> {
        local::with(|own| {
            own.here.set(Some(NonNull::from(self).cast()));
            own.forks.begin();
        });
        Shown(PhantomData)
    }
}

/// The calling thread is a worker.
pub(crate) struct Shown<'a>(PhantomData<&'a Known>);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        local::with(|own| own.here.set(None));
    }
}

/// The worker that the calling thread is known as.
#[inline]
pub(crate) fn known<'a>(own: &local::Thread) -> Option<&'a Known> {
    // SAFETY: on the stack of the worker, below us, or below the fiber that we are; `Shown` ends
    // it. The user of the reference does not wait as a fiber, and so is on that thread.
    own.here.get().map(|known| unsafe { known.cast().as_ref() })
}

/// Records what the calling thread has done, if it is a worker of the crew that is there.
pub(crate) fn note(crew: *const (), event: Event) {
    if let Some(known) = local::with(known).filter(|known| ptr::eq(known.crew, crew)) {
        // SAFETY: as in `known`, and `record` is that of the type.
        unsafe { (known.record)(known.here, event) };
    }
}

/// The calling thread, whose fibers went on, has looked at the clock between two of them.
pub(crate) fn passes(now_ns: u64) {
    if let Some(known) = local::with(known) {
        // SAFETY: as in `known`, and `passes` is that of the type.
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
        // SAFETY: as in `known`, and `help` is that of the type.
        unsafe { (known.help)(known.here, awaited) };
    }
}

/// Lets another thread take the seat of the calling one, if this is a worker, and there is another.
pub(crate) fn leave() {
    if let Some(known) = local::with(|own| known(own).filter(|_| !on_fiber(own))) {
        // SAFETY: as in `known`, and `leave` is that of the type.
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
pub(crate) fn put(
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
        // SAFETY: as in `known`, and `has_idle` is that of the type.
        local::with(known).is_some_and(|known| unsafe { (known.has_idle)(known.crew) })
    }

    fn put(task: Task<Linux>) -> Result<(), Task<Linux>> {
        let Some(known) = local::with(known) else {
            return Err(task);
        };
        // SAFETY: as in `known`, and `put` is that of the type.
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

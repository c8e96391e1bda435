//! Fork and join: two closures, the second of which may run on another worker if that pays.
//!
//! A fork is two calls. Sometimes it leaves a note on the stack, which names its second closure;
//! once per beat, and if a worker is idle, the oldest note is made a [`Task`]. So a fork costs
//! nanoseconds, and however fine the forks are, making tasks of them costs a bounded share of the
//! time.
//!
//! | file | contents |
//! |---|---|
//! | `forks` | the notes of a thread, and when one is made a task |
//! | `note` | a note: the second closure of a fork |
//!
//! After Acar, Charguéraud, Guatto, Rainey and Sieczkowski, "Heartbeat scheduling: provable
//! efficiency for nested parallelism" (PLDI 2018). There a signal, and in other libraries a thread,
//! announces the beat; here the thread reads the clock after a number of forks that makes this a
//! small part of a beat. While all workers are busy, no notification is needed.

mod forks;
mod note;

use antiphon_platform::{Hints as _, Platform};

use crate::task::{Awaited, Task};

pub use forks::{Aside, Forks};

use note::Note;

/// The calling thread as a worker, for code that forks on it.
///
/// # Safety
///
/// [`forks`](Self::forks) belong to the calling thread, and are always the same: notes on its stack
/// are linked there.
pub unsafe trait Forker: Sized {
    /// The platform of the worker.
    type Platform: Platform;
    /// The result of a closure: the value that it returned, or its panic.
    type Outcome<T>;

    /// Calls `ask` with the notes of the calling thread.
    fn forks<R>(ask: impl FnOnce(&Forks<Self::Platform>) -> R) -> R;

    /// Returns whether the caller is a worker: if not, no note is made a task. If its thread is not
    /// a worker, the implementation may call [`pass_all`](Forks::pass_all) on the notes.
    fn is_worker() -> bool;

    /// Returns whether a worker is idle. Called once per beat.
    fn is_wanted() -> bool;

    /// Returns the length of a beat, in nanoseconds: waking a worker costs at most a fifth of the
    /// time between two tasks.
    fn beat_ns() -> u64 {
        5 * u64::from(Self::Platform::sleep_cost_ns())
    }

    /// Submits a task, so that idle workers find it.
    ///
    /// # Errors
    ///
    /// The task, if there is no room.
    fn put(task: Task<Self::Platform>) -> Result<(), Task<Self::Platform>>;

    /// Waits for `awaited`; runs other tasks meanwhile.
    fn wait(awaited: &Awaited<'_, Self::Platform>);

    /// Runs a closure. Does not panic.
    fn run<T>(work: impl FnOnce() -> T) -> Self::Outcome<T>;

    /// Returns the value of a closure; resumes its panic if it has panicked. `None`: it was never
    /// run.
    fn unwrap<T>(outcome: Option<Self::Outcome<T>>) -> T;
}

/// Runs both closures, the second perhaps on another worker in parallel; returns both results.
///
/// If one of them panics, this panics when both are done.
#[inline]
pub fn join<F, A, B, RA, RB>(first: A, second: B) -> (RA, RB)
where
    F: Forker,
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
    F::Outcome<RB>: Send,
{
    if F::forks(Forks::passes) {
        return (first(), second());
    }
    noted::<F, A, B, RA, RB>(first, second)
}

/// A fork that leaves a note.
#[inline(never)]
fn noted<F, A, B, RA, RB>(first: A, second: B) -> (RA, RB)
where
    F: Forker,
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
    F::Outcome<RB>: Send,
{
    if !F::is_worker() {
        return (first(), second());
    }
    let note = Note::<F, B, RB>::new(second);
    // SAFETY: the note stays in place, and `settle` or its drop takes it away again, in reverse
    // order, because all calls in between have returned.
    let left = unsafe { note.leave() };
    F::forks(Forks::tick::<F>);
    // A panic of the first closure waits: tasks that run meanwhile belong to others.
    let returned = F::run(first);
    let settled = left.settle();
    (F::unwrap(Some(returned)), F::unwrap(settled))
}

//! Fork and join: two closures, of which another worker runs the second if that pays.
//!
//! A fork is two calls. Now and then it leaves behind a note on the stack that says what is to be
//! run second; once a beat, and if a worker has nothing to do, the oldest note is made a [`Task`].
//! So a fork costs nanoseconds, and however fine the forks are, making tasks of them costs a fixed
//! share of the time.
//!
//! | file | what is in it |
//! |---|---|
//! | `forks` | the notes of a thread, and when one is made a task |
//! | `note` | a note: what is to be run second |
//!
//! After Acar, Charguéraud, Guatto, Rainey and Sieczkowski, "Heartbeat scheduling: provable
//! efficiency for nested parallelism" (PLDI 2018). There a signal, and in others' libraries a
//! thread, tells of the beat; here the thread looks at the clock after a number of forks that makes
//! this a small part of a beat. While all workers are busy, no notification is needed.

mod forks;
mod note;

use antiphon_platform::{Hints as _, Platform};

use crate::task::{Awaited, Task};

pub use forks::{Aside, Forks};

use note::Note;

/// The worker that the calling thread is, for code that forks on it.
///
/// # Safety
///
/// [`forks`](Self::forks) are the calling thread's, and always the same: notes of its stack are on
/// them.
pub unsafe trait Forker: Sized {
    /// The platform of the worker.
    type Platform: Platform;
    /// The value that a closure has returned, or that it has panicked.
    type Outcome<T>;

    /// Calls `ask` with the notes of the calling thread.
    fn forks<R>(ask: impl FnOnce(&Forks<Self::Platform>) -> R) -> R;

    /// Whether the caller is a worker: if not, nothing is made a task. If its thread is none, the
    /// implementation may tell the notes to [`pass_all`](Forks::pass_all).
    fn is_worker() -> bool;

    /// Whether a worker has nothing to do. Asked once a beat.
    fn is_wanted() -> bool;

    /// A beat, in nanoseconds: of the time between two tasks, what waking a worker costs is a fifth
    /// at most.
    fn beat_ns() -> u64 {
        5 * u64::from(Self::Platform::sleep_cost_ns())
    }

    /// Puts a task where idle workers find it.
    ///
    /// # Errors
    ///
    /// The task, if there is no room.
    fn put(task: Task<Self::Platform>) -> Result<(), Task<Self::Platform>>;

    /// Waits; runs other tasks meanwhile.
    fn wait(awaited: &Awaited<'_, Self::Platform>);

    /// Runs a closure. Does not panic.
    fn run<T>(work: impl FnOnce() -> T) -> Self::Outcome<T>;

    /// The value that the closure has returned; panics if it has. `None`: it was never run.
    fn unwrap<T>(outcome: Option<Self::Outcome<T>>) -> T;
}

/// Runs both closures, the second perhaps on another worker meanwhile; returns what they return.
///
/// If one of them panics, so does this, when both are done.
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
    // SAFETY: the note stays where it is, and `settle` or its drop takes it away again: the last
    // first, because all calls between have returned.
    let left = unsafe { note.leave() };
    F::forks(Forks::tick::<F>);
    // A panic of the first closure waits: what is run meanwhile belongs to others.
    let returned = F::run(first);
    let settled = left.settle();
    (F::unwrap(Some(returned)), F::unwrap(settled))
}

//! Fork and join: two closures, of which the second is run by somebody else if that pays.
//!
//! A fork is two calls. What it leaves behind, now and then, is a note on the stack that says what
//! is to be run second; once a beat, and if a worker has nothing to do, the oldest note is made a
//! [`Task`]. So a fork costs nanoseconds, and however fine the forks are, what is made tasks of
//! them costs a fixed share of the time.
//!
//! | file | what is in it |
//! |---|---|
//! | `forks` | the notes of a thread, and when one is made a task |
//! | `note` | a note: what is to be run second |
//!
//! After Acar, Charguéraud, Guatto, Rainey and Sieczkowski, "Heartbeat scheduling: provable
//! efficiency for nested parallelism" (PLDI 2018). There a signal, and in others' libraries a
//! thread, tells of the beat; here it is a look at the clock each so many forks, so many that it is
//! a small part of a beat. Nothing is to be told where all work.

mod forks;
mod note;

use antiphon_platform::Platform;

use crate::task::{Awaited, Task};

pub use forks::{Aside, Forks};

use note::Note;

/// The worker that the calling thread is, for those who fork on it.
///
/// # Safety
///
/// [`forks`](Self::forks) are the calling thread's, and always the same: notes of its stack are on
/// them.
pub unsafe trait Forker: Sized {
    /// Where it runs.
    type Platform: Platform;
    /// What a closure has returned, or that it has panicked.
    type Outcome<T>;

    /// Has `ask` ask the notes of the calling thread.
    fn forks<R>(ask: impl FnOnce(&Forks<Self::Platform>) -> R) -> R;

    /// Whether the caller is a worker: if not, nothing is made a task. If its thread is none, that
    /// may be told to [`pass_all`](Forks::pass_all).
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
    /// If there is no room: the task.
    fn put(task: Task<Self::Platform>) -> Result<(), Task<Self::Platform>>;

    /// Waits; runs other tasks meanwhile.
    fn wait(awaited: &Awaited<'_, Self::Platform>);

    /// Runs a closure. Does not panic.
    fn run<T>(work: impl FnOnce() -> T) -> Self::Outcome<T>;

    /// What the closure has returned; panics if it has. `None`: it was never run.
    fn unwrap<T>(outcome: Option<Self::Outcome<T>>) -> T;
}

/// Runs both, the second perhaps on another worker meanwhile; returns what they return.
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
    // first, as all calls between have returned.
    let left = unsafe { note.leave() };
    F::forks(Forks::tick::<F>);
    // Its panic waits: what is run meanwhile is others'.
    let returned = F::run(first);
    let settled = left.settle();
    (F::unwrap(Some(returned)), F::unwrap(settled))
}

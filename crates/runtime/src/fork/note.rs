//! A note: the second closure of a fork, on the stack of the forking thread.
//!
//! | state of the note | `work` | `handle` | `task` |
//! |---|---|---|---|
//! | nothing yet | some | none | none |
//! | a task that others find | none | some | none |
//! | a task for which there was no room | none | some | some |

use core::cell::Cell;
use core::ptr::NonNull;

use super::Forker;
use super::forks::Link;
use crate::task::{Handle, Heap, Task};

#[repr(C)]
pub(super) struct Note<F: Forker, B, R: Send> {
    link: Link,
    work: Cell<Option<B>>,
    handle: Cell<Option<Awaits<F, R>>>,
    task: Cell<Option<Task<F::Platform>>>,
}

/// The handle by which the forker waits for the task that a note was made.
type Awaits<F, R> = Handle<<F as Forker>::Platform, <F as Forker>::Outcome<R>>;

/// A note that was left. When this is dropped, the second closure is dropped, or has been run.
pub(super) struct Left<'a, F: Forker, B, R: Send>(&'a Note<F, B, R>);

impl<F, B, R> Note<F, B, R>
where
    F: Forker,
    B: FnOnce() -> R + Send,
    R: Send,
    F::Outcome<R>: Send,
{
    pub(super) fn new(work: B) -> Self {
        Self {
            link: Link::new(promote::<F, B, R>),
            work: Cell::new(Some(work)),
            handle: Cell::new(None),
            task: Cell::new(None),
        }
    }

    /// Leaves the note among those of the thread.
    ///
    /// # Safety
    ///
    /// The returned value is settled or dropped, before that of any note that was left earlier.
    pub(super) unsafe fn leave(&self) -> Left<'_, F, B, R> {
        // The address of the whole note: `promote` gets from the link back to the note.
        let link = NonNull::from(self).cast();
        // SAFETY: the returned value borrows the note, and takes it away in the order that the
        // caller ensures.
        F::forks(|forks| unsafe { forks.push(link) });
        Left(self)
    }
}

impl<F, B, R> Left<'_, F, B, R>
where
    F: Forker,
    B: FnOnce() -> R + Send,
    R: Send,
    F::Outcome<R>: Send,
{
    /// Called when the first closure is done: runs the second, or waits for the worker that does.
    /// Returns its outcome; `None` if it was never run.
    pub(super) fn settle(self) -> Option<F::Outcome<R>> {
        let note = self.0;
        if F::forks(|forks| forks.pop(&note.link)) {
            core::mem::forget(self);
            F::forks(super::Forks::tick::<F>);
            return Some(F::run(note.work.take().expect("no other thread has taken it")));
        }
        self.wait();
        note.handle.take().expect("it was made a task").take()
    }
}

impl<F: Forker, B, R: Send> Left<'_, F, B, R> {
    /// Waits until the task that was made of the note is done.
    fn wait(&self) {
        let note = self.0;
        if let Some(task) = note.task.take() {
            task.run();
        }
        if let Some(mut handle) = note.handle.take() {
            F::wait(&handle.awaited());
            // Normally the task is done; a forker may return too early.
            handle.awaited().wait();
            note.handle.set(Some(handle));
        }
    }
}

impl<F: Forker, B, R: Send> Drop for Left<'_, F, B, R> {
    fn drop(&mut self) {
        let note = self.0;
        if !F::forks(|forks| forks.pop(&note.link)) {
            // No worker has begun the task, and none will.
            drop(note.task.take());
            self.wait();
        }
    }
}

/// Makes a note a task.
///
/// # Safety
///
/// The link belongs to a `Note<F, B, R>` of the calling thread, which exists until the task is
/// done, and was not made a task before.
unsafe fn promote<F, B, R>(link: NonNull<Link>)
where
    F: Forker,
    B: FnOnce() -> R + Send,
    R: Send,
    F::Outcome<R>: Send,
{
    // SAFETY: the caller's contract; the link is the first field.
    let note = unsafe { link.cast::<Note<F, B, R>>().as_ref() };
    let work = note.work.take().expect("the first time");
    // SAFETY: the fork waits for the task in all cases.
    let (task, handle) = unsafe { Task::borrowing_new_in(Heap, move || F::run(work)) };
    note.handle.set(Some(handle));
    note.task.set(F::put(task).err());
}

//! Events: when they are due, which callback they have, and their name in reports.

use core::fmt;
use core::marker::PhantomData;
use core::panic::Location;

use super::context::{Callback, Context};
use super::name::Name;
use super::step::{Due, Step};
use super::task::{Spawned, Task};
use super::wait::Wait;

/// A unit of work for a loop; see [`EventLoop::submit`](super::EventLoop::submit).
pub struct Event<W, C> {
    pub(super) due: Due,
    pub(super) name: Name,
    pub(super) callback: C,
    wait: PhantomData<fn(W)>,
}

/// A closure that is called once.
#[derive(Debug)]
pub struct Once<F>(Option<F>);

/// A closure that is called for each step.
#[derive(Debug)]
pub struct Steps<F>(F);

impl<W: Wait> Event<W, ()> {
    /// Calls `callback` when it is due, and again as its [`Step`] says: for code that closures
    /// can't express.
    #[track_caller]
    pub fn new<C: Callback<W>>(due: Due, callback: C) -> Event<W, C> {
        Event::made(due, callback)
    }

    /// Runs `callback` once, from `release_ns` on. It is never skipped, however late it is, unless
    /// it is cancelled.
    #[track_caller]
    pub fn timer<F>(release_ns: u64, callback: F) -> Event<W, Once<F>>
    where
        F: FnOnce(&mut Context<'_, W>) + 'static,
    {
        Event::made(Due::Release(release_ns), Once(Some(callback)))
    }

    /// Runs `callback` once, when no timer is due and nothing is more important: `importance` is
    /// its user virtual time; the least runs first.
    #[track_caller]
    pub fn best_effort<F>(importance: u64, callback: F) -> Event<W, Once<F>>
    where
        F: FnOnce(&mut Context<'_, W>) + 'static,
    {
        Event::made(Due::Importance(importance), Once(Some(callback)))
    }

    /// Runs `callback` from `release_ns` on, and again as it returns: [`Step::At`] is the next
    /// release of a periodic event.
    #[track_caller]
    pub fn timer_in_steps<F>(release_ns: u64, callback: F) -> Event<W, Steps<F>>
    where
        F: FnMut(&mut Context<'_, W>) -> Step + 'static,
    {
        Event::made(Due::Release(release_ns), Steps(callback))
    }

    /// Runs `callback` as best effort, and again as it returns: long work returns [`Step::More`]
    /// when its [budget](Context::is_over) is over.
    #[track_caller]
    pub fn best_effort_in_steps<F>(importance: u64, callback: F) -> Event<W, Steps<F>>
    where
        F: FnMut(&mut Context<'_, W>) -> Step + 'static,
    {
        Event::made(Due::Importance(importance), Steps(callback))
    }

    /// Runs `callback` as best effort whenever it was [woken](super::EventLoop::wake): for the
    /// callback of a source, which returns [`Step::Asleep`] to be called again.
    #[track_caller]
    pub fn when_woken<F>(importance: u64, callback: F) -> Event<W, Steps<F>>
    where
        F: FnMut(&mut Context<'_, W>) -> Step + 'static,
    {
        Event::made(Due::Woken(importance), Steps(callback))
    }

    /// Runs a future, which `make` makes on the loop's thread. It is polled as best effort when it
    /// is woken, and as a timer at the end of each [`sleep_until`](Task::sleep_until).
    #[track_caller]
    pub fn task<M, F>(importance: u64, make: M) -> Event<W, Spawned<W, M, F>>
    where
        M: FnOnce(Task) -> F + 'static,
        F: Future<Output = ()> + 'static,
    {
        Event::made(Due::Importance(importance), Spawned::new(importance, make))
    }
}

impl<W, C> Event<W, C> {
    #[track_caller]
    fn made(due: Due, callback: C) -> Self {
        Self { due, name: Name::Place(Location::caller()), callback, wait: PhantomData }
    }

    /// Sets the name under which the event counts in reports; the default is the place where it was
    /// made.
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        Self { name: Name::Given(name), ..self }
    }
}

impl<W: Wait, F: FnOnce(&mut Context<'_, W>) + 'static> Callback<W> for Once<F> {
    fn call(&mut self, context: &mut Context<'_, W>) -> Step {
        if let Some(callback) = self.0.take() {
            callback(context);
        }
        Step::Done
    }
}

impl<W: Wait, F: FnMut(&mut Context<'_, W>) -> Step + 'static> Callback<W> for Steps<F> {
    fn call(&mut self, context: &mut Context<'_, W>) -> Step {
        (self.0)(context)
    }
}

impl<W, C> fmt::Debug for Event<W, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("name", &self.name).field("due", &self.due).finish()
    }
}

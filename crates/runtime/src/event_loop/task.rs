//! Futures on a loop.
//!
//! A task is an event that sleeps until it is woken, or until a given time: then it is called as a
//! timer, so the code after a [`sleep_until`](Task::sleep_until) is as timely as other timers.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::sync::{Arc, Weak};
use alloc::task::Wake;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::future::poll_fn;
use core::marker::PhantomData;
use core::pin::Pin;
use core::sync::atomic::Ordering::{AcqRel, Acquire};
use core::task::{Poll, Waker};

use antiphon_platform::{Atomic, Atomics};

use super::context::{Callback, Context};
use super::inbox::{Post, Shared};
use super::step::{EventId, Step};
use super::wait::Wait;

/// The access of a future to its task. It belongs to the loop's thread; clones refer to the same
/// task.
#[derive(Clone)]
pub struct Task(Rc<Local>);

struct Local {
    id: u64,
    now_ns: fn() -> u64,
    importance: Cell<u64>,
    until_ns: Cell<u64>,
    /// The wakers of the sleeping futures, by release and a unique number.
    sleepers: RefCell<BTreeMap<(u64, u64), Waker>>,
    next: Cell<u64>,
}

/// Wakes a task, from any thread.
struct Alarm<W: Wait> {
    /// Weak: a waker that is kept for long does not keep the loop's memory.
    shared: Weak<Shared<W>>,
    id: u64,
    /// Whether a wake was posted after the task was last polled: 0 or 1.
    woken: <W::Platform as Atomics>::U32,
}

/// The callback of a task's event.
pub struct Spawned<W: Wait, M, F> {
    importance: u64,
    state: State<W, M, F>,
    wait: PhantomData<fn(W)>,
}

enum State<W: Wait, M, F> {
    Unmade(M),
    Polled(Polled<W, F>),
    Over,
}

/// Boxed: the future was made on the loop's thread, and stays there.
struct Polled<W: Wait, F> {
    future: Pin<Box<F>>,
    task: Task,
    alarm: Arc<Alarm<W>>,
    waker: Waker,
}

// SAFETY: it is sent only before its future is made: after that only the loop calls it, and never
// gives it to another thread.
unsafe impl<W: Wait, M: Send, F> Send for Spawned<W, M, F> {}

impl<W: Wait> Wake for Alarm<W> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Release: the poll sees what the waker did before; pairs with the acquire in `call`, also
        // if another thread has posted. Acquire: so that the poll sees what earlier wakers did.
        // mutant: no model polls a future on a loop.
        if self.woken.swap(1, AcqRel) == 0
            && let Some(shared) = self.shared.upgrade()
        {
            // A loop that is gone has dropped the task.
            drop(shared.post(Post::Wake { id: self.id, importance: None }));
        }
    }
}

impl<W: Wait, M, F> Spawned<W, M, F> {
    pub(super) const fn new(importance: u64, make: M) -> Self {
        Self { importance, state: State::Unmade(make), wait: PhantomData }
    }
}

impl<W, M, F> Spawned<W, M, F>
where
    W: Wait,
    M: FnOnce(Task) -> F + 'static,
    F: Future<Output = ()> + 'static,
{
    /// Makes the future, on the loop's thread.
    fn begin(&mut self, context: &Context<'_, W>) {
        let State::Unmade(make) = core::mem::replace(&mut self.state, State::Over) else { return };
        let EventId(id) = context.id();
        let task = Task(Rc::new(Local {
            id,
            now_ns: W::now_ns,
            importance: Cell::new(self.importance),
            until_ns: Cell::new(0),
            sleepers: RefCell::default(),
            next: Cell::new(0),
        }));
        let shared = Arc::downgrade(&context.events.shared);
        let alarm = Arc::new(Alarm { shared, id, woken: Atomic::ZERO });
        let (future, waker) = (Box::pin(make(task.clone())), Waker::from(alarm.clone()));
        self.state = State::Polled(Polled { future, task, alarm, waker });
    }
}

impl<W, M, F> Callback<W> for Spawned<W, M, F>
where
    W: Wait,
    M: FnOnce(Task) -> F + 'static,
    F: Future<Output = ()> + 'static,
{
    fn call(&mut self, context: &mut Context<'_, W>) -> Step {
        if matches!(self.state, State::Unmade(_)) {
            self.begin(context);
        }
        let State::Polled(polled) = &mut self.state else { return Step::Done };
        let local = &polled.task.0;
        local.until_ns.set(context.until_ns());
        // Before the poll: a wake from now on is a new one. Acquire: pairs with the release in
        // `wake_by_ref`.
        // mutant: as there.
        polled.alarm.woken.swap(0, Acquire);
        local.wake_due(&polled.waker);
        let mut with = core::task::Context::from_waker(&polled.waker);
        if polled.future.as_mut().poll(&mut with).is_ready() {
            self.state = State::Over;
            return Step::Done;
        }
        context.events.set_importance(local.importance.get());
        let first = local.sleepers.borrow().first_key_value().map(|((at_ns, _), _)| *at_ns);
        first.map_or(Step::Asleep, Step::At)
    }
}

impl Local {
    /// Wakes the futures whose release has passed, except that of the task itself, which is polled
    /// anyway.
    fn wake_due(&self, own: &Waker) {
        let now_ns = (self.now_ns)();
        loop {
            let mut sleepers = self.sleepers.borrow_mut();
            let Some(first) = sleepers.first_entry() else { return };
            if first.key().0 > now_ns {
                return;
            }
            let waker = first.remove();
            // The waker's code may call back into this list.
            drop(sleepers);
            if !waker.will_wake(own) {
                waker.wake();
            }
        }
    }
}

/// A sleeping future; removed from the list when this is dropped.
struct Sleeper<'a>(&'a Local, (u64, u64));

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        let waker = self.0.sleepers.borrow_mut().remove(&self.1);
        // Dropping the waker may call back into this list.
        drop(waker);
    }
}

impl Task {
    /// Returns the event that polls the future.
    #[must_use]
    pub fn id(&self) -> EventId {
        EventId(self.0.id)
    }

    /// Returns the time of the loop's clock, in nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        (self.0.now_ns)()
    }

    /// Waits until `at_ns`. The code after it is called as a timer with that release. Must be
    /// awaited in the task's own future: another task would not be woken.
    pub async fn sleep_until(&self, at_ns: u64) {
        let local = &*self.0;
        local.next.set(local.next.get() + 1);
        let sleeper = Sleeper(local, (at_ns, local.next.get()));
        poll_fn(|context| {
            if (local.now_ns)() >= at_ns {
                return Poll::Ready(());
            }
            let waker = context.waker().clone();
            let before = local.sleepers.borrow_mut().insert(sleeper.1, waker);
            drop(before);
            Poll::Pending
        })
        .await;
    }

    /// Sets the user virtual time of the code after the next wait.
    pub fn set_importance(&self, importance: u64) {
        self.0.importance.set(importance);
    }

    /// Lets other events run that are due, or at least as important.
    pub async fn yield_now(&self) {
        let mut yielded = false;
        poll_fn(|context| {
            if core::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Like [`yield_now`](Self::yield_now), but only if the time until which the task may go on is
    /// over: for tasks that compute.
    pub async fn checkpoint(&self) {
        if self.0.until_ns.get() <= self.now_ns() {
            self.yield_now().await;
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Task").field(&self.0.id).finish()
    }
}

impl<W: Wait, M, F> fmt::Debug for Spawned<W, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spawned")
    }
}

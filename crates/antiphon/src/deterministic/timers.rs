//! Timers of a run: a thread of the run wakes sleepers in the order of time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::mem::take;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use antiphon_platform::{Clock, Deadline};
use antiphon_sim::Sim;
use antiphon_sync::wait::EventCount;

use super::run;
use crate::deadline::nanos;

/// The time when a sleeper is woken, in nanoseconds, and the number of its sleep among all.
type Due = (u64, u64);

/// The timers of a run. `sleepers` is not borrowed while another thread runs.
pub(super) struct Timers {
    sleepers: RefCell<BTreeMap<Due, Waker>>,
    sleeps: Cell<u64>,
    closed: Cell<bool>,
    /// Notified when a field above was changed.
    changed: EventCount<Sim>,
}

/// The next action of the timer thread.
enum Next {
    Wake(Waker),
    Sleep(Option<Deadline>),
    End,
}

impl Timers {
    pub(super) fn new() -> Self {
        Self {
            sleepers: RefCell::default(),
            sleeps: Cell::new(0),
            closed: Cell::new(false),
            changed: EventCount::NEW,
        }
    }

    /// Wakes sleepers until the timers are closed.
    pub(super) fn run(&self) {
        loop {
            // Prepared before the check: a sleeper that arrives later notifies `changed`.
            let key = self.changed.prepare();
            match self.next() {
                Next::Wake(waker) => {
                    key.cancel();
                    waker.wake();
                }
                Next::Sleep(deadline) => _ = key.wait(deadline),
                Next::End => return,
            }
        }
    }

    fn next(&self) -> Next {
        let mut sleepers = self.sleepers.borrow_mut();
        match sleepers.first_entry() {
            _ if self.closed.get() => Next::End,
            Some(first) if first.key().0 <= antiphon_sim::now() => Next::Wake(first.remove()),
            first => Next::Sleep(
                first.map(|first| Deadline { clock: Clock::Monotonic, ns: first.key().0 }),
            ),
        }
    }

    /// Ends the timers: no sleeper is woken any more, and sleepers without another owner are
    /// dropped.
    pub(super) fn close(&self) {
        self.closed.set(true);
        self.changed.notify_all();
        let sleepers = take(&mut *self.sleepers.borrow_mut());
        drop(sleepers);
    }

    /// Returns the key of a new sleep until `ns`.
    fn due(&self, ns: u64) -> Due {
        self.sleeps.set(self.sleeps.get() + 1);
        (ns, self.sleeps.get())
    }

    fn add(&self, due: Due, waker: Waker) {
        if self.closed.get() {
            return;
        }
        let before = self.sleepers.borrow_mut().insert(due, waker);
        let is_new = before.is_none();
        drop(before);
        if is_new {
            self.changed.notify_all();
        }
    }

    fn remove(&self, due: Due) {
        let waker = self.sleepers.borrow_mut().remove(&due);
        drop(waker);
    }
}

/// Returns a future that is ready when `time` has passed in virtual time since its first poll. When
/// the closure of the run has returned, the pool ends, and sleeping tasks are dropped.
///
/// # Panics
///
/// If it is polled outside of a run.
///
/// ```
/// use std::time::Duration;
///
/// use antiphon::deterministic::{Runner, now, sleep};
///
/// let day = Duration::from_secs(86_400);
/// let run = Runner::new().limit(2 * day).run(1, move |pool| {
///     pool.spawn_future(sleep(day)).join().unwrap();
///     assert!(now() >= day);
/// });
/// assert!(run.unwrap().time >= day);
/// ```
pub fn sleep(time: Duration) -> Sleep {
    Sleep { time, due: None }
}

const OUTSIDE: &str = "`deterministic::sleep` uses the virtual time of a run: await it in a task \
    of a run (see `Runner::run`); elsewhere, use a timer of your runtime";

/// The future that [`sleep`] returns.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Sleep {
    time: Duration,
    /// The id of the run, and the key of the sleep there.
    due: Option<(u64, Due)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let run = run::find().expect(OUTSIDE);
        let now_ns = antiphon_sim::now();
        let (id, due) = self
            .due
            .unwrap_or_else(|| (run.id, run.timers.due(now_ns.saturating_add(nanos(self.time)))));
        self.due = Some((id, due));
        let run = run::of(id);
        if due.0 <= now_ns {
            return Poll::Ready(());
        }
        run.timers.add(due, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let (Some((id, due)), Some(run)) = (self.due, run::find())
            && run.id == id
        {
            run.timers.remove(due);
        }
    }
}

//! A worker of a crew: the tasks that it makes ready, and the task that it runs next.
//!
//! The invariants are in `crew`. All methods but [`Worker::seat`] and [`Worker::has_seat`] run
//! inside the worker's seat (SEAT-1), and so does [`Worker::push`], unless a task goes outside. A
//! worker that has lost its seat submits tasks like a thread from outside, and gets none.

use core::fmt;
use core::mem::{forget, replace, take};
use core::sync::atomic::Ordering::SeqCst;

use antiphon_platform::{Budget, Deadline, Platform};
use antiphon_sync::nap;
use antiphon_sync::queue::{Full, Item, WorkQueue};

use super::asked::Asked;
use super::crew::Crew;
use super::idlers::Until;
use super::policy::{Others, Own, Policy};
use super::put::{Put, Room, Wake};
use super::seats::Seat;
use crate::flight::{Event, Found, Log};
use crate::task::Awaited;

/// A worker of a [`Crew`], used by the thread that runs it.
pub struct Worker<'a, P: Platform, Y: Policy<P>> {
    crew: &'a Crew<P, Y>,
    seat: Seat<'a, P>,
    me: usize,
    state: Y::State,
    /// Number of tasks that the workers of this seat were handed.
    taken: u64,
    /// The value of `taken` at which the worker next looks outside first.
    outside_at: u64,
    log: Log<'a, P>,
    /// Whether the worker is counted as a searcher: between two tasks.
    searches: bool,
    /// Declared after the seat: fields are dropped in this order.
    _farewell: Farewell<'a, P, Y>,
}

/// The ends of an unsuccessful search, other than the end of the crew: an awaited event, or a time.
struct Ends<'a, P: Platform> {
    awaited: Option<&'a Awaited<'a, P>>,
    deadline: Option<Deadline>,
}

impl<P: Platform> Ends<'_, P> {
    const NEVER: Self = Self { awaited: None, deadline: None };
}

/// Wakes the resting workers if needed, when a worker has ended.
struct Farewell<'a, P: Platform, Y: Policy<P>> {
    crew: &'a Crew<P, Y>,
    me: usize,
}

/// Ends a search in which the policy has panicked.
struct Panicked<'w, 'a, P: Platform, Y: Policy<P>>(&'w mut Worker<'a, P, Y>);

/// Period, in tasks, at which a worker checks the queue for tasks from outside first, so that its
/// own tasks cannot starve these. Go uses the same number.
const OUTSIDE_EVERY: u64 = 61;
/// How many times a searching worker checks all queues before it rests.
const ROUNDS: u32 = 2;
/// Unsuccessful searches, although tasks are visible, before the worker naps.
const FUTILE: u32 = 4;
/// Length of that nap, in nanoseconds.
const NAP_NS: u64 = 50_000;

impl<'a, P: Platform, Y: Policy<P>> Worker<'a, P, Y> {
    /// Creates the worker of seat `me`. The workers of this seat were handed `taken` tasks before.
    pub(super) fn new(
        crew: &'a Crew<P, Y>,
        seat: Seat<'a, P>,
        me: usize,
        taken: u64,
        log: Log<'a, P>,
    ) -> Self {
        let (state, outside_at) = (Y::State::default(), taken);
        let _farewell = Farewell { crew, me };
        Self { crew, seat, me, state, taken, outside_at, log, searches: false, _farewell }
    }

    /// Submits a task that the worker has made ready: see [`Put`]. Does not block while the worker
    /// has a seat.
    ///
    /// # Errors
    ///
    /// The task, if there is no room.
    #[inline]
    pub fn push(&mut self, task: Item, put: Put<'_>) -> Result<(), Full> {
        if put.outside || !self.seat.enter() {
            // A worker that waits for room would wait for itself.
            let waits_for_itself = put.room == Room::Wait && self.has_seat();
            let room = if waits_for_itself { Room::Refuse } else { put.room };
            return self.crew.submit(task, Put { room, ..put });
        }
        let (pushed, is_found) = self.place(task, put.rank);
        if is_found {
            match put.wake {
                Wake::Now => self.crew.idlers.notify(self.me),
                Wake::Later(found) => found.set(found.get() + usize::from(pushed.is_ok())),
            }
        }
        self.seat.exit();
        match (pushed, put.room) {
            (Err(Full(task)), Room::Make) => {
                self.crew.surplus.push(task);
                self.crew.idlers.notify(self.me);
                Ok(())
            }
            // `Room::Wait`: refused, because the worker would wait for itself.
            (pushed, _) => pushed,
        }
    }

    /// Queues a task, elsewhere if the policy has no room for it. Also returns whether other
    /// workers find more tasks now. The worker is inside.
    #[inline]
    fn place(&mut self, task: Item, rank: Option<u64>) -> (Result<(), Full>, bool) {
        let (crew, own) = (self.crew, own(self.crew, self.me));
        let pushed = match crew.policy.push(&own, &mut self.state, task, rank) {
            Err(Full(task)) => crew.policy.overflow(&crew.shared, task),
            // Unless the policy has put the task elsewhere.
            Ok(()) if own.keeps_last() && !crew.policy.has_tasks() => return (Ok(()), false),
            Ok(()) => Ok(()),
        };
        if pushed.is_ok() {
            return (pushed, true);
        }
        crew.counters[self.me].0.refuse();
        // As in `Crew::submit`; but no worker is woken if there is no task.
        let nothing = crew.shared.is_empty() && crew.queues[self.me].0.is_empty();
        (pushed, !nothing || crew.policy.has_tasks())
    }

    /// Lets other workers find the tasks that the queue keeps private to its worker, as
    /// [`InBlocks`](super::InBlocks) does. Should be called before the worker does something long.
    pub fn share(&mut self) {
        if self.seat.enter() {
            own(self.crew, self.me).share();
            self.crew.idlers.notify(self.me);
            self.seat.exit();
        }
    }

    /// Returns the next task to run; waits until there is one. `None` when the crew is closed, no
    /// worker is in a task, and there is nothing to do; or when the worker has lost its seat.
    #[inline]
    pub fn next_task(&mut self) -> Option<Item> {
        self.inside(|worker| worker.pop().or_else(|| worker.search(&Ends::NEVER)))
    }

    /// Like [`next_task`](Self::next_task), for a worker that waits for `awaited`, until `deadline`
    /// if there is one, even if the crew is closed. `None` when that wait is over, or the worker
    /// has lost its seat.
    pub fn next_until(
        &mut self,
        awaited: &Awaited<'_, P>,
        deadline: Option<Deadline>,
    ) -> Option<Item> {
        if awaited.is_over() {
            return None;
        }
        let ends = Ends { awaited: Some(awaited), deadline };
        self.inside(|worker| worker.pop().or_else(|| worker.search(&ends)))
    }

    /// Like [`next_task`](Self::next_task), but only for tasks that are in the worker's queue or
    /// come from outside. Does not wait.
    #[inline]
    pub fn try_next_task(&mut self) -> Option<Item> {
        self.inside(Self::pop)
    }

    /// Like [`try_next_task`](Self::try_next_task), but tries tasks from outside first, and tasks
    /// of other workers last. For occasional calls by a worker that also has other work.
    pub fn try_any_task(&mut self) -> Option<Item> {
        self.inside(|worker| {
            worker.outside_at = worker.taken;
            worker.pop().or_else(|| {
                let (task, _) = worker.look()?;
                worker.taken += 1;
                // Other tasks that were stolen with this one are now in a queue that no worker has
                // checked since.
                worker.crew.idlers.notify(worker.me);
                Some(task)
            })
        })
    }

    /// Gives up the seat, for another worker, before this worker does something long. Returns the
    /// number of the seat, which keeps its queue. `None`: the worker has lost its seat already.
    pub fn leave(&mut self) -> Option<usize> {
        let has_seat = self.seat.enter();
        if has_seat {
            self.end_record();
            self.seat.leave();
        }
        self.seat.exit();
        has_seat.then_some(self.me)
    }

    /// Asks `next` for the next task, inside the seat.
    #[inline]
    fn inside(&mut self, next: impl FnOnce(&mut Self) -> Option<Item>) -> Option<Item> {
        if !self.seat.enter() {
            return None;
        }
        let guard = Panicked(self);
        let task = next(guard.0);
        guard.0.seat.begin();
        forget(guard);
        task
    }

    #[inline]
    fn pop(&mut self) -> Option<Item> {
        let outside = self.taken >= self.outside_at;
        let task = if outside { self.look_outside() } else { None };
        let pop = || self.crew.policy.pop(&own(self.crew, self.me), &mut self.state);
        let task = task.or_else(pop)?;
        if self.log.is_due(self.taken) {
            self.log.look(self.taken);
        }
        self.taken += 1;
        Some(task)
    }

    /// Checks outside first, once in `OUTSIDE_EVERY` tasks, and for threads that wait for room.
    /// Tasks that had no room come first, so that a queue that is never empty can't starve them.
    fn look_outside(&mut self) -> Option<Item> {
        self.outside_at = self.taken + OUTSIDE_EVERY;
        self.counted();
        self.makes_room();
        self.surplus().or_else(|| self.outside())
    }

    /// Publishes the number of tasks that the worker was handed.
    fn counted(&self) {
        self.crew.counters[self.me].0.take(self.taken);
    }

    /// Records a further event of the worker, if it still has its seat: otherwise two threads would
    /// write to the record of another worker.
    pub fn record(&mut self, event: Event) {
        if self.seat.enter() {
            self.log.note(event);
            self.seat.exit();
        }
    }

    /// Marks a switch between two activities that are not tasks (runs of fibers), with a reading of
    /// the clock: records are separated there, as if the worker took a task.
    pub fn passes(&mut self, now_ns: u64) {
        if self.seat.enter() {
            self.log.passes(self.taken, now_ns);
            self.seat.exit();
        }
    }

    /// Returns when the worker's last search for tasks of others ended, in nanoseconds of the
    /// monotonic clock; 0 if nothing is recorded.
    pub fn resumed_ns(&self) -> u64 {
        self.log.resumed_ns()
    }

    /// Records the worker's activity until it leaves its seat.
    fn end_record(&mut self) {
        self.counted();
        self.log.pause(self.taken);
    }

    /// Searches for tasks of others, and rests if there are none.
    #[cold]
    fn search(&mut self, ends: &Ends<'_, P>) -> Option<Item> {
        self.counted();
        let began_ns = self.log.pause(self.taken);
        let (found, rested) = self.find(ends);
        if rested {
            self.crew.watch.ring();
        }
        let (task, whose) =
            found.map_or((None, Found::Nothing), |(task, found)| (Some(task), found));
        self.log.searched(began_ns, whose, self.taken);
        self.taken += u64::from(task.is_some());
        task
    }

    /// Does the work of [`search`](Self::search). Also returns where the task was found, and
    /// whether the worker has rested.
    fn find(&mut self, ends: &Ends<'_, P>) -> (Option<(Item, Found)>, bool) {
        let (crew, awaited) = (self.crew, ends.awaited);
        let is_over = |rests| match awaited {
            Some(awaited) => awaited.is_over() || nap::passed::<P>(ends.deadline),
            None => crew.is_over(rests),
        };
        self.searches = self.searches || crew.idlers.search();
        // Enough others search; but a worker that is being woken counts as one, and takes long.
        // Tasks from outside are not left to those: otherwise each of many short tasks would cause
        // a wake-up of its own.
        if !self.searches
            && let Some(task) = self.outside()
        {
            return (Some((task, Found::Shared)), false);
        }
        let (mut futile, mut rested) = (0, false);
        loop {
            if self.searches
                && let Some(found) = (0..ROUNDS).find_map(|_| self.look())
            {
                self.end_search();
                return (Some(found), rested);
            }
            if is_over(false) {
                self.end_search();
                return (None, rested);
            }
            // CREW-5.
            crew.room.notify_all();
            rested = true;
            // CREW-4.
            let gives_up = futile == FUTILE;
            futile = if gives_up { 0 } else { futile + 1 };
            let naps = || Some(nap::earlier::<P>(ends.deadline, NAP_NS));
            let deadline = if gives_up { naps() } else { ends.deadline };
            // If other threads want the CPU, the worker does not spin.
            let spin = if P::crowded() { Budget::NONE } else { crew.policy.idle() };
            let until = Until { spin, awaited, deadline };
            let searcher = replace(&mut self.searches, true);
            let seen = |alone| !gives_up && alone && crew.has_tasks() || is_over(true);
            crew.counters[self.me].0.rest();
            self.log.rest(|| crew.idlers.rest_until(self.me, searcher, until, seen));
        }
    }

    /// Stops being a searcher, if the worker is one.
    fn end_search(&mut self) {
        if take(&mut self.searches) {
            self.crew.idlers.found(self.me, || self.crew.has_tasks());
        }
    }

    /// Checks the queues of all workers once.
    fn look(&mut self) -> Option<(Item, Found)> {
        let crew = self.crew;
        if let Some(task) = self.outside() {
            return Some((task, Found::Shared));
        }
        let asked = Asked::new(&crew.queues);
        let others = Others::new(&asked, self.me);
        let task = crew.policy.steal(&own(crew, self.me), &mut self.state, &others).got();
        crew.counters[self.me].0.search(task.is_some());
        Some((task?, asked.last().map_or(Found::Shared, Found::Of)))
    }

    /// Takes a task from outside, or one for which there was no room.
    fn outside(&mut self) -> Option<Item> {
        let Some(task) = self.crew.shared.pop() else { return self.surplus() };
        self.makes_room();
        Some(task)
    }

    /// Takes a task for which there was no room; moves others to the worker's queue, as far as it
    /// has room.
    fn surplus(&mut self) -> Option<Item> {
        let (crew, own) = (self.crew, own(self.crew, self.me));
        let task =
            crew.surplus.take(|task| crew.policy.push(&own, &mut self.state, task, None)).got()?;
        // The others are now in a queue that resting workers have not checked.
        crew.idlers.notify(self.me);
        Some(task)
    }

    /// Wakes a thread that waits for room, if one is seen.
    #[inline]
    fn makes_room(&self) {
        if self.crew.room.has_waiters() {
            self.crew.room.notify_one();
        }
    }

    /// Returns whether the worker has a seat: once lost, it is never regained. May be stale at
    /// once.
    pub fn has_seat(&self) -> bool {
        self.seat.is_here()
    }

    /// Returns the number of the worker among those that exist, as in
    /// [`Long::worker`](super::Long::worker).
    pub fn number(&self) -> usize {
        self.seat.worker()
    }

    /// Returns the seat that the worker has, or had.
    pub fn seat(&self) -> usize {
        self.me
    }
}

/// The queue of a worker that is here.
fn own<P: Platform, Y: Policy<P>>(crew: &Crew<P, Y>, me: usize) -> Own<'_, Y::Queue> {
    // SAFETY: called only by the worker of that seat, of which there is one, and it is borrowed
    // meanwhile.
    unsafe { Own::new(&crew.queues[me].0, me) }
}

impl<P: Platform, Y: Policy<P>> Drop for Worker<'_, P, Y> {
    fn drop(&mut self) {
        self.end_search();
        if !self.seat.enter() {
            return;
        }
        self.end_record();
        // No other worker would find the tasks that are private to this one.
        own(self.crew, self.me).share();
    }
}

impl<P: Platform, Y: Policy<P>> Drop for Farewell<'_, P, Y> {
    fn drop(&mut self) {
        let crew = self.crew;
        // CREW-6; pairs with the fences in `close`, and in `rest_until`.
        P::fence(SeqCst);
        if crew.is_closed() {
            crew.idlers.notify_all();
        } else if crew.has_tasks() {
            crew.idlers.notify(self.me);
        }
    }
}

impl<P: Platform, Y: Policy<P>> Drop for Panicked<'_, '_, P, Y> {
    fn drop(&mut self) {
        let Self(worker) = self;
        if take(&mut worker.searches) {
            // The policy is not asked whether there are more tasks: it might panic once more.
            worker.crew.idlers.found(worker.me, || true);
        }
        worker.seat.begin();
    }
}

impl<P: Platform, Y: Policy<P>> fmt::Debug for Worker<'_, P, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("seat", &self.me).finish_non_exhaustive()
    }
}

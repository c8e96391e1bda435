//! The registry of a pool: its workers, their queues, and the queue for tasks from outside.
//!
//! - CREW-1: a task is in one queue, or has been handed out by [`Worker::next_task`], once.
//! - CREW-2: a worker rests only when it has seen all queues empty after it was counted as resting.
//!   A producer whose task others can find then checks for a resting worker. So no task is left
//!   while all workers rest.
//! - CREW-3: [`Worker::next_task`] is `None` only when the crew is closed, all its workers except
//!   the caller have rested, none of them to [wait](Worker::next_until) for an event, and the
//!   caller has seen all queues empty. So a worker that is in a task, or has tasks that wait, can
//!   rely on the others to run the tasks that these make.
//! - CREW-4: a worker that sees tasks and cannot take them (their owner was stopped while it moved
//!   them, or the policy leaves them to the owner) rests for a while nevertheless: producers of
//!   other tasks can then wake it, and it takes no CPU time from the owner.
//! - CREW-5: a thread that waits for room announces that before it tries once more; a worker that
//!   finds no task checks for such threads after that. So no thread waits for room while all
//!   workers rest. A worker that has tasks checks occasionally, too, without a fence: it may miss a
//!   thread that arrives at that moment.
//! - CREW-6: a worker without a seat depends on the other workers to run the tasks that it makes,
//!   and may wait for these tasks. The other workers therefore stay until it has left. A leaving
//!   worker first removes itself, then checks whether the crew is closed; a resting worker first
//!   registers as resting, then checks which workers are left. One of the two sees the other.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Platform};
use antiphon_sync::queue::{Full, Item, RelaxedQueue, WorkQueue};
use antiphon_sync::wait::EventCount;

use super::counters::{Counters, Stats};
use super::idlers::{Idlers, MOST};
use super::policy::Policy;
use super::put::{Put, Room, Wake};
use super::seats::Seats;
use super::surplus::Surplus;
use super::watch::{Watch, Watchdog};
use super::worker::Worker;
use crate::flight::{self, Event, Log, Records};
use crate::lines::Lines;

/// Workers that share tasks, by a policy. Tasks are [items](Item): only the caller that runs them
/// knows their meaning.
pub struct Crew<P: Platform, Y: Policy<P>> {
    pub(super) policy: Y,
    pub(super) queues: Box<[Lines<Y::Queue>]>,
    pub(super) seats: Seats<P>,
    pub(super) shared: RelaxedQueue<P>,
    pub(super) surplus: Surplus<P>,
    /// Threads that wait for room.
    pub(super) room: EventCount<P>,
    pub(super) idlers: Idlers<P>,
    pub(super) watch: Watch<P>,
    pub(super) counters: Box<[Lines<Counters<P>>]>,
    /// The records of each worker, or empty if events are not recorded.
    records: Box<[Lines<Records<P>>]>,
    /// 0, [`CLOSED`] or [`OVER`].
    closed: P::U32,
    /// Number of tasks from outside, if these wake the workers in turn.
    turns: Option<P::U32>,
}

/// No more tasks come from outside.
const CLOSED: u32 = 1;
/// The value of `closed` after a worker has seen that no worker has anything to do.
const OVER: u32 = 2;

impl<P: Platform, Y: Policy<P>> Crew<P, Y> {
    /// Creates a crew with `workers` worker slots, no workers yet, and no [spares](Self::spares).
    /// The queue for tasks from outside has room for `outside` tasks, rounded up to a power of two.
    ///
    /// # Panics
    ///
    /// If `workers` is 0, or 2²¹ or more; or if the policy has tasks already.
    #[must_use]
    pub fn new(policy: Y, workers: usize, outside: usize) -> Self {
        assert!(workers > 0 && workers < MOST, "a crew of {workers}");
        assert!(!policy.has_tasks(), "the policy has tasks already: a crew needs a fresh one");
        Self {
            queues: (0..workers).map(|_| Lines(policy.queue())).collect(),
            shared: RelaxedQueue::new(outside),
            surplus: Surplus::new(),
            room: EventCount::NEW,
            idlers: Idlers::new(workers),
            counters: (0..workers).map(|_| Lines(Counters::NEW)).collect(),
            records: Box::default(),
            seats: Seats::new(workers, workers),
            watch: Watch::NEW,
            closed: P::U32::ZERO,
            turns: None,
            policy,
        }
    }

    /// Permits `spares` more workers than seats. A worker without a seat is in a task in which it
    /// [left](Worker::leave) its seat, or in which the seat was [taken](Watchdog) from it.
    ///
    /// # Panics
    ///
    /// If workers and spares together are 2²¹ or more.
    #[must_use]
    pub fn spares(self, spares: usize) -> Self {
        let workers = self.workers();
        assert!(spares < MOST - workers, "a crew of {workers}, and {spares} more");
        Self { seats: Seats::new(workers, workers + spares), ..self }
    }

    /// Makes tasks from outside wake resting workers in turn, and not always the first one. For
    /// tasks that stay with the worker that has begun them: each worker then gets its share of
    /// tasks that arrive one at a time.
    #[must_use]
    pub fn in_turn(self) -> Self {
        Self { turns: Some(P::U32::ZERO), ..self }
    }

    /// Makes each worker record its latest `events` events; 0 turns recording off.
    #[must_use]
    pub fn recorded(self, events: usize) -> Self {
        let seats = if events > 0 { self.workers() } else { 0 };
        Self { records: (0..seats).map(|_| Lines(Records::new(events))).collect(), ..self }
    }

    /// Returns the events that the workers have recorded, by seat, the oldest first; none if the
    /// crew is not [recorded](Self::recorded). Present activities are not included. Does not block
    /// the workers.
    pub fn events(&self) -> Vec<Vec<Event>> {
        self.records.iter().map(|records| flight::events(&records.0)).collect()
    }

    /// Returns, by seat, when the latest recorded event of its worker ended. Since then the worker
    /// has been in its present task, or in tasks of less than a millisecond in all. `None`: no
    /// event was recorded.
    pub fn latest_ns(&self) -> Vec<Option<u64>> {
        self.records.iter().map(|records| flight::latest_ns(&records.0)).collect()
    }

    /// Returns whether events are recorded.
    pub fn is_recorded(&self) -> bool {
        !self.records.is_empty()
    }

    /// Submits a task from outside: see [`Put`]. Blocks only if that says so. After
    /// [`close`](Self::close) the task may never be run: then [`take_left`](Self::take_left)
    /// returns it.
    ///
    /// # Errors
    ///
    /// The task, if there is no room.
    pub fn submit(&self, task: Item, put: Put<'_>) -> Result<(), Full> {
        match put.room {
            Room::Refuse => self.try_submit(task, put),
            Room::Wait => self.submit_waiting(task, put),
            Room::Make => {
                if let Err(Full(task)) = self.try_submit(task, put) {
                    self.surplus.push(task);
                    self.idlers.notify(self.turn());
                }
                Ok(())
            }
        }
    }

    /// Submits a task from outside if there is room.
    fn try_submit(&self, task: Item, put: Put<'_>) -> Result<(), Full> {
        let submitted = self.policy.submit(&self.shared, task, put.rank);
        match put.wake {
            // Also after a refusal: the reason may be a debt, which a worker that looks for tasks
            // settles.
            Wake::Now => self.idlers.notify(self.turn()),
            Wake::Later(found) => found.set(found.get() + usize::from(submitted.is_ok())),
        }
        submitted
    }

    /// Submits a task from outside when there is room, or the crew is closed.
    #[cold]
    fn submit_waiting(&self, mut task: Item, put: Put<'_>) -> Result<(), Full> {
        let (first, later) = (task, put.wake);
        // The rank is that of the caller's task; the policy may return another task in its stead.
        // The workers are woken at once, because they must make room.
        let put = |task| Put { rank: put.rank.filter(|_| task == first), wake: Wake::Now, ..put };
        if let Wake::Later(found) = later {
            self.tell(found.take());
        }
        loop {
            match self.try_submit(task, put(task)) {
                Ok(()) => return Ok(()),
                Err(Full(refused)) if self.is_closed() => return Err(Full(refused)),
                Err(Full(refused)) => task = refused,
            }
            let wait = self.room.prepare();
            // CREW-5.
            match self.try_submit(task, put(task)) {
                Ok(()) => return Ok(()),
                Err(Full(refused)) => task = refused,
            }
            if !self.is_closed() {
                wait.wait(None);
            }
        }
    }

    /// Wakes up to `tasks` resting workers for tasks whose wake-ups were left for
    /// [later](Wake::Later), fewer if some are already searching. 0 counts as 1.
    pub fn tell(&self, tasks: usize) {
        let tasks = u32::try_from(tasks).unwrap_or(u32::MAX);
        self.idlers.notify_many(self.turn(), tasks.max(1));
    }

    /// Returns the worker that a task from outside should wake, if it rests.
    #[inline]
    fn turn(&self) -> usize {
        // Relaxed: any worker will do.
        let turns = self.turns.as_ref().map_or(0, |turns| turns.fetch_add(1, Relaxed));
        turns as usize % self.workers()
    }

    /// Creates the worker of seat `me`, from 0 on, with the queue of that seat. `None` if there is
    /// no such seat, it is taken, or there are as many workers as permitted.
    pub fn worker(&self, me: usize) -> Option<Worker<'_, P, Y>> {
        let seat = self.seats.take(me)?;
        let taken = self.counters[me].0.taken();
        let log = Log::new(self.records.get(me).map(|records| &records.0), taken);
        Some(Worker::new(self, seat, me, taken, log))
    }

    /// Creates the watchdog for workers that are in a task for too long; `None` if there is one
    /// already. If the platform has no [heavy fence](antiphon_platform::LightUnlock::heavy_fence),
    /// it detects such workers, but cannot take a seat.
    pub fn watchdog(&self, patience_ns: u64) -> Option<Watchdog<'_, P, Y>> {
        Watchdog::new(self, patience_ns)
    }

    /// Ends the watchdog, after all workers have left.
    pub fn dismiss(&self) {
        self.watch.dismiss();
    }

    /// Lets workers end when they find no more tasks, once no other worker is in a task or has
    /// tasks that wait. Each waits for any [`Worker`] that is not at that point.
    pub fn close(&self) {
        // Release: what was put in before; pairs with the acquire in `is_closed`. A resting worker
        // sees it by the fence of `notify_all`.
        // mutant: what was put in before comes with the queue's own words. Only a look at a queue
        // that seems empty would tell, and models close a crew whose workers rest or have tasks.
        // A crew that is `OVER` stays so.
        let _: Result<u32, u32> = self.closed.compare_exchange(0, CLOSED, Release, Relaxed);
        self.idlers.notify_all();
        self.room.notify_all();
    }

    /// Returns whether a worker has nothing to do; may be stale at once.
    pub fn has_idle(&self) -> bool {
        self.idlers.are_any()
    }

    /// Returns the policy.
    pub fn policy(&self) -> &Y {
        &self.policy
    }

    /// Returns the number of seats: the limit of workers, without spares.
    pub fn workers(&self) -> usize {
        self.queues.len()
    }

    /// Returns counts of the workers' activities so far.
    pub fn stats(&self) -> Stats {
        let mut sum = Stats::default();
        self.counters.iter().for_each(|counters| counters.0.add_to(&mut sum));
        self.watch.add_to(&mut sum);
        sum
    }

    /// Takes out a task that was not run, after all workers have ended.
    pub fn take_left(&mut self) -> Option<Item> {
        // SAFETY: there is no worker: each borrows the crew.
        let own = |queue: &Lines<Y::Queue>| unsafe { queue.0.pop_front() };
        let left = self.shared.pop().or_else(|| self.policy.take_left());
        let left = left.or_else(|| self.surplus.take(|task| Err(Full(task))).got());
        left.or_else(|| self.queues.iter().find_map(own))
    }

    pub(super) fn is_closed(&self) -> bool {
        // Acquire: CREW-3, a worker that looks into the queues then sees what was put in before;
        // pairs with the release in `close`.
        // mutant: as there.
        self.closed.load(Acquire) != 0
    }

    /// Returns whether no worker has anything to do, now or later. `rests` says whether the calling
    /// worker is counted as resting.
    pub(super) fn is_over(&self, rests: bool) -> bool {
        // Acquire: as in `is_closed`; pairs with the releases in `close`, and below.
        match self.closed.load(Acquire) {
            0 => return false,
            // A worker that has ended meanwhile may have made some.
            OVER => return !self.has_tasks(),
            _ => {}
        }
        // CREW-3, CREW-6: in this order. A worker that leaves its seat is counted in the first, or
        // is away in the second.
        let there = self.seats.count();
        let is_over = !self.seats.is_any_away()
            && self.idlers.resting() + usize::from(!rests) >= there
            && !self.has_tasks();
        if is_over {
            // Release: pairs with the acquire above.
            // mutant: as in `close`.
            self.closed.store(OVER, Release);
        }
        is_over
    }

    /// Returns whether a task is visible in any queue.
    pub(super) fn has_tasks(&self) -> bool {
        !self.shared.is_empty()
            || !self.surplus.is_empty()
            || self.policy.has_tasks()
            || self.queues.iter().any(|queue| !queue.0.is_empty())
    }
}

impl<P: Platform, Y: Policy<P>> fmt::Debug for Crew<P, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("workers", &self.workers()).finish_non_exhaustive()
    }
}

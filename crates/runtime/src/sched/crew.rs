//! The workers of a pool: their queues, the one that tasks from outside come in by, and who rests.
//!
//! - CREW-1: a task is in one queue, or has been handed out by [`Worker::next_task`], once.
//! - CREW-2: a worker rests only when it has seen all queues empty since it was counted among those
//!   that rest; and who puts in what others find looks for one that rests then. So no task stays
//!   while all rest.
//! - CREW-3: [`Worker::next_task`] is `None` only when the crew is closed, all its workers but the
//!   one that looks have rested, none of them to [wait](Worker::next_until) for something, and that
//!   has seen all queues empty. So one that is in a task, or has some that wait, has others run
//!   what these make.
//! - CREW-4: a worker that sees tasks and can't have them (their owner was stopped while it moved
//!   them, or the policy leaves them to it) rests for a while all the same: it is to be had by who
//!   puts others in, and takes no CPU from the owner.
//! - CREW-5: who waits for room has said so before it tries once more; and a worker that finds
//!   nothing looks for who waits after that. So nobody waits while all rest. A worker that has
//!   tasks looks, too, now and then, without a fence: it may miss one that comes just then.
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
use super::seats::Seats;
use super::surplus::Surplus;
use super::watch::{Watch, Watchdog};
use super::worker::Worker;
use crate::flight::{self, Event, Log, Records};
use crate::lines::Lines;

/// Workers that share tasks, by a policy. Tasks are [items](Item): what they are, who runs them
/// knows.
pub struct Crew<P: Platform, Y: Policy<P>> {
    pub(super) policy: Y,
    pub(super) queues: Box<[Lines<Y::Queue>]>,
    pub(super) seats: Seats<P>,
    pub(super) shared: RelaxedQueue<P>,
    pub(super) surplus: Surplus<P>,
    /// Those who wait for room.
    pub(super) room: EventCount<P>,
    pub(super) idlers: Idlers<P>,
    pub(super) watch: Watch<P>,
    pub(super) counters: Box<[Lines<Counters<P>>]>,
    /// Of each worker, or of none.
    records: Box<[Lines<Records<P>>]>,
    /// 0, [`CLOSED`] or [`OVER`].
    closed: P::U32,
    /// How many tasks have come from outside, if these are for the workers in turn.
    turns: Option<P::U32>,
}

/// Nothing comes from outside any more.
const CLOSED: u32 = 1;
/// A worker has seen that there is nothing to do for any.
const OVER: u32 = 2;

impl<P: Platform, Y: Policy<P>> Crew<P, Y> {
    /// A crew of so many workers, none of which is there yet, and no [spare](Self::spares) ones;
    /// `outside` tasks from outside have room, rounded up to a power of two.
    ///
    /// # Panics
    ///
    /// If it is to be of no workers, or of 2²¹ or more; or if the policy has tasks already.
    #[must_use]
    pub fn new(policy: Y, workers: usize, outside: usize) -> Self {
        assert!(workers > 0 && workers < MOST, "a crew of {workers}");
        assert!(!policy.has_tasks(), "a policy that has tasks, of nobody knows whom");
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

    /// So many more workers than seats may be there, without a seat: each in a task that it was in
    /// when it [left](Worker::leave) its seat, or when that was [taken](Watchdog) from it.
    ///
    /// # Panics
    ///
    /// If there are to be 2²¹ or more with them.
    #[must_use]
    pub fn spares(self, spares: usize) -> Self {
        let workers = self.workers();
        assert!(spares < MOST - workers, "a crew of {workers}, and {spares} more");
        Self { seats: Seats::new(workers, workers + spares), ..self }
    }

    /// Has what comes from outside wake workers in turn, of those that rest; else it is the first.
    /// For tasks that keep to the worker that has begun them: so each has its share of those that
    /// come one by one.
    #[must_use]
    pub fn in_turn(self) -> Self {
        Self { turns: Some(P::U32::ZERO), ..self }
    }

    /// Has each worker record what it does: its latest events, so many; 0 has none recorded.
    #[must_use]
    pub fn recorded(self, events: usize) -> Self {
        let seats = if events > 0 { self.workers() } else { 0 };
        Self { records: (0..seats).map(|_| Lines(Records::new(events))).collect(), ..self }
    }

    /// What its workers have recorded, by seat: the latest events, the oldest first; none, if it is
    /// not [recorded](Self::recorded). What a worker does at the moment is not there yet. Does not
    /// block them.
    pub fn events(&self) -> Vec<Vec<Event>> {
        self.records.iter().map(|records| flight::events(&records.0)).collect()
    }

    /// By seat, when the latest event ended that its worker has recorded: since then it is in what
    /// it does now, or in tasks of less than a millisecond in all. `None`: there is none.
    pub fn latest_ns(&self) -> Vec<Option<u64>> {
        self.records.iter().map(|records| flight::latest_ns(&records.0)).collect()
    }

    /// Whether there is something to write to.
    pub fn is_recorded(&self) -> bool {
        !self.records.is_empty()
    }

    /// Puts a task in from outside. Does not block. Once the crew is [closed](Self::close), perhaps
    /// nobody runs it any more: [`take_left`](Self::take_left) has it then.
    ///
    /// # Errors
    ///
    /// If there is no room: the task.
    pub fn submit(&self, task: Item) -> Result<(), Full> {
        self.accept(task, None)
    }

    /// As [`submit`](Self::submit), of a task that has a rank.
    ///
    /// # Errors
    ///
    /// As of that.
    pub fn submit_ranked(&self, task: Item, rank: u64) -> Result<(), Full> {
        self.accept(task, Some(rank))
    }

    /// As [`submit`](Self::submit), of who waits until there is room. Sleeps; a worker of the crew
    /// would wait for itself.
    ///
    /// # Errors
    ///
    /// If there is no room and the crew is closed: the task.
    pub fn submit_waiting(&self, mut task: Item) -> Result<(), Full> {
        loop {
            match self.submit(task) {
                Ok(()) => return Ok(()),
                Err(Full(refused)) if self.is_closed() => return Err(Full(refused)),
                Err(Full(refused)) => task = refused,
            }
            let wait = self.room.prepare();
            // CREW-5.
            match self.submit(task) {
                Ok(()) => return Ok(()),
                Err(Full(refused)) => task = refused,
            }
            if !self.is_closed() {
                wait.wait(None);
            }
        }
    }

    /// As [`submit`](Self::submit), and tells nobody: that is to be [next](Self::tell).
    ///
    /// # Errors
    ///
    /// As of that.
    pub fn submit_untold(&self, task: Item) -> Result<(), Full> {
        self.policy.submit(&self.shared, task, None)
    }

    /// Wakes up to `tasks` resting workers for tasks that were added with
    /// [`submit_untold`](Self::submit_untold), fewer if some are already searching. 0 counts as 1.
    pub fn tell(&self, tasks: usize) {
        let tasks = u32::try_from(tasks).unwrap_or(u32::MAX);
        self.idlers.notify_many(self.turn(), tasks.max(1));
    }

    pub(super) fn accept(&self, task: Item, rank: Option<u64>) -> Result<(), Full> {
        let pushed = self.policy.submit(&self.shared, task, rank);
        // If it was refused, too: perhaps for a debt, which is settled by who looks for tasks.
        self.idlers.notify(self.turn());
        pushed
    }

    /// Which worker is to be woken by what comes from outside, if it rests.
    #[inline]
    fn turn(&self) -> usize {
        // Relaxed: any will do.
        let turns = self.turns.as_ref().map_or(0, |turns| turns.fetch_add(1, Relaxed));
        turns as usize % self.workers()
    }

    /// As [`submit`](Self::submit), of a task that must not be refused: where there is no room,
    /// room is made.
    pub fn submit_always(&self, task: Item) {
        if let Err(Full(task)) = self.submit(task) {
            self.surplus.push(task);
            self.idlers.notify(self.turn());
        }
    }

    /// The worker of seat `me`, from 0 on: `None` if there is no such seat, it is taken, or no more
    /// workers may be there. It has what the last one of that seat had in its queue.
    pub fn worker(&self, me: usize) -> Option<Worker<'_, P, Y>> {
        let seat = self.seats.take(me)?;
        let taken = self.counters[me].0.taken();
        let log = Log::new(self.records.get(me).map(|records| &records.0), taken);
        Some(Worker::new(self, seat, me, taken, log))
    }

    /// Who looks after workers that are in a task for too long; `None` if somebody does. Where the
    /// platform has no [heavy fence](Platform::heavy_fence), it sees them, and can't take a seat.
    pub fn watchdog(&self, patience_ns: u64) -> Option<Watchdog<'_, P, Y>> {
        Watchdog::new(self, patience_ns)
    }

    /// Ends its watchdog, when its workers are gone.
    pub fn dismiss(&self) {
        self.watch.dismiss();
    }

    /// Has workers end that find nothing more to do, when no other is in a task, or has some that
    /// wait: they wait for each [`Worker`] that is there, and is not as they are.
    pub fn close(&self) {
        // Release: what was put in before; pairs with the acquire in `is_closed`. Who rests sees it
        // by the fence of `notify_all`.
        // One that is over stays so.
        let _: Result<u32, u32> = self.closed.compare_exchange(0, CLOSED, Release, Relaxed);
        self.idlers.notify_all();
        self.room.notify_all();
    }

    /// Whether a worker has nothing to do; may be stale at once.
    pub fn has_idle(&self) -> bool {
        self.idlers.are_any()
    }

    /// What decides.
    pub fn policy(&self) -> &Y {
        &self.policy
    }

    /// How many workers there may be.
    pub fn workers(&self) -> usize {
        self.queues.len()
    }

    /// What the workers have done so far.
    pub fn stats(&self) -> Stats {
        let mut sum = Stats::default();
        self.counters.iter().for_each(|counters| counters.0.add_to(&mut sum));
        self.watch.add_to(&mut sum);
        sum
    }

    /// Takes a task out that nobody has run, when all workers have ended.
    pub fn take_left(&mut self) -> Option<Item> {
        // SAFETY: no worker is there, each of which borrows the crew.
        let own = |queue: &Lines<Y::Queue>| unsafe { queue.0.pop_front() };
        let left = self.shared.pop().or_else(|| self.policy.take_left());
        let left = left.or_else(|| self.surplus.take(|task| Err(Full(task))).got());
        left.or_else(|| self.queues.iter().find_map(own))
    }

    pub(super) fn is_closed(&self) -> bool {
        // Acquire: CREW-3, who looks into the queues then sees what was put in before; pairs with
        // the release in `close`.
        self.closed.load(Acquire) != 0
    }

    /// Whether there is nothing to do for any worker, and never will be. A worker asks, which is
    /// counted among those that rest, or is not.
    pub(super) fn is_over(&self, rests: bool) -> bool {
        // Acquire: as in `is_closed`; pairs with the releases in `close`, and below.
        match self.closed.load(Acquire) {
            0 => return false,
            // One that has come to its end since then may have made some.
            OVER => return !self.has_tasks(),
            _ => {}
        }
        // CREW-3, CREW-6: in this order. Who gives its seat away is there, or is away then.
        let there = self.seats.count();
        let is_over = !self.seats.is_any_away()
            && self.idlers.resting() + usize::from(!rests) >= there
            && !self.has_tasks();
        if is_over {
            // Release: pairs with the acquire above.
            self.closed.store(OVER, Release);
        }
        is_over
    }

    /// Whether a task is to be seen somewhere.
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

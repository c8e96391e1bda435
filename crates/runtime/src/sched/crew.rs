//! The workers of a pool: their queues, the one that tasks from outside come in by, and who rests.
//!
//! - CREW-1: a task is in one queue, or has been handed out by [`Worker::next_task`], once.
//! - CREW-2: a worker rests only when it has seen all queues empty since it was counted among those
//!   that rest; and who puts in what others find looks for one that rests then. So no task stays
//!   while all rest.
//! - CREW-3: [`Worker::next_task`] is `None` only when the crew is closed and all queues were seen
//!   empty. What a worker makes ready after that it runs itself before it ends.
//! - CREW-4: a worker that sees tasks and can't have them (their owner was stopped while it moved
//!   them, or the policy leaves them to it) rests for a while all the same: it is to be had by who
//!   puts others in, and takes no CPU from the owner.
//! - CREW-5: who waits for room has said so before it tries once more; and a worker that finds
//!   nothing looks for who waits after that. So nobody waits while all rest. A worker that has
//!   tasks looks, too, now and then, without a fence: it may miss one that comes just then.
//! - CREW-6: who frees the seat of a crew that is closed, and then looks for tasks; who puts one in
//!   for a worker without a seat, and then looks for a free one: one of them sees the other.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Release, SeqCst};

use antiphon_platform::{Atomic, Budget, Platform};
use antiphon_sync::nap;
use antiphon_sync::queue::{Full, Item, RelaxedQueue, WorkQueue};
use antiphon_sync::wait::EventCount;

use super::asked::Asked;
use super::counters::{Counters, Stats};
use super::idlers::{Idlers, Until};
use super::policy::{Others, Own, Policy};
use super::seats::{Seat, Seats};
use super::surplus::Surplus;
use super::watch::{Watch, Watchdog};
use crate::flight::{self, Event, Found, Log, Records};
use crate::lines::Lines;
use crate::task::Awaited;

/// Workers that share tasks, by a policy. Tasks are [items](Item): what they are, who runs them
/// knows.
pub struct Crew<P: Platform, Y: Policy<P>> {
    policy: Y,
    queues: Box<[Lines<Y::Queue>]>,
    pub(super) seats: Seats<P>,
    shared: RelaxedQueue<P>,
    surplus: Surplus<P>,
    /// Those who wait for room.
    room: EventCount<P>,
    pub(super) idlers: Idlers<P>,
    pub(super) watch: Watch<P>,
    counters: Box<[Lines<Counters<P>>]>,
    /// Of each worker, or of none.
    records: Box<[Lines<Records<P>>]>,
    /// Not 0: no worker rests any more.
    closed: P::U32,
}

/// A worker of a [`Crew`], on the thread that runs it.
pub struct Worker<'a, P: Platform, Y: Policy<P>> {
    crew: &'a Crew<P, Y>,
    seat: Seat<'a, P>,
    me: usize,
    state: Y::State,
    /// How many tasks those of its seat were handed.
    taken: u64,
    log: Log<'a, P>,
    /// Whether it is counted among those who search: between two tasks, and after a panic of the
    /// policy's.
    searches: bool,
}

/// A worker looks at the tasks from outside first each so many tasks, so that its own can't keep
/// these out. Go's number.
const OUTSIDE_EVERY: u64 = 61;
/// How often a searcher looks through all queues before it rests.
const ROUNDS: u32 = 2;
/// How often it searches in vain, though there are tasks, before it lets go of them.
const FUTILE: u32 = 4;
/// For how long, in nanoseconds.
const NAP_NS: u64 = 50_000;

impl<P: Platform, Y: Policy<P>> Crew<P, Y> {
    /// A crew of so many workers, none of which is there yet, and no [spare](Self::spares) ones;
    /// `outside` tasks from outside have room, rounded up to a power of two.
    ///
    /// # Panics
    ///
    /// If it is to be of no workers, or of more than 2³¹.
    #[must_use]
    pub fn new(policy: Y, workers: usize, outside: usize) -> Self {
        assert!(workers > 0 && workers < 1 << 31, "a crew of {workers}");
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
            policy,
        }
    }

    /// So many more workers than seats may be there, without a seat: each in a task that it was in
    /// when it [left](Worker::leave) its seat, or when that was [taken](Watchdog) from it.
    #[must_use]
    pub fn spares(self, spares: usize) -> Self {
        let workers = self.workers();
        Self { seats: Seats::new(workers, workers + spares), ..self }
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

    /// Tells workers that rest of so many tasks, which were put in and nobody was told of: as many
    /// workers, unless some search already. 0 is as 1.
    pub fn tell(&self, tasks: usize) {
        let tasks = u32::try_from(tasks).unwrap_or(u32::MAX);
        self.idlers.notify_many(0, tasks.max(1));
    }

    fn accept(&self, task: Item, rank: Option<u64>) -> Result<(), Full> {
        let pushed = self.policy.submit(&self.shared, task, rank);
        // If it was refused, too: perhaps for a debt, which is settled by who looks for tasks.
        self.idlers.notify(0);
        pushed
    }

    /// As [`submit`](Self::submit), of a task that must not be refused: where there is no room,
    /// room is made.
    pub fn submit_always(&self, task: Item) {
        if let Err(Full(task)) = self.submit(task) {
            self.surplus.push(task);
            self.idlers.notify(0);
        }
    }

    /// The worker of seat `me`, from 0 on: `None` if there is no such seat, it is taken, or no more
    /// workers may be there. It has what the last one of that seat had in its queue.
    pub fn worker(&self, me: usize) -> Option<Worker<'_, P, Y>> {
        let seat = self.seats.take(me)?;
        let taken = self.counters[me].0.taken();
        let log = Log::new(self.records.get(me).map(|records| &records.0), taken);
        Some(Worker {
            crew: self,
            seat,
            me,
            state: Y::State::default(),
            taken,
            log,
            searches: false,
        })
    }

    /// The worker of a seat that is free, if tasks are left: for who ends, once the crew is closed,
    /// until there is `None`.
    pub fn remaining(&self) -> Option<Worker<'_, P, Y>> {
        // CREW-6: who frees a seat looks for tasks then, and who has made some for a free seat.
        P::fence(SeqCst);
        self.has_tasks().then(|| (0..self.workers()).find_map(|seat| self.worker(seat))).flatten()
    }

    /// Who looks after workers that are in a task for too long; `None` if somebody does, or the
    /// platform has no [heavy fence](Platform::heavy_fence).
    pub fn watchdog(&self, patience_ns: u64) -> Option<Watchdog<'_, P, Y>> {
        Watchdog::new(self, patience_ns)
    }

    /// Has workers end that find nothing more to do.
    pub fn close(&self) {
        // Release: what was put in before; pairs with the acquire in `is_closed`. Who rests sees it
        // by the fence of `notify_all`.
        self.closed.store(1, Release);
        self.idlers.notify_all();
        self.room.notify_all();
        self.watch.end();
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

    /// Whether a task is to be seen somewhere.
    fn has_tasks(&self) -> bool {
        !self.shared.is_empty()
            || !self.surplus.is_empty()
            || self.policy.has_tasks()
            || self.queues.iter().any(|queue| !queue.0.is_empty())
    }
}

impl<P: Platform, Y: Policy<P>> Worker<'_, P, Y> {
    /// Puts a task in that the worker has made ready. Does not block.
    ///
    /// # Errors
    ///
    /// If there is no room: the task.
    #[inline]
    pub fn push(&mut self, task: Item) -> Result<(), Full> {
        self.put(task, None)
    }

    /// As [`push`](Self::push), of a task that has a rank.
    ///
    /// # Errors
    ///
    /// As of that.
    #[inline]
    pub fn push_ranked(&mut self, task: Item, rank: u64) -> Result<(), Full> {
        self.put(task, Some(rank))
    }

    /// Puts a task in, and tells nobody: others are to be [told](Crew::tell) next, of all that were
    /// put in so. Whether they find more by it.
    ///
    /// # Errors
    ///
    /// As of [`push`](Self::push).
    #[inline]
    pub fn push_untold(&mut self, task: Item) -> Result<bool, Full> {
        if !self.seat.enter() {
            return self.crew.submit_untold(task).map(|()| true);
        }
        let (pushed, is_found) = self.place(task, None);
        self.seat.exit();
        pushed.map(|()| is_found)
    }

    /// Puts a task in, and has somebody look for it.
    #[inline]
    fn put(&mut self, task: Item, rank: Option<u64>) -> Result<(), Full> {
        if !self.seat.enter() {
            return self.crew.accept(task, rank);
        }
        let (pushed, is_found) = self.place(task, rank);
        if is_found {
            self.crew.idlers.notify(self.me);
        }
        self.seat.exit();
        pushed
    }

    /// Puts a task in, elsewhere if the policy has no room for it; and whether others find more
    /// now. The worker is inside.
    #[inline]
    fn place(&mut self, task: Item, rank: Option<u64>) -> (Result<(), Full>, bool) {
        let (crew, own) = (self.crew, own(self.crew, self.me));
        let pushed = match crew.policy.push(&own, &mut self.state, task, rank) {
            Err(Full(task)) => crew.policy.overflow(&crew.shared, task),
            // Unless the policy has put it elsewhere.
            Ok(()) if own.keeps_last() && !crew.policy.has_tasks() => return (Ok(()), false),
            Ok(()) => Ok(()),
        };
        if pushed.is_ok() {
            return (pushed, true);
        }
        crew.counters[self.me].0.refuse();
        // As in `accept`; but nobody is to be woken for nothing.
        let nothing = crew.shared.is_empty() && crew.queues[self.me].0.is_empty();
        (pushed, !nothing || crew.policy.has_tasks())
    }

    /// As [`push`](Self::push), of a task that must not be refused: where there is no room, room is
    /// made.
    pub fn push_always(&mut self, task: Item) {
        if let Err(Full(task)) = self.push(task) {
            self.crew.surplus.push(task);
            self.crew.idlers.notify(self.me);
        }
    }

    /// Has others find the tasks that the worker's queue keeps for it, where it keeps some, as
    /// [`InBlocks`](super::InBlocks): before the worker does something that takes long.
    pub fn share(&mut self) {
        if self.seat.enter() {
            own(self.crew, self.me).share();
            self.crew.idlers.notify(self.me);
            self.seat.exit();
        }
    }

    /// The task to be run next; waits until there is one. `None` when the crew is closed, and there
    /// is nothing to do; or when the worker has no seat any more.
    #[inline]
    pub fn next_task(&mut self) -> Option<Item> {
        self.inside(|worker| worker.pop().or_else(|| worker.search(None)))
    }

    /// As [`next_task`](Self::next_task), for a worker that waits for something, and closed or not:
    /// `None` when that is over, or the worker has no seat any more.
    pub fn next_until(&mut self, awaited: &Awaited<'_, P>) -> Option<Item> {
        if awaited.is_over() {
            return None;
        }
        self.inside(|worker| worker.pop().or_else(|| worker.search(Some(awaited))))
    }

    /// As [`next_task`](Self::next_task), of what the worker has, or comes from outside. Does not
    /// wait.
    #[inline]
    pub fn try_next_task(&mut self) -> Option<Item> {
        self.inside(Self::pop)
    }

    /// Gives up its seat, for another worker, before it does something long: the number. The queue
    /// stays with the seat. `None`: it has none any more.
    pub fn leave(&mut self) -> Option<usize> {
        let has_seat = self.seat.enter();
        if has_seat {
            self.end_record();
            self.seat.leave();
        }
        self.seat.exit();
        has_seat.then_some(self.me)
    }

    /// Has `next` ask for the next task.
    #[inline]
    fn inside(&mut self, next: impl FnOnce(&mut Self) -> Option<Item>) -> Option<Item> {
        if !self.seat.enter() {
            return None;
        }
        let task = next(self);
        self.seat.begin();
        task
    }

    #[inline]
    fn pop(&mut self) -> Option<Item> {
        let outside = (self.taken + 1).is_multiple_of(OUTSIDE_EVERY);
        let task = if outside { self.look_outside() } else { None };
        let pop = || self.crew.policy.pop(&own(self.crew, self.me), &mut self.state);
        let task = task.or_else(pop)?;
        if self.log.is_due(self.taken) {
            self.log.look(self.taken);
        }
        self.taken += 1;
        Some(task)
    }

    /// Looks outside first, once in so many tasks, and who waits for room.
    fn look_outside(&mut self) -> Option<Item> {
        self.counted();
        self.makes_room();
        self.outside()
    }

    /// Says how many tasks it was handed.
    fn counted(&self) {
        self.crew.counters[self.me].0.take(self.taken);
    }

    /// Records a further event of its own, if it has its seat still: else that of another would be
    /// written to by two.
    pub fn record(&mut self, event: Event) {
        if self.seat.enter() {
            self.log.note(event);
            self.seat.exit();
        }
    }

    /// What it has done until it leaves its seat.
    fn end_record(&mut self) {
        self.counted();
        self.log.pause(self.taken);
    }

    /// Looks for tasks of others, and rests when there are none.
    #[cold]
    fn search(&mut self, awaited: Option<&Awaited<'_, P>>) -> Option<Item> {
        self.counted();
        let began_ns = self.log.pause(self.taken);
        let (found, rested) = self.find(awaited);
        if rested {
            self.crew.watch.ring();
        }
        let (task, whose) =
            found.map_or((None, Found::Nothing), |(task, found)| (Some(task), found));
        self.log.searched(began_ns, whose, self.taken);
        self.taken += u64::from(task.is_some());
        task
    }

    /// As [`search`](Self::search); whose it was, and whether the worker has rested.
    fn find(&mut self, awaited: Option<&Awaited<'_, P>>) -> (Option<(Item, Found)>, bool) {
        let crew = self.crew;
        let is_over = || match awaited {
            Some(awaited) => awaited.is_over(),
            None => crew.is_closed() && !crew.has_tasks(),
        };
        self.searches = self.searches || crew.idlers.search();
        let (mut futile, mut rested) = (0, false);
        loop {
            if self.searches
                && let Some(found) = (0..ROUNDS).find_map(|_| self.look())
            {
                self.end_search();
                return (Some(found), rested);
            }
            if is_over() {
                self.end_search();
                return (None, rested);
            }
            // CREW-5.
            crew.room.notify_all();
            rested = true;
            // CREW-4.
            let gives_up = futile == FUTILE;
            futile = if gives_up { 0 } else { futile + 1 };
            let deadline = gives_up.then(|| nap::earlier::<P>(None, NAP_NS));
            // Where others want the CPU, it is theirs.
            let spin = if P::crowded() { Budget::NONE } else { crew.policy.idle() };
            let until = Until { spin, awaited, deadline };
            let searcher = core::mem::replace(&mut self.searches, true);
            let seen = |alone| {
                let closed = awaited.is_none() && crew.is_closed();
                !gives_up && (closed || alone && crew.has_tasks()) || is_over()
            };
            crew.counters[self.me].0.rest();
            self.log.rest(|| crew.idlers.rest_until(self.me, searcher, until, seen));
        }
    }

    /// Is no searcher any more, if it was one.
    fn end_search(&mut self) {
        if core::mem::take(&mut self.searches) {
            self.crew.idlers.found(self.me, || self.crew.has_tasks());
        }
    }

    /// Looks into the queues of all, once.
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

    /// Takes a task from outside, or one that had no room; of these several, as there is room.
    fn outside(&mut self) -> Option<Item> {
        let (crew, own) = (self.crew, own(self.crew, self.me));
        if let Some(task) = crew.shared.pop() {
            self.makes_room();
            return Some(task);
        }
        let task =
            crew.surplus.take(|task| crew.policy.push(&own, &mut self.state, task, None)).got()?;
        // The others are where they were not seen before.
        crew.idlers.notify(self.me);
        Some(task)
    }

    /// Tells one that waits for room, if it is seen.
    #[inline]
    fn makes_room(&self) {
        if self.crew.room.has_waiters() {
            self.crew.room.notify_one();
        }
    }

    /// Whether it has a seat: if not it will never have one again. May be stale at once.
    pub fn has_seat(&self) -> bool {
        self.seat.is_here()
    }

    /// Which seat it has, or had.
    pub fn seat(&self) -> usize {
        self.me
    }
}

/// The queue of a worker that is here.
fn own<P: Platform, Y: Policy<P>>(crew: &Crew<P, Y>, me: usize) -> Own<'_, Y::Queue> {
    // SAFETY: called by the worker of that seat only, of which there is one, and it is borrowed
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
        // What it has kept to itself nobody else would find.
        own(self.crew, self.me).share();
        self.seat.leave();
        if self.crew.has_tasks() {
            self.crew.idlers.notify(self.me);
        }
    }
}

impl<P: Platform, Y: Policy<P>> fmt::Debug for Crew<P, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("workers", &self.workers()).finish_non_exhaustive()
    }
}

impl<P: Platform, Y: Policy<P>> fmt::Debug for Worker<'_, P, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("seat", &self.me).finish_non_exhaustive()
    }
}

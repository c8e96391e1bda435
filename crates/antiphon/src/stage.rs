//! Stages of a pipeline: the steps in which a program processes its items. Each stage has a bounded
//! queue, and all run on a pool of fibers that they share, or on several pools.
//!
//! ```
//! use antiphon::{fiber, pool::Pool, stage::Stage};
//! use std::sync::{Arc, Mutex};
//!
//! // SAFETY: no fiber waits while it makes a thread-local.
//! let pool = Arc::new(unsafe { Pool::builder().fibers(fiber::STACK_BYTES) }.build()?);
//! let sum = Arc::new(Mutex::new(0));
//! let total = sum.clone();
//! // The last one first: the stage that sends to it has its inlet.
//! let (add, adds) = Stage::builder("add").width(1).on(&pool, move |number: u64| {
//!     *total.lock().unwrap() += number;
//! });
//! let squared = move |number: u64| add.send(number * number);
//! let (square, squares) = Stage::builder("square").room(16).width(4).on(&pool, squared);
//! (0..100).for_each(|number| square.send(number));
//! // No more of them: so `square` ends, and with it its inlet of `add`, which ends, too.
//! drop(square);
//! squares.join().unwrap();
//! assert_eq!(adds.join().unwrap().served, 100);
//! assert_eq!(*sum.lock().unwrap(), 328_350);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Stages form a graph: the closure of a stage owns the inlets of the stages that it sends to. A
//! stage may send to several stages, and several may send to one. A stage ends when all its inlets
//! are dropped, so the graph ends from its beginning to its end. A stage that owns an inlet of
//! itself, even indirectly through other stages, never ends. A stage must not [send](Inlet::send)
//! to itself if all its servers may do so at the same time: when its queue is full, they wait for
//! each other.
//!
//! # Order of service
//!
//! - **Room**: if the queue of a stage is full, the sender waits: a fiber is suspended, and its
//!   thread runs others; a thread sleeps. So a slow stage slows down the stages before it, back to
//!   the source of the items, and no more items are in memory than there is room for.
//! - **Width**: the largest number of items that a stage serves at a time; a stage of width 1
//!   serves them in order. The length of the queue decides how many servers run: one while few
//!   items wait, all when half of the room is taken. A stage has no threads: the workers of the
//!   pool take turns at the stages that have items. So workers move from stages with little work to
//!   stages with much.
//! - **Weight**: a turn lasts `weight` times 100 µs, and serves at least `weight` items. After each
//!   turn (or after eight, if the policy runs the newest task first), other stages have theirs. If
//!   a pool has more work than its workers can do, and runs tasks in order of arrival
//!   ([`Fifo`](crate::pool::policy::Fifo)), stages share its time by their weights.
//!   [`Builder::rank`] is for policies that use ranks, such as
//!   [`Staged`](crate::pool::policy::Staged) and [`Ranked`](crate::pool::policy::Ranked).
//! - **Pools**: a stage that must not wait for others gets its own pool; the others send to it as
//!   to any stage. Ten pools of ten threads, each with all the stages, are no harder: keep an inlet
//!   for each.

use std::any::Any;
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _};
use antiphon_runtime::channel::NotSent;
use antiphon_runtime::sched::{Put, Room};
use antiphon_runtime::stage::{self as line, Next};

use crate::deadline::deadline_after;
use crate::pool::{Pool, policy::Policy};
use crate::{Latch, Mutex};

/// The handle of a stage: returns its figures, and waits for its end. If the handle is dropped, the
/// stage continues.
pub struct Stage(Arc<dyn Watched>);

/// Builds a stage: see [`Stage::builder`].
#[derive(Clone, Debug)]
pub struct Builder {
    name: String,
    room: usize,
    width: Option<usize>,
    weight: u32,
    rank: Option<u64>,
}

/// Sends items to a stage, and keeps the stage alive, as do its clones.
pub struct Inlet<T: Send + 'static>(Arc<Shared<T>>);

/// The figures of a stage: counts of its work so far, and its present queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of items that were served, including those that panicked.
    pub served: u64,
    /// Number of the [`served`](Self::served) items that panicked.
    pub panicked: u64,
    /// Number of times that a sender had to wait because the queue was full. If it grows, this
    /// stage, or one behind it, is the bottleneck.
    pub full: u64,
    /// Number of items that wait.
    pub waiting: usize,
    /// Capacity of the queue, in items.
    pub room: usize,
    /// Number of servers that run, or are about to.
    pub servers: usize,
}

struct Shared<T: Send> {
    name: String,
    line: line::Stage<Linux, T>,
    /// `Some` until the stage is over.
    serve: UnsafeCell<Option<Box<Serve<T>>>>,
    /// Spawns a server of the stage on the pool.
    begin: Box<Begin<T>>,
    weight: u32,
    /// Number of turns that ended with items left.
    turns: AtomicU32,
    inlets: AtomicUsize,
    served: AtomicU64,
    full: AtomicU64,
    panicked: AtomicU64,
    /// The payload of the first panic.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    over: Latch,
}

type Serve<T> = dyn Fn(T) + Send + Sync;
type Begin<T> = dyn Fn(Arc<Shared<T>>, Work<T>, At) + Send + Sync;
type Work<T> = fn(&Arc<Shared<T>>);

/// The place in the pool's queues where a task begins.
enum At {
    /// The place that the policy chooses.
    Its,
    /// Behind the tasks of the thread.
    End,
}

// SAFETY: items, and the closure that serves them, are `Send`, and the closure is `Sync`. It is
// taken out by a thread that has seen that no thread serves or will serve (STAGE-2), and until then
// it is only shared.
unsafe impl<T: Send> Sync for Shared<T> {}

/// A stage with any type of items.
trait Watched: Send + Sync {
    fn name(&self) -> &str;
    fn stats(&self) -> Stats;
    fn over(&self) -> &Latch;
    fn take_panic(&self) -> Option<Box<dyn Any + Send>>;
}

/// Length of a turn of weight 1, in nanoseconds.
const TURN_NS: u64 = 100_000;
/// One in this number of a stage's turns is queued behind all tasks that wait.
const BEHIND_EVERY: u32 = 8;
/// Default capacity of the queue, in items.
const ROOM: usize = 128;

impl Stage {
    /// Starts the settings of a stage called `name`, with room for 128 items, as wide as its pool
    /// has threads, and of weight 1.
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder { name: name.into(), room: ROOM, width: None, weight: 1, rank: None }
    }

    /// Returns the name of the stage.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Returns the figures of the stage. They may be out of date at once.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }

    /// Waits until all inlets are dropped and all items have been served. The stage's closure was
    /// dropped by then.
    ///
    /// # Errors
    ///
    /// The payload of the first panic, if items panicked. All other items were still served.
    pub fn join(self) -> thread::Result<Stats> {
        self.0.over().wait();
        self.0.take_panic().map_or_else(|| Ok(self.stats()), Err)
    }
}

impl Builder {
    /// Sets how many items may wait; rounded up to a power of two.
    #[must_use]
    pub fn room(self, room: usize) -> Self {
        Self { room, ..self }
    }

    /// Sets the largest number of items served at a time. With 1, items are served in the order in
    /// which they were sent.
    #[must_use]
    pub fn width(self, width: usize) -> Self {
        Self { width: Some(width), ..self }
    }

    /// Sets the weight: the stage's share of time relative to a stage of weight 1, if there is more
    /// work than the workers can do.
    #[must_use]
    pub fn weight(self, weight: u32) -> Self {
        Self { weight, ..self }
    }

    /// Gives the servers of the stage a rank: see [`Pool::spawn_ranked`].
    #[must_use]
    pub fn rank(self, rank: u64) -> Self {
        Self { rank: Some(rank), ..self }
    }

    /// Starts a stage on `pool` that calls `serve` for each item, in a fiber. The pool is not
    /// dropped before the stage has ended.
    ///
    /// # Panics
    ///
    /// If the tasks of the pool are not [fibers](crate::pool::Builder::fibers): a sender that waits
    /// for room would block the thread that must make room. Also if room, width or weight is 0, if
    /// room is above 2³¹, or if width is above 2³⁰ − 1.
    #[track_caller]
    pub fn on<T, Y>(
        self,
        pool: &Arc<Pool<Y>>,
        serve: impl Fn(T) + Send + Sync + 'static,
    ) -> (Inlet<T>, Stage)
    where
        T: Send + 'static,
        Y: Policy<Linux> + 'static,
    {
        let Self { name, room, width, weight, rank } = self;
        assert!(pool.has_fibers(), "stage {name:?} needs a pool of fibers (`Builder::fibers`)");
        assert!(weight > 0, "stage {name:?} has weight 0: give it 1 or more");
        let width = width.unwrap_or_else(|| pool.threads());
        let pool = pool.clone();
        let caller = Location::caller();
        let begin = move |shared, work: Work<T>, at| {
            // At the end: under any policy, the worker's own tasks come first.
            let outside = rank.is_none() && matches!(at, At::End);
            let how = Put { rank, room: Room::Make, outside, ..Put::PLAIN };
            pool.begin(how, caller, move || work(&shared));
        };
        let shared = Arc::new(Shared {
            name,
            line: line::Stage::new(room, width),
            serve: UnsafeCell::new(Some(Box::new(serve))),
            begin: Box::new(begin),
            weight,
            turns: AtomicU32::new(0),
            inlets: AtomicUsize::new(1),
            served: AtomicU64::new(0),
            full: AtomicU64::new(0),
            panicked: AtomicU64::new(0),
            panic: Mutex::new(None),
            over: Latch::new(1),
        });
        (Inlet(shared.clone()), Stage(shared))
    }
}

impl<T: Send + 'static> Shared<T> {
    /// Begins a server that was asked for.
    fn begin(self: &Arc<Self>) {
        (self.begin)(self.clone(), Self::take_turn, At::Its);
    }

    /// Serves items until there are none, or it is the turn of other stages; then another server
    /// continues, on any free thread.
    fn take_turn(self: &Arc<Self>) {
        let until = now().saturating_add(TURN_NS * u64::from(self.weight));
        for served in 1.. {
            match self.line.next() {
                Next::Item(item) => self.serve(item),
                Next::Left => return,
                Next::Over => return self.end(),
            }
            if served >= self.weight && now() >= until {
                return self.go_on();
            }
        }
    }

    /// Spawns another server to continue. A policy may always prefer the newest task, which this
    /// server is: so now and then the server is queued behind all others.
    fn go_on(self: &Arc<Self>) {
        // Relaxed: only a count.
        let turns = self.turns.fetch_add(1, Relaxed);
        let at = if turns % BEHIND_EVERY == BEHIND_EVERY - 1 { At::End } else { At::Its };
        (self.begin)(self.clone(), Self::take_turn, at);
    }

    /// Serves an item, on a server.
    fn serve(&self, item: T) {
        // SAFETY: STAGE-2: the caller serves, so the stage is not over, and no thread writes to it.
        let serve = unsafe { &*self.serve.get() };
        let serve = serve.as_ref().expect("it is there until the stage is over");
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| serve(item))) {
            // Relaxed, here and below: counts.
            self.panicked.fetch_add(1, Relaxed);
            self.keep_first(panic);
        }
        self.served.fetch_add(1, Relaxed);
    }

    fn keep_first(&self, panic: Box<dyn Any + Send>) {
        let mut first = self.panic.lock();
        if first.is_none() {
            *first = Some(panic);
            return;
        }
        drop(first);
        // Dropping the payload of a panic may panic, too.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            forget(panic);
        }
    }

    /// Called when the stage is over, as a task of the pool: the stage's closure owns inlets of
    /// other stages, whose closures own inlets of yet others, and not all of these can end on one
    /// stack.
    fn end(self: &Arc<Self>) {
        // SAFETY: STAGE-2: no thread serves or will serve, and this is called once.
        let serve = unsafe { (*self.serve.get()).take() };
        // The inlets of other stages are dropped with it. A panic of another value in it is kept
        // like that of an item.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(serve))) {
            self.keep_first(panic);
        }
        self.over.count_down(1);
    }

    fn sent(self: &Arc<Self>, sent: Result<bool, NotSent<T>>) -> Result<(), T> {
        match sent {
            Ok(true) => self.begin(),
            Ok(false) => {}
            Err(NotSent::Full(item) | NotSent::Closed(item)) => return Err(item),
        }
        Ok(())
    }
}

impl<T: Send> Watched for Shared<T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn stats(&self) -> Stats {
        Stats {
            served: self.served.load(Relaxed),
            panicked: self.panicked.load(Relaxed),
            full: self.full.load(Relaxed),
            waiting: self.line.len(),
            room: self.line.room(),
            servers: self.line.servers(),
        }
    }

    fn over(&self) -> &Latch {
        &self.over
    }

    fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        self.panic.lock().take()
    }
}

impl<T: Send + 'static> Inlet<T> {
    /// Sends an item. Waits while the queue is full.
    pub fn send(&self, item: T) {
        let Err(item) = self.try_send(item) else { return };
        self.0.full.fetch_add(1, Relaxed);
        let sent = self.0.sent(self.0.line.send(item, None));
        assert!(sent.is_ok(), "a stage is open while it has an inlet");
    }

    /// Sends like [`send`](Self::send), but gives up after `timeout`.
    ///
    /// # Errors
    ///
    /// The item, if the queue stayed full.
    pub fn send_timeout(&self, item: T, timeout: Duration) -> Result<(), T> {
        let Err(item) = self.try_send(item) else { return Ok(()) };
        self.0.full.fetch_add(1, Relaxed);
        self.0.sent(self.0.line.send(item, Some(deadline_after(timeout))))
    }

    /// Sends an item without blocking.
    ///
    /// # Errors
    ///
    /// The item, if the queue is full.
    pub fn try_send(&self, item: T) -> Result<(), T> {
        self.0.sent(self.0.line.try_send(item))
    }

    /// Returns the figures of the stage. They may be out of date at once.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }
}

impl<T: Send + 'static> Clone for Inlet<T> {
    fn clone(&self) -> Self {
        // Relaxed: the caller holds an inlet, so the count is not 0.
        self.0.inlets.fetch_add(1, Relaxed);
        Self(self.0.clone())
    }
}

impl<T: Send + 'static> Drop for Inlet<T> {
    fn drop(&mut self) {
        // Release, Acquire: all sends happen before the close; pairs with itself.
        if self.0.inlets.fetch_sub(1, AcqRel) == 1 && self.0.line.close() {
            (self.0.begin)(self.0.clone(), Shared::end, At::Its);
        }
    }
}

fn now() -> u64 {
    Linux::now(Clock::Monotonic)
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("name", &self.name()).field("stats", &self.stats()).finish()
    }
}

impl<T: Send + 'static> fmt::Debug for Inlet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inlet").field(&self.0.name).finish()
    }
}

/// The example of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/stages.md")]
struct Guide;

//! Stages: what a program does to its items in steps, each with a line of its own that has a bound,
//! on a pool of fibers that they share, or on several.
//!
//! ```
//! use antiphon::{fiber, pool::Pool, stage::Stage};
//! use std::sync::{Arc, Mutex};
//!
//! // SAFETY: no thread-local is made by what waits.
//! let pool = Arc::new(unsafe { Pool::builder().fibers(fiber::STACK_BYTES) }.build()?);
//! let sum = Arc::new(Mutex::new(0));
//! let total = sum.clone();
//! // The last one first: who sends to it has its inlet.
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
//! A graph of them is made by who has whose inlets: a step that sends to several, several that send
//! to one. It ends from its beginning on, when nobody has an inlet any more; a stage that has one
//! of its own, by way of others too, never ends by itself. Nor may it [send](Inlet::send) to itself
//! where all who serve may do so: when its line is full they wait for each other.
//!
//! # Who is served when
//!
//! - **Room**: where the line of a stage is full, who sends waits: a fiber is suspended, and its
//!   thread has others run; a thread sleeps. So what is slow slows down what is before it, back to
//!   whoever brings the items in, and no more of them are in memory than there is room for.
//! - **Width**: a stage serves so many items at a time, and one wide it serves them in order. How
//!   many it is at the moment its line says: one while few wait, all when half of the room is
//!   taken.
//!   Nobody is its own server: the workers of the pool have turns with whichever stage has items.
//!   So workers are lent from where there is little to do to where there is much.
//! - **Weight**: a turn lasts for so many times 100 µs, and so many items at least; after it, or
//!   after eight where the policy prefers what was made ready last, others have theirs. Where a
//!   pool has more to do than workers, and tasks in order of their coming
//!   ([`Fifo`](crate::pool::Fifo)), stages have shares of its time by their weights.
//!   [`Builder::rank`] is for policies that know of ranks, as [`Staged`](crate::pool::Staged) or
//!   [`Ranked`](crate::pool::Ranked).
//! - **Pools**: what must not wait for others has a pool of its own, and is sent to all the same.
//!   Ten pools of ten threads, each with all the stages, is as easy: an inlet for each.

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
use antiphon_platform::{Clock, Platform as _};
use antiphon_runtime::channel::NotSent;
use antiphon_runtime::stage::{self as line, Next};

use crate::pool::{Policy, Pool};
use crate::raw::deadline_after;
use crate::{Latch, Mutex};

/// What is known of a stage, and how to wait for its end. Dropped, the stage goes on.
pub struct Stage(Arc<dyn Watched>);

/// How to make a stage: see [`Stage::builder`].
#[derive(Clone, Debug)]
pub struct Builder {
    name: String,
    room: usize,
    width: Option<usize>,
    weight: u32,
    rank: Option<u64>,
}

/// Sends items to a stage, and keeps it from its end; clones do so, too.
pub struct Inlet<T: Send + 'static>(Arc<Shared<T>>);

/// What a stage has done so far, and has before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// How many items were served; of these, how many have panicked.
    pub served: u64,
    /// See [`served`](Self::served).
    pub panicked: u64,
    /// How often there was no room for an item, and who sent it had to wait: this stage, or one
    /// behind it, is what the others wait for.
    pub full: u64,
    /// How many items wait, and for how many there is room.
    pub waiting: usize,
    /// See [`waiting`](Self::waiting).
    pub room: usize,
    /// How many serve, or are about to.
    pub servers: usize,
}

struct Shared<T: Send> {
    name: String,
    line: line::Stage<Linux, T>,
    /// Until the stage is over.
    serve: UnsafeCell<Option<Box<Serve<T>>>>,
    /// Puts what is to be done on the pool.
    begin: Box<Begin<T>>,
    weight: u32,
    /// How many turns were over.
    turns: AtomicU32,
    inlets: AtomicUsize,
    served: AtomicU64,
    full: AtomicU64,
    panicked: AtomicU64,
    /// What the first one has panicked with.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    over: Latch,
}

type Serve<T> = dyn Fn(T) + Send + Sync;
type Begin<T> = dyn Fn(Arc<Shared<T>>, Work<T>, At) + Send + Sync;
type Work<T> = fn(&Arc<Shared<T>>);

/// Where a task begins.
enum At {
    /// Where the policy has it.
    Its,
    /// Behind what the thread has.
    End,
}

// SAFETY: items, and what serves them, are `Send`, and that is `Sync`. It is taken out by one who
// has seen that nobody serves, nor will (STAGE-2), and until then it is shared.
unsafe impl<T: Send> Sync for Shared<T> {}

/// A stage, whatever its items are.
trait Watched: Send + Sync {
    fn name(&self) -> &str;
    fn stats(&self) -> Stats;
    fn over(&self) -> &Latch;
    fn take_panic(&self) -> Option<Box<dyn Any + Send>>;
}

/// How long a turn is of weight 1, in nanoseconds.
const TURN_NS: u64 = 100_000;
/// So many turns of a stage may be on end where others wait.
const BEHIND_EVERY: u32 = 8;
/// For how many items there is room by default.
const ROOM: usize = 128;

impl Stage {
    /// A stage of that name, with room for 128 items, as wide as its pool has threads, and of
    /// weight 1.
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder { name: name.into(), room: ROOM, width: None, weight: 1, rank: None }
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// What it has done so far; may be stale at once.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }

    /// Waits until nobody has an inlet any more, and all items were served; what served them is
    /// dropped then.
    ///
    /// # Errors
    ///
    /// What the first one has panicked with that has. All others were served all the same.
    pub fn join(self) -> thread::Result<Stats> {
        self.0.over().wait();
        self.0.take_panic().map_or_else(|| Ok(self.stats()), Err)
    }
}

impl Builder {
    /// With room for so many items that wait, rounded up to a power of two.
    #[must_use]
    pub fn room(self, room: usize) -> Self {
        Self { room, ..self }
    }

    /// Serves so many items at a time at the most; with one, in the order in which they were sent.
    #[must_use]
    pub fn width(self, width: usize) -> Self {
        Self { width: Some(width), ..self }
    }

    /// Has so many turns where others have one, if there is more to do than there are workers.
    #[must_use]
    pub fn weight(self, weight: u32) -> Self {
        Self { weight, ..self }
    }

    /// Its servers are tasks of that rank: see [`Pool::spawn_ranked`].
    #[must_use]
    pub fn rank(self, rank: u64) -> Self {
        Self { rank: Some(rank), ..self }
    }

    /// A stage on that pool that has `serve` serve each item, in a fiber. The pool is not dropped
    /// before the stage is over.
    ///
    /// # Panics
    ///
    /// If the tasks of the pool are no [fibers](crate::pool::Builder::fibers): who waits for room
    /// then would keep its thread from making some. If there is to be no room, no width or no
    /// weight, or more than 2³¹, 2³⁰ − 1 and 2³².
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
        assert!(pool.has_fibers(), "stage {name:?} is on a pool whose tasks are no fibers");
        assert!(weight > 0, "stage {name:?} has no weight");
        let width = width.unwrap_or_else(|| pool.threads());
        let pool = pool.clone();
        let caller = Location::caller();
        let begin = move |shared, work: Work<T>, at| match (rank, at) {
            (None, At::End) => pool.begin_behind(caller, move || work(&shared)),
            _ => pool.begin(rank, caller, move || work(&shared)),
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
    /// Has a server begin that was asked for.
    fn begin(self: &Arc<Self>) {
        (self.begin)(self.clone(), Self::take_turn, At::Its);
    }

    /// Serves items until there are none, or it is the turn of others; then another server goes on,
    /// on whichever thread is free.
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

    /// Has another server go on. A policy may prefer what was made ready last, as that is, for
    /// good: so now and then it is behind all.
    fn go_on(self: &Arc<Self>) {
        // Relaxed: a count.
        let turns = self.turns.fetch_add(1, Relaxed);
        let at = if turns % BEHIND_EVERY == BEHIND_EVERY - 1 { At::End } else { At::Its };
        (self.begin)(self.clone(), Self::take_turn, at);
    }

    /// For servers.
    fn serve(&self, item: T) {
        // SAFETY: STAGE-2, the caller serves, so it is not over, and nobody writes to it.
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
        // What it has may panic in turn.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            forget(panic);
        }
    }

    /// For the one who has seen that it is over, as a task of the pool: what served has the inlets
    /// of others, and those of yet others, and not all of these can end on one stack.
    fn end(self: &Arc<Self>) {
        // SAFETY: STAGE-2, nobody serves, nor will, and this is called once.
        let serve = unsafe { (*self.serve.get()).take() };
        // With it go the inlets of others; if what else it has panics, that is as an item's.
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
    /// Sends an item; waits while there is no room.
    pub fn send(&self, item: T) {
        let Err(item) = self.try_send(item) else { return };
        self.0.full.fetch_add(1, Relaxed);
        let sent = self.0.sent(self.0.line.send(item, None));
        assert!(sent.is_ok(), "a stage is open while it has an inlet");
    }

    /// As [`send`](Self::send), and waits no longer than that.
    ///
    /// # Errors
    ///
    /// If there is no room until then: the item.
    pub fn send_timeout(&self, item: T, timeout: Duration) -> Result<(), T> {
        let Err(item) = self.try_send(item) else { return Ok(()) };
        self.0.full.fetch_add(1, Relaxed);
        self.0.sent(self.0.line.send(item, Some(deadline_after(timeout))))
    }

    /// Sends an item. Does not block.
    ///
    /// # Errors
    ///
    /// If there is no room: the item.
    pub fn try_send(&self, item: T) -> Result<(), T> {
        self.0.sent(self.0.line.try_send(item))
    }

    /// What the stage has done so far; may be stale at once.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }
}

impl<T: Send + 'static> Clone for Inlet<T> {
    fn clone(&self) -> Self {
        // Relaxed: the caller has one.
        self.0.inlets.fetch_add(1, Relaxed);
        Self(self.0.clone())
    }
}

impl<T: Send + 'static> Drop for Inlet<T> {
    fn drop(&mut self) {
        // Release, Acquire: what was sent by all comes before the end; pairs with itself.
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

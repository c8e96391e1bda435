//! Stuck-pool detection: a thread checks whether all fibers of a pool wait and none can wake
//! another.
//!
//! If two checks see the same counts, no task or fiber of the pool has run in between:
//!
//! | | changes when |
//! |---|---|
//! | `tasks` | a task begins |
//! | `moved` | a fiber continues |
//! | `waiting` | a fiber ends |
//!
//! So the pool does not report anything to the thread, and pays nothing for being watched. There is
//! one exception: while all threads rest and fibers wait, the threads are woken to report that, at
//! each half of the time `after`.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_linux::Linux;

use super::shared::Shared;
use super::{Builder, Policy};
use crate::debug::by_name;
use crate::fiber::Waits;
use crate::fiber::census::Census;

/// A pool that makes no progress, and its fibers. Its `Display` is the report that
/// [`report_stuck`](super::Builder::report_stuck) writes.
#[derive(Debug)]
#[non_exhaustive]
pub struct Stuck {
    /// The prefix of the names of the pool's threads.
    pub pool: String,
    /// The pool has made no progress for at least this time.
    pub still_for: Duration,
    /// Where the fibers wait.
    pub census: Census,
    waits: Waits,
}

/// The closure to call with the report.
#[derive(Clone)]
pub(super) struct Teller(pub(super) Arc<dyn Fn(&Stuck) + Send + Sync>);

/// The time after which a pool is reported, and the closure to call.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub(super) after: Duration,
    pub(super) teller: Teller,
}

/// Counters by which two checks are compared: see the module's table.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Moves {
    tasks: u64,
    moved: u32,
    waiting: usize,
}

impl Builder {
    /// Writes the places where the pool's [fibers](Builder::fibers) wait to stderr, if for the time
    /// `after` all threads of the pool have rested and all fibers have waited, none with a deadline
    /// or for a file. Reports once each time the pool gets into that state. Costs a thread, which
    /// checks at each half of that time until the pool has ended, also while the pool is dropped.
    ///
    /// Does not report a pool without fibers, nor a pool with a fiber that has a deadline or waits
    /// for a socket, because it is unknown what that fiber does next. A report may be wrong: a
    /// thread outside the pool may wake a fiber at any time.
    pub fn report_stuck(self, after: Duration) -> Self {
        self.on_stuck(after, |stuck| eprintln!("{stuck}"))
    }

    /// Passes a report that the pool is stuck to `tell` instead of writing it: see
    /// [`report_stuck`](Self::report_stuck). `tell` runs on its own thread and may block; dropping
    /// the pool then blocks, too. In a test it may end the process.
    ///
    /// ```
    /// use antiphon::{Mutex, fiber, pool::Pool};
    /// use std::sync::mpsc::channel;
    /// use std::time::Duration;
    ///
    /// static LOCK: Mutex<()> = Mutex::new(());
    ///
    /// let (sender, reports) = channel();
    /// let tell = move |stuck: &antiphon::pool::Stuck| _ = sender.send(stuck.to_string());
    /// let builder = Pool::builder().threads(1);
    /// let builder = builder.on_stuck(Duration::from_millis(20), tell);
    /// // SAFETY: no fiber waits while it makes a thread-local.
    /// let pool = unsafe { builder.fibers(fiber::STACK_BYTES) }.build()?;
    /// let held = LOCK.lock();
    /// let waits = pool.spawn(|| drop(LOCK.lock()));
    /// let report = reports.recv().unwrap();
    /// assert!(report.contains("fibers that wait: 1"), "{report}");
    /// drop(held);
    /// waits.join().unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_stuck(
        mut self,
        after: Duration,
        tell: impl Fn(&Stuck) + Send + Sync + 'static,
    ) -> Self {
        self.stuck = Some(Watch { after, teller: Teller(Arc::new(tell)) });
        self
    }
}

/// Maximum number of fibers per thread whose waits are reported.
const MOST: usize = 1_000;
/// Longest wait for the answer of a resting thread: a thread that does not answer is busy.
const PATIENCE: Duration = Duration::from_secs(1);
/// Least time between two checks.
const LEAST: Duration = Duration::from_millis(1);

impl Watch {
    /// Checks periodically, until the pool's threads have ended.
    pub(super) fn run<Y: Policy<Linux> + 'static>(&self, shared: &Shared<Y>) {
        let (mut still, mut told) = (None, None);
        while !shared.bench.is_over_after((self.after / 2).max(LEAST)) {
            let Some(moves) = shared.wait_for_each_other(0).map(|(moves, _)| moves) else {
                still = None;
                continue;
            };
            let (_, since) =
                still.filter(|(seen, _)| *seen == moves).unwrap_or_else(|| (moves, Instant::now()));
            still = Some((moves, since));
            // Report once each time that the pool gets into that state.
            if since.elapsed() < self.after || told == Some(moves) {
                continue;
            }
            let again = shared.wait_for_each_other(MOST).filter(|(again, _)| *again == moves);
            if let Some((_, census)) = again {
                told = Some(moves);
                let (pool, still_for) = (shared.bench.name().to_owned(), since.elapsed());
                let waits = Waits::of(&census);
                (self.teller.0)(&Stuck { pool, still_for, census, waits });
            }
        }
    }
}

impl<Y: Policy<Linux> + 'static> Shared<Y> {
    /// Returns the report of the pool's fibers if all threads rest, or have no stack for the next
    /// task, and all fibers wait without a deadline and not for a file.
    fn wait_for_each_other(&self, most: usize) -> Option<(Moves, Census)> {
        // A thread that has no stack for its tasks does not count as resting, because it has tasks.
        if !self.crew.is_at_rest() && !self.desks.is_any_dry() {
            return None;
        }
        let census = self.census(most, Instant::now() + PATIENCE);
        let (mut moved, mut waiting) = (0_u32, 0);
        for thread in &census.threads {
            // A thread that does not answer is busy.
            let answer = thread.answer.as_ref()?;
            if answer.ready + answer.with_deadline + answer.for_files > 0 {
                return None;
            }
            moved = moved.wrapping_add(answer.moved);
            waiting += answer.waiting;
        }
        let moves = Moves { tasks: self.stats().tasks, moved, waiting };
        (waiting > 0).then_some((moves, census))
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, still_for, census, waits } = self;
        writeln!(
            f,
            "antiphon: the pool {pool} is stuck: nothing has gone on for {still_for:.1?}.\n\
             Its threads rest; fibers that wait: {}, none of them for a time or a file.",
            census.waiting(),
        )?;
        if let Some(why) = census.no_stack() {
            writeln!(f, "Tasks that might let one go on can't begin: {why}.")?;
        }
        writeln!(
            f,
            "If no other thread lets one go on, they wait for ever.\n\
             A lock does not know its owner: a fiber that may hold it is one that has its address \
             on its stack."
        )?;
        for (count, by) in census.by() {
            writeln!(f, "{count} by {by}")?;
        }
        write!(f, "{waits}\n{census}")
    }
}

by_name!([] Teller, "Teller");

//! Deterministic pools for tests: one thread, a virtual clock, and the same schedule for the same
//! seed each time.
//!
//! The workers here are those of [`pool`](crate::pool): the same policies, queues, tasks and
//! wake-ups, the same code. They run on a simulated machine instead of Linux, so the seed decides
//! the order and times of all events. With the feature `deterministic`:
//!
//! ```
//! use antiphon::deterministic::{Pool, Runner};
//!
//! fn answer(pool: Pool) -> i32 {
//!     let half = pool.spawn(|| 21);
//!     pool.spawn_future(async { 2 * half.await.unwrap() }).join().unwrap()
//! }
//!
//! let run = Runner::new().run(7, answer).unwrap();
//! assert_eq!(run.returned, 42);
//! assert_eq!(run.schedule, Runner::new().run(7, answer).unwrap().schedule);
//! assert_ne!(run.schedule, Runner::new().run(8, answer).unwrap().schedule);
//! ```
//!
//! [`Runner::explore`] is for tests: it tries many seeds, and panics with the first that fails, the
//! schedule, and how to replay it.
//!
//! ```should_panic
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
//! use std::time::Duration;
//!
//! use antiphon::deterministic::{Runner, sleep};
//!
//! // Two tasks that read, await, and write: in some schedule one update is lost.
//! Runner::new().explore(0..100, |pool| {
//!     let count = Arc::new(AtomicU32::new(0));
//!     let tasks: Vec<_> = (0..2).map(|_| {
//!         let count = count.clone();
//!         pool.spawn_future(async move {
//!             let seen = count.load(Relaxed);
//!             sleep(Duration::from_micros(1)).await;
//!             count.store(seen + 1, Relaxed);
//!         })
//!     }).collect();
//!     tasks.into_iter().for_each(|task| task.join().unwrap());
//!     assert_eq!(count.load(Relaxed), 2);
//! });
//! ```
//!
//! # What a seed decides
//!
//! The seed decides when each worker starts; how long a wake-up takes; which worker a thief steals
//! from, and every other random choice of a policy; and how long a spawning task, and the worker
//! that will run the new task, are delayed: mostly for less than half a microsecond, sometimes for
//! up to twenty, like a thread that has lost its CPU. These decide which of several accesses to a
//! word comes first.
//!
//! # What a seed does not decide
//!
//! - **Closures are not interrupted.** Other tasks run while a task spawns, joins, awaits, or
//!   [works](work), and at no other point: races between two lines of a closure are left to the
//!   model checkers.
//! - **A lock of the operating system that is held during one of these calls** stops the process
//!   for ever if another task wants it, because all tasks run on one thread. So does a loop without
//!   any of these calls.
//! - **Real time, real threads, input and output** are outside: a thread that wakes a future, or
//!   uses a pool, panics. Other sources of randomness (the order of a `HashMap`) make schedules
//!   differ; [`Runner::explore`] says so if a failure does not repeat.
//! - **A destructor that waits for a task while its own task panics** ends the process, which
//!   prints the seed. Tasks that destructors spawn or wake during a panic are queued after the
//!   panic was caught.
//! - **These parts of [`pool`](crate::pool) are missing:** [`join`](crate::pool::join) (forks),
//!   [`run`](crate::pool::Pool::run), [`spawn_many`](crate::pool::Pool::spawn_many),
//!   [`try_spawn`](crate::pool::Pool::try_spawn), [`share`](crate::pool::Pool::share),
//!   [`put_in_charge`](crate::pool::Pool::put_in_charge), [`blocking`](crate::pool::blocking),
//!   [recordings](crate::pool::Pool::recording), [`wait_all`](crate::pool::wait_all), and all
//!   settings of a [`Builder`](crate::pool::Builder) but workers and policy.
//! - **Times are simulated**, and say nothing about any machine.
//! - **A policy that panics** ends the run with that panic; a real pool may do otherwise.
//! - **A failed run leaks** its remaining stacks, and the values on them.

mod explore;
mod failure;
mod future;
mod local;
mod pool;
mod run;
mod runner;
mod schedule;
mod scope;
mod timers;
mod worker;

use std::time::Duration;

use crate::deadline::nanos;

pub use antiphon_sim::Sim;
pub use failure::{Failure, Why};
pub use pool::{JoinHandle, Pool};
pub use runner::{Run, Runner};
pub use schedule::{By, Schedule, Step, What};
pub use scope::Scope;
pub use timers::{Sleep, sleep};

/// A policy that is chosen while the program runs, or by
/// [name](crate::pool::policy::UnknownPolicy).
pub type BoxedPolicy = antiphon_runtime::sched::BoxedPolicy<Sim>;

/// Returns the virtual time since the run began. Takes no virtual time.
///
/// # Panics
///
/// If called outside of a run. The same holds for all functions of this module.
#[must_use]
pub fn now() -> Duration {
    run::current();
    Duration::from_nanos(antiphon_sim::now())
}

/// Advances virtual time by `time` for the caller. A task keeps its worker meanwhile, and other
/// tasks run.
///
/// # Panics
///
/// If called outside of a run.
pub fn work(time: Duration) {
    run::current();
    antiphon_sim::work(nanos(time));
}

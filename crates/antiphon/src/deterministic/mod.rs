//! Pools for tests: one seed, one thread, a virtual clock, and the same schedule again.
//!
//! The workers here are those of [`pool`](crate::pool): the same policies, queues, tasks and
//! wake-ups, line by line. They run on a simulated machine in place of Linux, so what happens when
//! is the seed's to say. With the feature `deterministic`:
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
//! When each worker starts; how long a wake takes; whose tasks a thief takes, and each other choice
//! of a policy's that is random; how long who spawned a task, and who is to run one, is held up:
//! most of the time for less than half a microsecond, sometimes for up to twenty, as one that has
//! lost its CPU. Which of several accesses to a word comes first follows from that.
//!
//! # What it does not
//!
//! - **Closures are not interrupted.** Others go on while a task spawns, joins, awaits, or
//!   [works](work), and at no other point of it: races between two lines of a closure are for the
//!   model checkers.
//! - **A lock of the system's that is held over one of these** stops the process for ever, if
//!   another task wants it: all tasks are on one thread. So does a loop that does none of these.
//! - **Real time, real threads, input and output** are outside: a thread that wakes a future, or
//!   uses a pool, panics. What is random by itself (the order of a `HashMap`) makes schedules
//!   differ; [`Runner::explore`] says so of a failure that does not come again.
//! - **A destructor that waits for a task while its own task panics** ends the process, and says
//!   the seed. What destructors spawn and wake in a panic is put in when that was caught.
//! - **Of [`pool`](crate::pool) these are not there:** [`join`](crate::pool::join) (forks),
//!   [`run`](crate::pool::Pool::run), [`spawn_many`](crate::pool::Pool::spawn_many),
//!   [`try_spawn`](crate::pool::Pool::try_spawn), [`share`](crate::pool::Pool::share),
//!   [`put_in_charge`](crate::pool::Pool::put_in_charge), [`blocking`](crate::pool::blocking),
//!   [recordings](crate::pool::Pool::recording), [`wait_all`](crate::pool::wait_all), and what a
//!   [`Builder`](crate::pool::Builder) sets but for workers and policy.
//! - **Times are simulated**, and say nothing about any machine.
//! - **A policy that panics** ends the run with that, whatever a real pool does.
//! - **What a run that has failed has left behind** is leaked: its stacks, and what is on them.

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

use crate::raw::nanos;

pub use antiphon_sim::Sim;
pub use failure::{Failure, Why};
pub use pool::{JoinHandle, Pool};
pub use runner::{Run, Runner};
pub use schedule::{By, Schedule, Step, What};
pub use scope::Scope;
pub use timers::{Sleep, sleep};

/// A policy that is chosen while the program runs, or by [name](crate::pool::UnknownPolicy).
pub type BoxedPolicy = antiphon_runtime::sched::BoxedPolicy<Sim>;

/// The virtual time that has passed since the run began. Costs nothing.
///
/// # Panics
///
/// Outside of a run, as all of this module's functions.
#[must_use]
pub fn now() -> Duration {
    run::current();
    Duration::from_nanos(antiphon_sim::now())
}

/// Takes the caller so much virtual time: a task keeps its worker meanwhile, and others go on.
///
/// # Panics
///
/// Outside of a run.
pub fn work(time: Duration) {
    run::current();
    antiphon_sim::work(nanos(time));
}

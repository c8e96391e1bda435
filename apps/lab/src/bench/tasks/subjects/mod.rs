//! The measured runtimes.
//!
//! In each of them, a task spawns the others, so that one worker is one thread; the main thread
//! sleeps.

mod chili;
mod may;
mod pool;
mod rayon;
mod scope;
mod smol;
mod tokio;

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use super::cases::Case::{self, Across, Channel, ForkJoin, Idle, Parked, Select, SpawnJoin, Yield};
use super::cases::Cell;
use crate::bench::pools::built::Language;

/// Our runtimes.
pub const OURS: &[&str] = if cfg!(feature = "migrating") {
    &["pool", "scope", "fibers", MOVING]
} else {
    &["pool", "scope", "fibers"]
};
const MOVING: &str = "fibers-migrating";
/// The runtimes to compare with.
pub const PEERS: &[&str] = &["rayon", "smol", "tokio", GO, "chili", "may", BOOST];
const GO: &str = "go";
const BOOST: &str = "boost";
/// The peers that are other programs.
pub const PROGRAMS: &[(&str, Language, &str)] = &[
    (GO, Language::Go, include_str!("main.go")),
    (BOOST, Language::Boost, include_str!("boost.cpp")),
];

/// A runtime with its workers.
pub trait Runtime {
    /// A task spawns `batch` tasks that do nothing and waits for them, `times` times. Returns the
    /// total time.
    fn spawn_join(&self, _batch: usize, _times: usize) -> Duration {
        unreachable!("`has` says which runtime has this")
    }

    /// Computes a [Fibonacci number](super::measure::fibonacci) `times` times. Returns the total
    /// time.
    fn fork_join(&self, _n: u32, _times: usize) -> Duration {
        unreachable!("`has` says which runtime has this")
    }

    /// Calls `look` before tasks are spawned (`false`), and when they are spawned but none has run.
    fn idle(&self, _tasks: usize, _look: Look<'_>) {
        unreachable!("`has` says which runtime has this")
    }

    /// `tasks` tasks yield `each` times each. Returns the total time.
    fn yields(&self, _tasks: usize, _each: usize) -> Duration {
        unreachable!("`has` says which runtime has this")
    }

    /// A task sends `messages` messages to another, through a channel with `room`. Returns the
    /// total time. Both come to the meeting first.
    fn channel(&self, _room: usize, _messages: usize, _meeting: Meeting) -> Duration {
        unreachable!("`has` says which runtime has this")
    }

    /// Two tasks send half of `messages` messages each to a third, which waits for both. Returns
    /// the total time.
    fn select(&self, _room: usize, _messages: usize) -> Duration {
        unreachable!("`has` says which runtime has this")
    }

    /// Calls `look` as [`idle`](Self::idle) does, but after all tasks have begun and wait.
    fn parked(&self, _tasks: usize, _look: Look<'_>) {
        unreachable!("`has` says which runtime has this")
    }
}

/// A function that measures the process before tasks are spawned (`false`) and afterwards (`true`).
pub type Look<'a> = &'a mut (dyn FnMut(bool) + Send);

/// A meeting at which tasks keep their threads until all have come, so that each is on another
/// thread.
#[derive(Clone)]
pub struct Meeting(Arc<AtomicUsize>);

impl Meeting {
    /// A meeting of `tasks` tasks.
    pub fn of(tasks: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(tasks)))
    }

    /// Comes to the meeting, and waits for the others.
    pub fn come(&self) {
        // Relaxed, here and below: the counter publishes no other data.
        let left = |left: usize| left.checked_sub(1);
        if self.0.fetch_update(Relaxed, Relaxed, left).is_ok() {
            while self.0.load(Relaxed) > 0 {
                std::hint::spin_loop();
            }
        }
    }
}

/// Calls `spawn` for each of `tasks` tasks, which add themselves to the count and wait. Calls
/// `look` before, and when all have begun.
fn park(tasks: usize, look: Look<'_>, mut spawn: impl FnMut(Arc<AtomicUsize>)) {
    let here = Arc::new(AtomicUsize::new(0));
    look(false);
    (0..tasks).for_each(|_| spawn(here.clone()));
    while here.load(Relaxed) < tasks {
        thread::sleep(Duration::from_millis(1));
    }
    look(true);
}

/// A task of `park` as a future, which never completes.
async fn parked(here: Arc<AtomicUsize>) {
    here.fetch_add(1, Relaxed);
    pending().await
}

/// Returns whether a runtime supports a case.
pub fn has(name: &str, case: Case) -> bool {
    let cases: &[Case] = match name {
        "scope" => &[SpawnJoin, Idle],
        "smol" => &[SpawnJoin, Idle, Yield, Parked],
        "tokio" => &[SpawnJoin, Idle, Yield, Parked, Channel, Across, Select],
        "chili" => &[ForkJoin],
        "may" => &[SpawnJoin, Yield, Parked],
        BOOST => &[SpawnJoin, Yield, Channel, Across],
        "fibers" | MOVING | GO => {
            &[SpawnJoin, ForkJoin, Idle, Yield, Parked, Channel, Across, Select]
        }
        _ => &[SpawnJoin, ForkJoin, Idle],
    };
    cases.contains(&case)
}

/// Returns why a runtime that supports the case can't run the cell's number of tasks.
pub fn lacks(name: &str, cell: &Cell) -> Option<String> {
    // These allocate a stack even for a task that has not run.
    let most = 20_000;
    let has_too_many =
        cell.case == SpawnJoin && cell.batch > most && ["may", BOOST].contains(&name);
    has_too_many.then(|| format!("has stacks for no more than {most} tasks, or so"))
}

/// Starts a runtime in this process, with `workers` workers.
///
/// # Errors
///
/// If it is unknown, or can't be started.
pub fn start(name: &str, workers: usize) -> Result<Box<dyn Runtime>, String> {
    fn started<R: Runtime + 'static, E: std::fmt::Display>(
        runtime: Result<R, E>,
    ) -> Result<Box<dyn Runtime>, String> {
        let boxed = runtime.map(|runtime| Box::new(runtime) as Box<dyn Runtime>);
        boxed.map_err(|error| format!("can't start it: {error}"))
    }
    match name {
        "pool" => started(pool::Pool::new(workers)),
        "fibers" => started(pool::Pool::of_fibers(workers)),
        #[cfg(feature = "migrating")]
        MOVING => started(pool::Pool::of_moving(workers)),
        "may" => started(Ok::<_, String>(may::May::new(workers))),
        "scope" => started(scope::Scope::new(workers)),
        "rayon" => started(rayon::Rayon::new(workers)),
        "smol" => started(smol::Smol::new(workers)),
        "tokio" => started(tokio::Tokio::new(workers)),
        "chili" => started(Ok::<_, String>(chili::Chili::new(workers))),
        _ => Err(format!("no runtime '{name}'")),
    }
}

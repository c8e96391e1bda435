//! A pool of workers on bare metal: the queues, policies, tasks and forks of `antiphon-runtime`,
//! which Linux programs use through `antiphon::pool`, on a kernel thread of each CPU.
//!
//! Here is only what a pool needs from its system: a thread for each worker, and a way to tell
//! which worker the calling thread is.
//!
//! - HERE-1: a worker's thread is bound to its CPU, and no other thread writes the entry of that
//!   CPU in [`WORKERS`]. A thread that finds its own number there is the worker.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use antiphon_metal::Metal;
use antiphon_metal::kernel::cpu::{self, MOST_CPUS};
use antiphon_metal::kernel::thread::{self, JoinHandle, NotCreated};
use antiphon_platform::Hints as _;
use antiphon_runtime::fork::{self, Forker, Forks};
use antiphon_runtime::sched::{self, Lifo, Put, Scheme, Stats, Steal};
use antiphon_runtime::task::{self, Awaited, Handle};
use antiphon_sync::queue::{Full, Item};

use super::blocks::{Blocks, FreeBlocks};

type Task = task::Task<Metal>;
/// The policy of a Linux pool for which none was chosen.
type Standard = Scheme<Lifo, Steal>;
type Crew = sched::Crew<Metal, Standard>;
type Worker = sched::Worker<'static, Metal, Standard>;

/// Room for tasks from outside of the pool.
const OUTSIDE: usize = 64;

/// The length of a beat that was chosen, in nanoseconds; 0 for the platform's.
static BEAT_NS: AtomicU64 = AtomicU64::new(0);

/// The worker of each CPU.
static WORKERS: [Entry; MOST_CPUS] = [const { Entry::empty() }; MOST_CPUS];

struct Entry {
    /// The number of the worker's thread; 0 if there is none.
    thread: AtomicU32,
    here: AtomicPtr<Here>,
}

impl Entry {
    const fn empty() -> Self {
        Self { thread: AtomicU32::new(0), here: AtomicPtr::new(ptr::null_mut()) }
    }
}

/// A worker, on the stack of its thread.
struct Here {
    crew: &'static Crew,
    /// Borrowed while the scheduler decides, and not while a task runs.
    worker: RefCell<Worker>,
    forks: Forks<Metal>,
    blocks: FreeBlocks,
}

/// A pool with a worker on each CPU; an image has one at a time.
pub struct Pool {
    crew: &'static Crew,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts the workers.
    ///
    /// # Errors
    ///
    /// There is no memory for a thread.
    pub fn start() -> Result<Self, NotCreated> {
        let workers = cpu::count();
        let crew = Crew::new(Standard::default(), workers as usize, OUTSIDE);
        let crew: &'static Crew = Box::leak(Box::new(crew));
        let thread = |seat| thread::spawn_on(seat, move || Here::work(crew, seat));
        let threads = (0..workers).map(thread).collect::<Result<_, _>>()?;
        Ok(Self { crew, threads })
    }

    /// Runs `work` on a worker, and sleeps until it is done. The caller is not a worker.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (task, handle) = Task::new(work);
        if let Err(Full(item)) = self.crew.submit(task.into_item(), Put::PLAIN) {
            // SAFETY: the item was made above, and the crew has given it back.
            unsafe { Task::from_item(item) }.run();
        }
        handle.take().expect("a task that is run has a result")
    }

    /// Returns the counts of what the workers have done so far.
    pub fn stats(&self) -> Stats {
        self.crew.stats()
    }

    /// Ends the workers when there are no tasks.
    pub fn stop(self) {
        self.crew.close();
        self.threads.into_iter().for_each(JoinHandle::join);
    }
}

/// Sets the time after which a fork may become a task again, in nanoseconds; 0 for the platform's.
pub fn set_beat_ns(ns: u64) {
    BEAT_NS.store(ns, Relaxed);
}

/// Makes a task of `work`. A worker queues it, for any worker to run; elsewhere it is run at once.
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Handle<Metal, T> {
    let (task, handle) = Task::new_in(Blocks, work);
    put_or_run(task);
    handle
}

/// Like [`spawn`], for a task that no thread waits for.
pub fn spawn_detached(work: impl FnOnce() + Send + 'static) {
    put_or_run(Task::detached_in(Blocks, work));
}

fn put_or_run(task: Task) {
    if let Err(task) = Forking::put(task) {
        task.run();
    }
}

/// Waits for a task; a worker runs other tasks meanwhile.
pub fn join_task<T>(mut handle: Handle<Metal, T>) -> T {
    Forking::wait(&handle.awaited());
    handle.take().expect("a task that is run has a result")
}

/// Runs both closures, the second perhaps on another worker.
///
/// # Panics
///
/// If the caller is not a worker.
#[inline]
pub fn join<A, B, RA, RB>(first: A, second: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    fork::join::<Forking, _, _, _, _>(first, second)
}

impl Here {
    /// Acts as the worker of a seat until the crew is closed and no task is left.
    fn work(crew: &'static Crew, seat: u32) {
        let worker = RefCell::new(crew.worker(seat as usize).expect("a seat for each CPU"));
        let here = Self { crew, worker, forks: Forks::new(), blocks: FreeBlocks::new() };
        let entry = &WORKERS[cpu::number() as usize];
        // Relaxed, all: HERE-1, only this thread follows the pointer.
        assert_eq!(entry.thread.load(Relaxed), 0, "an image has one pool at a time");
        entry.here.store(ptr::from_ref(&here).cast_mut(), Relaxed);
        entry.thread.store(cpu::current().number(), Relaxed);
        while here.run_one(Worker::next_task) {}
        entry.thread.store(0, Relaxed);
    }

    /// Runs the task that `next` returns; `false` if it returns none.
    fn run_one(&self, next: impl FnOnce(&mut Worker) -> Option<Item>) -> bool {
        let item = next(&mut self.worker.borrow_mut());
        // SAFETY: all items of the crew are of tasks, and it hands each out once.
        item.map(|item| unsafe { Task::from_item(item) }.run()).is_some()
    }
}

/// Returns the worker that the calling thread is.
#[inline]
fn here<'a>() -> Option<&'a Here> {
    let entry = &WORKERS[cpu::number() as usize];
    // Relaxed, both: HERE-1.
    let is_ours = entry.thread.load(Relaxed) == cpu::current().number();
    // SAFETY: HERE-1: the worker is on the stack of this thread, in the frame of `Here::work`,
    // which has called this code; its callees don't use the reference after they have returned.
    is_ours.then(|| unsafe { &*entry.here.load(Relaxed) })
}

/// Calls `ask` with the free blocks of the worker that the caller is; `None` if it is no worker.
#[inline]
pub fn with_free_blocks<R>(ask: impl FnOnce(&FreeBlocks) -> Option<R>) -> Option<R> {
    here().and_then(|here| ask(&here.blocks))
}

/// The calling thread as a worker that forks.
struct Forking;

// SAFETY: the notes are those of the worker that the calling thread is until its end.
unsafe impl Forker for Forking {
    type Platform = Metal;
    /// A panic ends the image, so no panic is carried over.
    type Outcome<T> = T;

    #[inline]
    fn forks<R>(ask: impl FnOnce(&Forks<Metal>) -> R) -> R {
        ask(&here().expect("only workers fork").forks)
    }

    fn is_worker() -> bool {
        here().is_some()
    }

    fn is_wanted() -> bool {
        here().is_some_and(|here| here.crew.has_idle())
    }

    fn beat_ns() -> u64 {
        match BEAT_NS.load(Relaxed) {
            0 => 5 * u64::from(Metal::sleep_cost_ns()),
            chosen => chosen,
        }
    }

    fn put(task: Task) -> Result<(), Task> {
        let Some(here) = here() else { return Err(task) };
        let put = here.worker.borrow_mut().push(task.into_item(), Put::PLAIN);
        // SAFETY: the policy gives back the item that it was given, which was made of a task.
        put.map_err(|Full(item)| unsafe { Task::from_item(item) })
    }

    fn wait(awaited: &Awaited<'_, Metal>) {
        if let Some(here) = here() {
            while here.run_one(|worker| worker.next_until(awaited, None)) {}
        }
    }

    fn run<T>(work: impl FnOnce() -> T) -> T {
        work()
    }

    fn unwrap<T>(outcome: Option<T>) -> T {
        outcome.expect("no task is dropped before it is run")
    }
}

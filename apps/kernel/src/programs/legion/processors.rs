//! The logical processors, whatever the way in which tasks reach them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Deref;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use antiphon_metal::kernel::cpu;
use antiphon_metal::kernel::thread::{self, JoinHandle};
use antiphon_metal::x86::cpu::tsc_unordered;

/// A way in which tasks reach processors.
pub trait Way: Send + Sync + Sized + 'static {
    /// Called before any processor runs.
    fn begin(&'static self, board: &'static Board);

    /// Publishes a task, and wakes whatever has to be.
    fn publish(&self, task: usize);

    /// A processor: sleeps, and runs the tasks that it claims, until [`end`](Self::end).
    fn serve(&self, board: &Board);

    /// Ends the processors, which sleep.
    fn end(&self);
}

/// The notes about tasks and processors.
pub struct Board {
    /// By task, how often it was claimed.
    claimed: Vec<AtomicU32>,
    /// Tasks that have run.
    done: AtomicUsize,
    /// When the last task has begun.
    pub ran: AtomicU64,
    /// When the last processor was about to sleep, or an action to return.
    pub quiet: AtomicU64,
    /// How often processors have woken.
    pub wakes: AtomicU64,
    /// How many processors sleep, or are about to.
    asleep: AtomicU32,
}

/// The processors, and where they note what they do.
pub struct Processors<W: Way> {
    way: &'static W,
    board: &'static Board,
    published: AtomicUsize,
    threads: Vec<JoinHandle<()>>,
}

impl Board {
    /// Runs a task that the caller has claimed.
    pub fn run(&self, task: usize) {
        // Relaxed, all: the addition to `done` releases them.
        self.ran.store(tsc_unordered(), Relaxed);
        self.claimed[task].fetch_add(1, Relaxed);
        // Release: the above; pairs with the acquire in `all_sleep`.
        self.done.fetch_add(1, Release);
    }

    /// Nothing is left to do here.
    pub fn is_quiet(&self) {
        // Relaxed: `falls_asleep` releases it; after an action, the publisher's sleep is long.
        self.quiet.fetch_max(tsc_unordered(), Relaxed);
    }

    /// A processor is about to sleep.
    pub fn falls_asleep(&self) {
        self.is_quiet();
        // Release: the time; pairs with the acquire in `all_sleep`.
        self.asleep.fetch_add(1, Release);
    }

    /// A processor has woken.
    pub fn wakes_up(&self) {
        // Relaxed, both: numbers.
        self.asleep.fetch_sub(1, Relaxed);
        self.wakes.fetch_add(1, Relaxed);
    }
}

impl<W: Way> Processors<W> {
    /// Starts a processor on each CPU but the first, for `tasks` tasks. `None`: there is no memory.
    pub fn start(tasks: usize, way: W) -> Option<Self> {
        let way: &'static W = Box::leak(Box::new(way));
        let board: &'static Board = Box::leak(Box::new(Board {
            claimed: (0..tasks).map(|_| AtomicU32::new(0)).collect(),
            done: AtomicUsize::new(0),
            ran: AtomicU64::new(0),
            quiet: AtomicU64::new(0),
            wakes: AtomicU64::new(0),
            asleep: AtomicU32::new(0),
        }));
        way.begin(board);
        let processor = |number| thread::spawn_on(number, move || way.serve(board)).ok();
        let threads = (1..cpu::count()).map(processor).collect::<Option<_>>()?;
        Some(Self { way, board, published: AtomicUsize::new(0), threads })
    }

    /// Publishes a task, from 0 on, each once.
    pub fn publish(&self, task: usize) {
        // Relaxed: the publisher's own.
        self.published.fetch_add(1, Relaxed);
        self.way.publish(task);
    }

    /// Returns whether all that was published has run, and all processors sleep.
    pub fn all_sleep(&self) -> bool {
        // Acquire, both: what processors have noted; pairs with the releases of the board.
        self.board.done.load(Acquire) >= self.published.load(Relaxed)
            && self.board.asleep.load(Acquire) as usize == self.threads.len()
    }

    /// How many tasks were claimed, and how many of them more than once.
    pub fn claims(&self) -> (usize, usize) {
        // Relaxed: acquired by `all_sleep`.
        let claims = || self.board.claimed.iter().map(|claims| claims.load(Relaxed));
        (
            claims().filter(|&claims| claims > 0).count(),
            claims().filter(|&claims| claims > 1).count(),
        )
    }

    /// Ends the processors, which all sleep.
    pub fn stop(self) {
        self.way.end();
        self.threads.into_iter().for_each(JoinHandle::join);
    }
}

impl<W: Way> Deref for Processors<W> {
    type Target = Board;

    fn deref(&self) -> &Board {
        self.board
    }
}

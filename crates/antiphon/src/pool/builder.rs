//! Settings of a pool: how many threads it has, on which CPUs, and what they are called.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use antiphon_linux::{FIBERS_MAY_MOVE, Linux, allowed, whereabouts};
use antiphon_runtime::flight::LONG_NS;
use antiphon_runtime::sched::Crew;

use super::hogs::{Hogs, Namer};
use super::ledger::Ledger;
use super::places::Places;
use super::shared::Shared;
use super::spare::Bench;
use super::watch::watch;
use super::{Policy, Pool, Standard, stuck};
use crate::deadline::nanos;
use crate::fiber::{self, Desks};
use crate::look;

/// A CPU and its place in the machine: an element of [`cpus`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// The kernel's number of the CPU.
    pub number: u32,
    /// The first hardware thread of its core.
    pub core: u32,
    /// The first CPU that shares its last-level cache.
    pub cache: u32,
    /// Its NUMA node.
    pub node: u32,
}

/// Lists the CPUs that the calling thread may run on, sorted so that near CPUs stand side by side:
/// by node, then by cache, then by core.
///
/// ```
/// use antiphon::pool::{self, Pool};
///
/// // A pool for the first NUMA node, with a thread on each core.
/// let all = pool::cpus();
/// let node = all[0].node;
/// let cores = all.iter().filter(|cpu| cpu.node == node && cpu.core == cpu.number);
/// let pool = Pool::builder().cpus(cores.map(|cpu| cpu.number)).build()?;
/// # let _ = pool;
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn cpus() -> Vec<Cpu> {
    let of = |number| {
        let place = whereabouts(number)?;
        Some(Cpu { number, core: place.core, cache: place.cache, node: place.node })
    };
    let mut all: Vec<_> = allowed().into_iter().filter_map(of).collect();
    all.sort_by_key(|cpu| (cpu.node, cpu.cache, cpu.core, cpu.number));
    all
}

/// Settings for building a [`Pool`]. By default it has one thread for each CPU that the caller may
/// run on, and does not pin them.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    threads: Option<usize>,
    cpus: Vec<u32>,
    name: String,
    room: usize,
    spares: Option<usize>,
    patience: Option<Duration>,
    events: usize,
    stack_bytes: Option<usize>,
    moves: bool,
    pub(super) stuck: Option<stuck::Watch>,
    namer: Option<Namer>,
}

/// The default number of backup threads is the number of threads, and at most this.
const SPARES: usize = 4;
/// A task counts as a hog after this time on its thread, in nanoseconds, if the pool has no
/// patience.
const HOG_NS: u64 = 1_000_000;

impl Pool {
    /// Starts the settings of a pool. [`new`](Self::new) builds one with the default settings.
    pub fn builder() -> Builder {
        Builder {
            threads: None,
            cpus: Vec::new(),
            name: "antiphon".into(),
            room: 1 << 12,
            spares: None,
            patience: None,
            events: 1 << 11,
            stack_bytes: None,
            moves: false,
            stuck: None,
            namer: None,
        }
    }
}

impl Builder {
    /// Sets the number of threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Pins each thread to one of these CPUs: the first thread to the first CPU, and so on,
    /// starting over if there are more threads than CPUs. Unless [`threads`](Self::threads) is
    /// called, there are as many threads as CPUs in the list.
    ///
    /// With the policy [`Neighbours`](super::policy::Neighbours) threads steal first from threads
    /// with near numbers, so list near CPUs side by side, as [`cpus`] does.
    pub fn cpus(mut self, cpus: impl IntoIterator<Item = u32>) -> Self {
        self.cpus = cpus.into_iter().collect();
        self
    }

    /// Sets the prefix of the threads' names: they are called `name-0`, `name-1`, …. Default:
    /// `antiphon`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the capacity of the queue for tasks from outside the pool. Rounded up to a power of
    /// two. Default: 4096.
    pub fn room(mut self, tasks: usize) -> Self {
        self.room = tasks;
        self
    }

    /// Sets the number of backup threads. A backup thread is started when it is first needed. It
    /// takes over the queue of a worker that [blocks](super::blocking) or whose task has exceeded
    /// the pool's [patience](Self::patience). Default: as many as there are threads, and at most
    /// four.
    pub fn spares(mut self, threads: usize) -> Self {
        self.spares = Some(threads);
        self
    }

    /// Sets how long a thread may be in one task before a [backup thread](Self::spares) runs the
    /// tasks that wait behind it. As long as there are backup threads, tasks wait for at most one
    /// and a half times this. 10 ms is a good value; less than 100 µs counts as 100 µs.
    ///
    /// Costs one more thread, which watches the others while they run tasks. Needs the kernel's
    /// `membarrier`: without it no backup thread takes over.
    ///
    /// Default: off. Queued tasks then wait while every thread is busy. That is best for long
    /// computations, because never more than [`threads`](Self::threads) threads run.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Sets how many of the latest events of each thread are kept for [`Pool::recording`], at 32
    /// bytes each. 0 turns recording off. Default: 2048.
    pub fn recorder(mut self, events: usize) -> Self {
        self.events = events;
        self
    }

    /// Finds out where tasks are that exceed the pool's [patience](Self::patience), which must be
    /// set: [`Pool::hogs`] then lists the calls that they are in the middle of, and
    /// [`Pool::fibers`] those of threads that do not answer.
    ///
    /// ```
    /// use antiphon::pool::Pool;
    /// use std::time::Duration;
    ///
    /// let patience = Duration::from_millis(2);
    /// let pool = Pool::builder().threads(1).patience(patience).name_hogs(true).build()?;
    /// let hog = pool.spawn(move || std::thread::sleep(patience * 20));
    /// hog.join().unwrap();
    /// for hog in pool.hogs() {
    ///     println!("{hog}");
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// This takes a signal for the rest of the process: the highest real-time signal that the
    /// program has no handler for (usually `SIGRTMAX`). Its handler copies registers and stack, up
    /// to 64 KiB, and does nothing else; it has `SA_RESTART`. A system call that is never restarted
    /// (signal(7): `poll`, `epoll_wait`, `nanosleep`, …) ends with `EINTR`, as with any other
    /// signal; `std` repeats its own. A thread that blocks the signal is not named.
    ///
    /// x86-64 only. Needs the feature `name_hogs`.
    #[cfg(feature = "name_hogs")]
    pub fn name_hogs(mut self, are_named: bool) -> Self {
        self.namer = are_named.then_some(super::naming::NAMER);
        self
    }

    /// Runs tasks as [fibers](crate::fiber), with stacks of `stack_bytes`. 64 KiB
    /// ([`STACK_BYTES`](crate::fiber::STACK_BYTES)) is enough for most tasks.
    ///
    /// ```
    /// use antiphon::{fiber, pool::Pool};
    ///
    /// let builder = Pool::builder().threads(1);
    /// // SAFETY: no fiber waits while it makes a thread-local.
    /// let pool = unsafe { builder.fibers(fiber::STACK_BYTES) }.build()?;
    /// let (ask, answer) = (antiphon::Latch::new(1), antiphon::Latch::new(1));
    /// pool.scope(|scope| {
    ///     scope.spawn(|| {
    ///         ask.wait();
    ///         answer.count_down(1);
    ///     });
    ///     scope.spawn(|| {
    ///         ask.count_down(1);
    ///         answer.wait();
    ///     });
    /// });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// The code that its tasks run must not wait through this crate, nor yield,
    ///
    /// - in the initializer of a thread-local,
    /// - in a scope that sets a thread-local and restores its former value at the end, as crates
    ///   for scoped thread-locals do.
    ///
    /// Other fibers of the thread run during the wait. Code that is sound because calls end in the
    /// reverse order of their beginning is then unsound: a value would be dropped while another
    /// fiber borrows it.
    pub unsafe fn fibers(mut self, stack_bytes: usize) -> Self {
        self.stack_bytes = Some(stack_bytes);
        self
    }

    /// Lets [fibers](Self::fibers) move between threads, for experiments with such schedulers.
    /// Fibers that stay on their thread cost less.
    ///
    /// A fiber that has waited and may continue becomes a task again. The policy puts it where it
    /// puts tasks that the thread spawns, and another thread may take it. A fiber that has called
    /// [`yield_now`](crate::fiber::yield_now) becomes a task among those from outside.
    ///
    /// ```
    /// use antiphon::{channel, fiber, pool::Pool};
    ///
    /// let builder = Pool::builder().threads(2);
    /// // SAFETY: nothing of what is run has thread-locals, or what is a thread's own.
    /// let pool = unsafe { builder.fibers(fiber::STACK_BYTES).migrating() }.build()?;
    /// let (sender, receiver) = channel::bounded(1);
    /// let sum = pool.spawn(move || receiver.iter().sum::<u32>());
    /// pool.spawn(move || (1..=100).for_each(|number| sender.send(number).unwrap()));
    /// assert_eq!(sum.join().unwrap(), 5050);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// Exceptions: a fiber that waits for a socket or yields softly stays on its thread for that
    /// wait, and so does a fiber that waits while it unwinds. The rank of a task counts for its
    /// beginning only. Waits of fibers are not [recorded](Self::recorder): a fiber is recorded as a
    /// closure is. If the policy panics, fibers in queues from which no other worker takes are
    /// lost, with all that they hold.
    ///
    /// # Safety
    ///
    /// Tasks continue on other threads, and neither the language nor the compiler knows it. So
    /// across each call of this crate that may wait or yield (spawning may, if there is no room),
    /// the code of a task must not keep
    ///
    /// - a value that may not be sent to another thread: `Rc`, a guard of `std::sync::Mutex`, of
    ///   [`OwnedMutex`](crate::policy::OwnedMutex) or of the locks of `antiphon-shared`, a
    ///   locked pthread mutex. Other guards of this crate may be kept;
    /// - a reference to a thread-local, or its address. Compilers keep the address in registers in
    ///   any function that uses the thread-local before and after the wait, or in a loop. So a
    ///   function that waits, or into which a waiting function is inlined, may use thread-locals
    ///   only through functions that are `#[inline(never)]`, use none across a wait, and return no
    ///   reference to one. The same holds for functions of `std` and of other crates that use
    ///   thread-locals (`HashMap::new`, `println!`, `thread::current`; with link-time optimization
    ///   of `std`, `catch_unwind`).
    ///
    /// This crate's own calls may stand anywhere. Needs the feature `migrating`.
    #[cfg(feature = "migrating")]
    pub unsafe fn migrating(mut self) -> Self {
        self.moves = true;
        self
    }

    /// Builds the pool with the default policy, [`Standard`].
    ///
    /// # Errors
    ///
    /// See [`build_with`](Self::build_with).
    pub fn build(self) -> io::Result<Pool> {
        self.build_with(Standard::default())
    }

    /// Builds the pool with `policy`. Blocks until its threads are on their CPUs.
    ///
    /// # Errors
    ///
    /// - A thread can't be started, or a CPU can't be used. Threads that were started have ended.
    /// - Fibers are not available: stacks of that size can't be made, or another runtime in the
    ///   process has its own fibers.
    /// - `migrating` without [fibers](Self::fibers), or on a machine other than x86-64 and AArch64.
    /// - `name_hogs` without [patience](Self::patience), or without a free signal.
    ///
    /// # Panics
    ///
    /// If the number of threads is 0, or 2²¹ or more together with the backup threads; if the room
    /// is more than 2³¹ tasks; if the name contains a zero byte.
    pub fn build_with<Y: Policy<Linux> + 'static>(self, policy: Y) -> io::Result<Pool<Y>> {
        let default =
            || if self.cpus.is_empty() { allowed().len().max(1) } else { self.cpus.len() };
        let threads = self.threads.unwrap_or_else(default);
        let spares = self.spares.unwrap_or(threads.min(SPARES));
        let crew = Crew::new(policy, threads, self.room).spares(spares).recorded(self.events);
        if let Some(namer) = self.namer {
            if self.patience.is_none() {
                let what = "`name_hogs` needs `patience`: set how long a task may run before it is \
                            reported";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            (namer.prepare)()?;
        }
        if self.moves && !(self.stack_bytes.is_some() && FIBERS_MAY_MOVE) {
            let what = "`migrating` needs `fibers`, and x86-64 or AArch64";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let is_recorded = self.stack_bytes.is_some() && self.events > 0 && !self.moves;
        let ledger = is_recorded.then(|| Arc::new(Ledger::new(self.events)));
        let hog_ns = self.patience.map_or(HOG_NS, |patience| nanos(patience).max(LONG_NS));
        let desks = Arc::<Desks>::default();
        let shared = Arc::new(Shared {
            // A fiber stays on the thread where it has begun.
            crew: if self.stack_bytes.is_some() { crew.in_turn() } else { crew },
            bench: Bench::new(self.name.clone(), threads + spares),
            places: Places(self.cpus),
            stacks: self.stack_bytes.map(fiber::stacks).transpose()?,
            moves: self.moves,
            hogs: Hogs::new(self.namer, desks.clone()),
            desks,
            ledger,
            hog_ns,
        });
        let pool = Pool { shared: shared.clone() };
        let (sender, pinned) = channel();
        for seat in 0..threads {
            let (shared, sender) = (shared.clone(), sender.clone());
            pool.shared.bench.start(move || {
                if let Err(cpu) = shared.places.settle(seat) {
                    // The receiver waits for the first error only, and may be gone.
                    let _: Result<(), _> = sender.send(cpu);
                }
                drop(sender);
                shared.serve(Some(seat));
            })?;
        }
        if let Some(stuck) = self.stuck.filter(|_| pool.has_fibers()) {
            let (name, shared) = (format!("{}-stuck", self.name), shared.clone());
            let looks = thread::Builder::new().name(name).spawn(move || stuck.run(&shared))?;
            pool.shared.bench.keep(looks);
        }
        if let Some(patience) =
            self.patience.filter(|_| spares > 0 || is_recorded || self.namer.is_some())
        {
            let name = format!("{}-watch", self.name);
            let watch = move || watch(&shared, patience);
            pool.shared.bench.keep(thread::Builder::new().name(name).spawn(watch)?);
        }
        drop(sender);
        // Returns when each thread is on its CPU, or at the first error.
        match pinned.into_iter().next() {
            Some(cpu) => Err(io::Error::other(format!(
                "CPU {cpu} can't be used: it is offline, or not in the control group's set"
            ))),
            None => {
                let there: Arc<dyn look::Looked> = pool.shared.clone();
                look::enter(Arc::downgrade(&there));
                Ok(pool)
            }
        }
    }
}

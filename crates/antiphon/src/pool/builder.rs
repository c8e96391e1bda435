//! How a pool's threads are started: how many, where, and by which name.

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
use crate::fiber::{self, Desks};
use crate::look;
use crate::raw::nanos;

/// A CPU, and what it is near to: what [`cpus`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// As the kernel numbers it.
    pub number: u32,
    /// The first hardware thread of its core.
    pub core: u32,
    /// The first CPU that shares its last cache.
    pub cache: u32,
    /// Its NUMA node.
    pub node: u32,
}

/// The CPUs that the calling thread may run on, those that are near each other side by side: of a
/// node, of a cache, of a core.
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

/// What a [`Pool`] is made of. Without a word: a thread for each CPU that the caller may run on,
/// each on whichever it likes.
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

/// As many spare threads as others, and no more than this, if nothing is said.
const SPARES: usize = 4;
/// A task hogs its thread that has it for longer than this, if nothing is said, in nanoseconds.
const HOG_NS: u64 = 1_000_000;

impl Pool {
    /// How a pool is made that [`new`](Self::new) does not make.
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
    /// So many threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Each thread stays on one of these CPUs, the first on the first, and from the first on again
    /// if there are more threads than CPUs; if nothing else is said, there are as many. Threads
    /// steal from those whose numbers are near theirs first where the policy is
    /// [`Neighbours`](super::Neighbours): so list CPUs as they are near each other, as [`cpus`]
    /// does.
    pub fn cpus(mut self, cpus: impl IntoIterator<Item = u32>) -> Self {
        self.cpus = cpus.into_iter().collect();
        self
    }

    /// What the threads are called: this, a dash, and their number.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How many tasks from outside have room: 4096 if nothing is said. Rounded up to a power of
    /// two.
    pub fn room(mut self, tasks: usize) -> Self {
        self.room = tasks;
        self
    }

    /// So many threads more, none of which is started before it is needed: each runs tasks in place
    /// of one that [blocks](super::blocking), or has tried the pool's [patience](Self::patience),
    /// and goes on where that was. As many as there are threads, and four at most, if nothing is
    /// said.
    pub fn spares(mut self, threads: usize) -> Self {
        self.spares = Some(threads);
        self
    }

    /// For how long a thread may be in one task before another runs what waits behind that. Others
    /// wait for one and a half times that at the most, as long as there are [spare](Self::spares)
    /// threads; 10 ms is a good value, and less than 100 µs is as that. It needs a thread that
    /// looks after the others while these run tasks, and the kernel's `membarrier`: without that no
    /// other runs it.
    ///
    /// Default: off. Queued tasks then wait while every thread is busy. That is best for long
    /// computations, because never more than [`threads`](Self::threads) threads run.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// How many events of each thread are there for [`Pool::recording`], of 32 bytes each: the
    /// latest 2048 if nothing is said; 0 has nothing recorded.
    pub fn recorder(mut self, events: usize) -> Self {
        self.events = events;
        self
    }

    /// Where tasks are that have their thread for longer than the [patience](Self::patience), is
    /// found out: [`Pool::hogs`] has the calls that they are in the middle of, and
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
    /// A signal is taken for it, for good: the highest real-time signal that the program has no
    /// handler for (`SIGRTMAX`, as a rule). Its handler copies registers and stack, up to 64 KiB,
    /// and does nothing else; it has `SA_RESTART`. Where a task is in a system call that is never
    /// restarted (signal(7): `poll`, `epoll_wait`, `nanosleep`, …) that ends with `EINTR`, as by
    /// any other signal; `std` goes on with its own. A thread that blocks the signal is not named.
    /// On x86-64 only. Needs the feature `name_hogs`.
    #[cfg(feature = "name_hogs")]
    pub fn name_hogs(mut self, are_named: bool) -> Self {
        self.namer = are_named.then_some(super::naming::NAMER);
        self
    }

    /// Tasks run as fibers, with stacks of so many bytes: 64 KiB is enough for most
    /// ([`STACK_BYTES`](crate::fiber::STACK_BYTES)). See [`fiber`](crate::fiber).
    ///
    /// ```
    /// use antiphon::{fiber, pool::Pool};
    ///
    /// let builder = Pool::builder().threads(1);
    /// // SAFETY: no thread-local is made by what waits.
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
    /// What its tasks run does not wait by this crate, nor yield, while it makes a thread-local
    /// (in the initializer), nor within what sets a thread-local for a while and then puts back
    /// what was there, as crates for scoped thread-locals do. Other fibers of the thread come in
    /// between; and what is sound where calls end in the reverse order of their beginning is not
    /// then: a value is dropped that another fiber has borrowed.
    pub unsafe fn fibers(mut self, stack_bytes: usize) -> Self {
        self.stack_bytes = Some(stack_bytes);
        self
    }

    /// Its [fibers](Self::fibers) move: one that has waited, and may go on, is a task again, which
    /// the policy puts where it puts what that thread spawns, and another may take. So is one that
    /// has called [`yield_now`](crate::fiber::yield_now), among those from outside. For experiments
    /// with schedulers that do so; else fibers cost less that stay.
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
    /// On its thread stay: who waits for a socket or yields softly, for that once; and who waits
    /// while it unwinds. A rank is of its beginning only. Nothing is [recorded](Self::recorder) of
    /// what fibers wait for: one counts as a closure does. If the policy panics, those are lost
    /// that are in queues which nobody else takes from, with all that they hold.
    ///
    /// # Safety
    ///
    /// What its tasks run goes on on other threads, which neither the language nor the compiler
    /// knows of. So over each call of this crate that waits or yields, or may (spawning may, where
    /// there is no room), it keeps
    ///
    /// - no value that may not be sent to another thread: no `Rc`, no guard of `std::sync::Mutex`,
    ///   of [`OwnedMutex`](crate::policy::OwnedMutex) or of the locks of
    ///   [`shared`](crate::shared), no pthread mutex; but other guards of this crate may be kept;
    /// - no reference to a thread-local, and not its address: which is what compilers keep, in
    ///   registers, in any function that has it both before and after the wait, or in a loop. So a
    ///   function that waits, or into which one that waits is inlined, has thread-locals, and what
    ///   has some of `std` and of other crates (`HashMap::new`, `println!`, `thread::current`; with
    ///   link-time optimization of `std`, `catch_unwind`), in functions of their own only, which
    ///   are `#[inline(never)]`, do not keep one over a wait, and return no reference to it.
    ///
    /// This crate's own calls may stand anywhere. Needs the feature `migrating`.
    #[cfg(feature = "migrating")]
    pub unsafe fn migrating(mut self) -> Self {
        self.moves = true;
        self
    }

    /// The pool, with the policy that it has if nothing is said: [`Standard`].
    ///
    /// # Errors
    ///
    /// As of [`build_with`](Self::build_with).
    pub fn build(self) -> io::Result<Pool> {
        self.build_with(Standard::default())
    }

    /// The pool, with a policy.
    ///
    /// # Errors
    ///
    /// If a thread can't be started, or a CPU can't be used; those that were started have ended. If
    /// there can't be fibers: stacks of that size, or beside those of another runtime; or they are
    /// to move, and there are none, or it is another machine than x86-64 and AArch64. If hogs are
    /// to be named, and can't: there is no [patience](Self::patience), or no signal.
    ///
    /// # Panics
    ///
    /// If there are to be no threads, or 2²¹ or more with the spare ones; or room for more than 2³¹
    /// tasks; or if the name has a byte that is 0.
    pub fn build_with<Y: Policy<Linux> + 'static>(self, policy: Y) -> io::Result<Pool<Y>> {
        let default =
            || if self.cpus.is_empty() { allowed().len().max(1) } else { self.cpus.len() };
        let threads = self.threads.unwrap_or_else(default);
        let spares = self.spares.unwrap_or(threads.min(SPARES));
        let crew = Crew::new(policy, threads, self.room).spares(spares).recorded(self.events);
        if let Some(namer) = self.namer {
            if self.patience.is_none() {
                let what = "`name_hogs` needs `patience`: set how long a task may run before it is reported";
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
            // A fiber stays where it has begun.
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
                    // Who listens for the first may have gone.
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
        // Ends when each thread is where it is to be.
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

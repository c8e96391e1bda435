//! How a pool's threads are started: how many, where, and by which name.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use antiphon_linux::{Linux, allowed, pin, whereabouts};

use super::shared::Shared;
use super::{Policy, Pool, Standard};

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
}

impl Pool {
    /// How a pool is made that [`new`](Self::new) does not make.
    pub fn builder() -> Builder {
        Builder { threads: None, cpus: Vec::new(), name: "antiphon".into(), room: 1 << 12 }
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
    /// If a thread can't be started, or a CPU can't be used; those that were started have ended.
    ///
    /// # Panics
    ///
    /// If there are to be no threads, or more than 2³¹; or room for more tasks than that; or if the
    /// name has a byte that is 0.
    pub fn build_with<Y: Policy<Linux> + 'static>(self, policy: Y) -> io::Result<Pool<Y>> {
        let default =
            || if self.cpus.is_empty() { allowed().len().max(1) } else { self.cpus.len() };
        let threads = self.threads.unwrap_or_else(default);
        let shared = Arc::new(Shared::new(policy, threads, self.room));
        let mut pool = Pool { shared, threads: Vec::with_capacity(threads) };
        let (sender, pinned) = channel();
        for seat in 0..threads {
            let name = format!("{}-{seat}", self.name);
            let cpu = self.cpus.get(seat % self.cpus.len().max(1)).copied();
            let (shared, sender) = (pool.shared.clone(), sender.clone());
            let work = move || {
                settle(cpu, &sender);
                drop(sender);
                shared.work(seat);
            };
            pool.threads.push(thread::Builder::new().name(name).spawn(work)?);
        }
        drop(sender);
        // Ends when each thread is where it is to be.
        match pinned.into_iter().next() {
            Some(cpu) => Err(io::Error::other(format!(
                "CPU {cpu} can't be used: it is offline, or not in the control group's set"
            ))),
            None => Ok(pool),
        }
    }
}

/// Puts the calling thread on a CPU, or tells that it can't be done.
fn settle(cpu: Option<u32>, failed: &Sender<u32>) {
    if let Some(cpu) = cpu
        && pin(cpu).is_err()
    {
        // Who listens for the first may have gone.
        let _: Result<(), _> = failed.send(cpu);
    }
}

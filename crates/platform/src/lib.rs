//! The interface between an algorithm and the machine that it runs on.
//!
//! Every lock, queue and wait of Antiphon is written once, generic over [`Platform`]. The same
//! source line then runs on Linux threads and fibers, in a model checker, on a simulated NUMA
//! machine and on bare metal. An algorithm never names a back end; a back end never names an
//! algorithm. `docs/decisions` says why the trait is as it is.
//!
//! Four rules hold at this boundary:
//!
//! 1. **Waiting is a primitive**: [`Atomic::wait_while`], [`Atomic::spin_while`],
//!    [`Platform::park`]. An algorithm has no bare spin loop. For a wait, a checker blocks the
//!    thread until the word changes, a simulator charges one line transfer, and Linux pauses the
//!    CPU.
//! 2. **All shared mutable state, identity and randomness come from the platform.** Plain statics
//!    would leak between a checker's executions and break a simulation's determinism.
//! 3. **All bits zero is the unlocked, empty state** of every word and type ([`Atomic::ZERO`]).
//! 4. **No sequentially consistent accesses**, only sequentially consistent fences, and no
//!    mixed-size access: a field is always read and written at its own size.
#![no_std]

mod arena;
mod atomic;
mod clocks;
mod core_word;
mod hints;
mod ids;
mod indicator;
mod light;
mod local;
mod notify;
mod polled;
mod shared;
mod time;
mod topology;
mod urgency;
mod waiter;
mod word_waits;

pub use arena::{Apart, Arena};
pub use atomic::{Atomic, AtomicInteger, Atomics, Word};
pub use clocks::Clocks;
pub use core_word::{CoreWord, Spins, Turns};
pub use hints::{Hint, Hints, Probe, Traced, TracedKind};
pub use ids::{CpuId, SocketId, ThreadId};
pub use indicator::{
    Indicator, IndicatorComers, IndicatorGate, IndicatorLine, IndicatorMutex, IndicatorOwner,
    IndicatorWriters, LINES,
};
pub use light::LightUnlock;
pub use local::Local;
pub use notify::{Notify, Ticket};
pub use polled::PolledWait;
pub use shared::SharedWait;
pub use time::{Budget, Clock, Deadline};
pub use topology::Topology;
pub use urgency::{RANK, Urgency};
pub use waiter::{Waiter, WaiterId, WaiterRef};
pub use word_waits::WordWaits;

use core::fmt;

/// The path of this file as its compiler saw it: debug information names the file of a function so.
#[doc(hidden)]
pub const FILE: &str = file!();

/// A machine: its atomic words, its ways to wait, the place of its state, and the identity and
/// location of the caller.
///
/// | part | functions | optional |
/// |---|---|---|
/// | [`Atomics`] | atomic words, fences | |
/// | [`Clocks`] | the time, counters | all except the time |
/// | `Platform` itself | the caller's identity, waiter nodes, parking and waking | |
/// | [`Topology`] | CPUs, sockets, distances | yes: one CPU |
/// | [`Urgency`] | priorities and their lending | yes |
/// | [`LightUnlock`] | an unlock without a locked instruction | yes |
/// | [`WordWaits`] | sleeps without a node; memory of several processes | yes |
/// | [`Hints`] | guesses about the scheduler | yes |
///
/// Functions take no `self`: a back end is a zero-sized type and finds its context in a
/// thread-local. So a `static` lock holds nothing but its words.
///
/// # Safety
///
/// Locks rely on the promises of the functions: the words are atomics like those of
/// `core::sync::atomic`, [`waiter`](Self::waiter) returns a different node for each index, and only
/// [`arena`](Self::arena) hands nodes out.
pub unsafe trait Platform:
    Atomics + Topology + Urgency + Clocks + LightUnlock + WordWaits + Hints
{
    /// Upper bound of the node indices, which run from 1 to `WAITERS - 1`.
    const WAITERS: u32;

    /// Number of counters of [`Arena::urgent`] over which queues are spread: a power of two, 1 to
    /// 256. Must be 1 on a platform that repeats runs if addresses differ from run to run.
    const COUNTERS: usize = 1;

    /// Number of words of [`Arena::cohort`] over which locks and sockets are spread: a power of
    /// two, 1 to 512.
    const COHORTS: usize = 1;

    /// A hash of an address: evenly distributed, and the same in each run on platforms that repeat
    /// runs.
    fn spread(address: usize) -> u32 {
        // Fibonacci hashing: the highest bits are the best mixed ones.
        ((address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
    }

    /// The node at `index`, `0 < index < WAITERS`. Node memory is never freed, and reads as zero
    /// until the arena hands the node out for the first time.
    ///
    /// Returns `None` if the memory is not available; callers then wait without a node.
    ///
    /// # Safety
    ///
    /// The caller keeps the promises of [`arena`](Self::arena), through which nodes are to be had.
    unsafe fn waiter(index: u32) -> Option<&'static Waiter<Self>>;

    /// The arena that hands the nodes out.
    ///
    /// # Safety
    ///
    /// Readers of a node follow its content as a link and write through it as an address. So only
    /// the protocols of `antiphon-sync` and `antiphon-rivals` may write to other waiters' nodes:
    /// the queues of the locks, the lists of `wait`, and the mailboxes and sections of
    /// `delegation`. Any other caller only reads them. It writes only to a node that it has
    /// [taken](Arena::take), and gives that node back once, when no other thread will write to it
    /// any more.
    unsafe fn arena() -> &'static Arena<Self>;

    /// The reader indicators of the process, at most 65 535. A readers-writer lock may have one at
    /// a time. Empty where counting readers by socket does not pay.
    ///
    /// # Safety
    ///
    /// A writer relies on them to know whether readers hold the lock: only the protocol of
    /// `antiphon-sync`'s `ShflRwLock` may write to them.
    #[inline]
    unsafe fn indicators() -> &'static [Indicator<Self>] {
        &[]
    }

    /// Number of nodes that the arena hands out before it begins to search for nodes of dead
    /// threads.
    fn arena_block() -> u32 {
        1024
    }

    /// Runs `f` on the state of the calling thread. A fiber uses the state of the thread under it,
    /// so `f` must not wait.
    fn local<R>(f: impl FnOnce(&Local<Self>) -> R) -> R;

    /// The calling thread. Never zero; may be reused after the thread has ended.
    fn thread() -> ThreadId;

    /// The identity of the caller: a number of its fiber if it runs on one, which stays the same
    /// when the fiber changes threads, and of its thread otherwise. Never zero; no two live tasks
    /// share a number.
    fn task() -> u64 {
        Self::thread().0.into()
    }

    /// Returns whether `thread` may still run. `true` is always a safe answer. `false` orders
    /// nothing: the writes of the thread need not happen before the return.
    fn alive(thread: ThreadId) -> bool;

    /// A number from 1 to 1023 that distinguishes this process's waiter ids from those that another
    /// process left in the same memory; its ancestors before each `fork` are such processes.
    /// Constant between forks.
    fn epoch() -> u32;

    /// A pseudo-random number of the calling thread's own sequence.
    fn random() -> u32;

    /// Blocks the caller, which owns `waiter`, until [`unpark`](Self::unpark) was called for the
    /// node or the deadline has passed; may also return spuriously. An `unpark` that comes first is
    /// not lost: it makes the next `park` return at once. Everything before the `unpark` happens
    /// before the return.
    fn park(waiter: &Waiter<Self>, deadline: Option<Deadline>) -> Parked;

    /// Ends the present or next [`park`](Self::park) of that waiter. Does nothing if the node has
    /// changed hands after the reference was taken; a wake that still comes too late is a spurious
    /// wake of the node's next owner.
    fn unpark(waiter: WaiterRef);

    /// Does what [`unpark`](Self::unpark) does for each of the waiters, in their order. A platform
    /// may take all of them before it makes the first run, so the iterator must neither wait nor
    /// count on a waiter that it has returned.
    #[inline]
    fn unpark_all(waiters: impl Iterator<Item = WaiterRef>) {
        waiters.for_each(Self::unpark);
    }

    /// Like [`unpark`](Self::unpark). Returns `false` if the waiter was not asleep, so that it may
    /// not run for a long time: a signal handler has interrupted its sleep, or it is stopped; or it
    /// is awake, or about to sleep, and will notice the wake. A guess: it decides whether another
    /// waiter is woken to keep watch.
    fn unpark_asleep(waiter: WaiterRef) -> bool {
        Self::unpark(waiter);
        true
    }
}

/// The reason why [`Platform::park`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Parked {
    /// Unparked, or a spurious return: check the condition again.
    Woken,
    /// The deadline has passed.
    TimedOut,
}

/// The platform lacks the operation, or does not permit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported;

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this machine does not offer it, or does not permit it")
    }
}

impl core::error::Error for Unsupported {}

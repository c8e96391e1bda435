//! The interface between an algorithm and the machine that it runs on.
//!
//! Every lock, queue and wait of Antiphon is written once, generic over [`Platform`]. The same
//! source line then runs on Linux threads and fibers, in a model checker, on a simulated NUMA
//! machine and on bare metal. An algorithm never names a back end; a back end never names an
//! algorithm. `docs/decisions` says why the trait is as it is.
//!
//! Four rules keep the seam honest:
//!
//! 1. **Waiting is a primitive**: [`Atomic::wait_while`], [`Atomic::spin_while`],
//!    [`Platform::park`]. An algorithm has no bare spin loop: a checker blocks the thread until the
//!    word changes, a simulator charges one line transfer, Linux pauses.
//! 2. **All shared mutable state, identity and randomness come from the platform.** Plain statics
//!    would leak between a checker's executions and break a simulation's determinism.
//! 3. **All bits zero is the unlocked, empty state** of everything ([`Atomic::ZERO`]).
//! 4. **No sequentially consistent accesses**, only sequentially consistent fences, and no
//!    mixed-size access: a field is always read and written at its own size.
#![no_std]

mod arena;
mod atomic;
mod clocks;
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

/// This file, as its compiler had it: debug information says so of the functions in such files.
#[doc(hidden)]
pub const FILE: &str = file!();

/// A machine: its atomic words, how to wait on it, where its state lives, and the caller's identity
/// and place.
///
/// | part | functions | may be left out |
/// |---|---|---|
/// | [`Atomics`] | atomic words, fences | |
/// | [`Clocks`] | the time, counters | but for the time |
/// | `Platform` itself | the caller's identity, nodes, to park and to wake | |
/// | [`Topology`] | CPUs, sockets, distances | yes: one CPU |
/// | [`Urgency`] | priorities, and loans of them | yes |
/// | [`LightUnlock`] | an unlock without a locked instruction | yes |
/// | [`WordWaits`] | sleeps without a node; memory of several processes | yes |
/// | [`Hints`] | guesses about the scheduler | yes |
///
/// Functions take no `self`: a back end is a zero-sized type and finds its context in a
/// thread-local. That is what lets a `static` lock hold nothing but its words.
///
/// # Safety
///
/// Locks rest on what the functions promise: the words are atomics as those of
/// `core::sync::atomic`, [`waiter`](Self::waiter) gives each index a node of its own, and
/// [`arena`](Self::arena) is the only one that hands them out.
pub unsafe trait Platform:
    Atomics + Topology + Urgency + Clocks + LightUnlock + WordWaits + Hints
{
    /// How many waiter nodes there are at most; indices run from 1 to `WAITERS - 1`.
    const WAITERS: u32;

    /// Over how many counters of [`Arena::urgent`] the queues are spread, 1 to 256: a power of two.
    /// One, if addresses are not the same from run to run.
    const COUNTERS: usize = 1;

    /// Over how many words of [`Arena::cohort`] locks and sockets are spread, 1 to 512: a power of
    /// two.
    const COHORTS: usize = 1;

    /// A number for an address: spread evenly, and the same in each run where runs are repeated.
    fn spread(address: usize) -> u32 {
        // Fibonacci hashing: the highest bits are the best mixed.
        ((address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
    }

    /// The node at `index`, `0 < index < WAITERS`. Node memory is never freed, and reads as zero
    /// until the arena hands the node out for the first time.
    ///
    /// `None` if the memory can't be had; callers then wait without a node.
    ///
    /// # Safety
    ///
    /// See [`arena`](Self::arena), which is how to come by a node.
    unsafe fn waiter(index: u32) -> Option<&'static Waiter<Self>>;

    /// The arena that hands the nodes out.
    ///
    /// # Safety
    ///
    /// The content of a node is followed, as a link, and written through, as an address. So the
    /// nodes of others are written by the protocols of `antiphon-sync` and `antiphon-rivals` only:
    /// the queues of the locks, the lists of `wait`, and the mailboxes and sections of
    /// `delegation`. A caller that is not one of these only looks at them. It writes to a node that
    /// it has [taken](Arena::take), and gives back that, once, when no other thread will write to
    /// it any more.
    unsafe fn arena() -> &'static Arena<Self>;

    /// The reader indicators of the process, of which a readers-writer lock may have one at a time;
    /// none where readers are not worth counting by socket. At most 65 535.
    ///
    /// # Safety
    ///
    /// They say whether readers are in, so a writer relies on them: they are written by the
    /// protocol of `antiphon-sync`'s `ShflRwLock` only.
    #[inline]
    unsafe fn indicators() -> &'static [Indicator<Self>] {
        &[]
    }

    /// How many nodes the arena hands out before it begins to look for those of dead threads.
    fn arena_block() -> u32 {
        1024
    }

    /// Runs `f` on the state of the calling thread. A fiber uses that of the thread under it, so
    /// `f` must not wait.
    fn local<R>(f: impl FnOnce(&Local<Self>) -> R) -> R;

    /// The calling thread. Never zero; may be reused after the thread has ended.
    fn thread() -> ThreadId;

    /// The identity of the caller: a number of its fiber if it is on one, which moves from thread
    /// to thread with it, and of its thread otherwise. Never zero; two that live have two.
    fn task() -> u64 {
        Self::thread().0.into()
    }

    /// Whether `thread` may still run. `true` is always a safe answer; `false` orders nothing: what
    /// the thread did need not have happened before.
    fn alive(thread: ThreadId) -> bool;

    /// A number of 1 to 1023 that tells this process's waiter ids from those that another process
    /// left in the same memory, a parent before `fork` and its parents included. Constant between
    /// forks.
    fn epoch() -> u32;

    /// A pseudo-random number of the calling thread's own sequence.
    fn random() -> u32;

    /// Blocks the caller, which owns `waiter`, until [`unpark`](Self::unpark) was called for it,
    /// the deadline has passed, or for no reason. An `unpark` that came first is not lost: it makes
    /// the next `park` return at once. What happened before the `unpark` happens before the return.
    fn park(waiter: &Waiter<Self>, deadline: Option<Deadline>) -> Parked;

    /// Ends the present or next [`park`](Self::park) of that waiter. Does nothing if the node has
    /// changed hands after the reference was taken; a wake that is late all the same is only a
    /// spurious one for the node's next owner.
    fn unpark(waiter: WaiterRef);

    /// Like [`unpark`](Self::unpark). `false` if the waiter was not found asleep, so that it may
    /// not run for long: it sits in a signal handler that has interrupted its sleep, or is stopped;
    /// or it is up, or about to sleep, and will notice. A guess: it decides whether another is
    /// woken to keep watch.
    fn unpark_asleep(waiter: WaiterRef) -> bool {
        Self::unpark(waiter);
        true
    }
}

/// The reason why [`Platform::park`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Parked {
    /// Unparked, or for no reason: look again.
    Woken,
    /// The deadline has passed.
    TimedOut,
}

/// The platform can't do that: no such system call, or not permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported;

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this machine does not offer it, or does not permit it")
    }
}

impl core::error::Error for Unsupported {}

//! What an algorithm may ask of the machine that it runs on, and nothing else.
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
mod ids;
mod indicator;
mod local;
mod notify;
mod polled;
mod shared;
mod time;
mod waiter;

pub use arena::{Apart, Arena};
pub use atomic::{Atomic, AtomicInteger, Word};
pub use ids::{CpuId, SocketId, ThreadId};
pub use indicator::{
    Indicator, IndicatorGate, IndicatorLine, IndicatorMutex, IndicatorOwner, IndicatorWriters,
    LINES,
};
pub use local::Local;
pub use notify::{Notify, Ticket};
pub use polled::PolledWait;
pub use shared::SharedWait;
pub use time::{Budget, Clock, Deadline};
pub use waiter::{Waiter, WaiterId, WaiterRef};

use core::fmt;
use core::sync::atomic::Ordering;

/// This file, as its compiler had it: debug information says so of the functions in such files.
#[doc(hidden)]
pub const FILE: &str = file!();

/// A machine: its atomic words, how to wait on it, where its state lives, and the caller's identity
/// and place.
///
/// Functions take no `self`: a back end is a zero-sized type and finds its context in a
/// thread-local. That is what lets a `static` lock hold nothing but its words.
///
/// # Safety
///
/// Locks rest on what the functions promise: the words are atomics as those of
/// `core::sync::atomic`, [`waiter`](Self::waiter) gives each index a node of its own, and
/// [`arena`](Self::arena) is the only one that hands them out.
pub unsafe trait Platform: Sized + 'static {
    /// An atomic byte.
    type U8: AtomicInteger<u8>;
    /// An atomic half word.
    type U16: AtomicInteger<u16>;
    /// An atomic word.
    type U32: AtomicInteger<u32>;
    /// An atomic double word.
    type U64: AtomicInteger<u64>;

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

    /// How many CPUs the threads of the process can run on at the same time, as far as this
    /// platform can tell; at least 1.
    fn cpus() -> u32 {
        1
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

    /// The CPU that the caller runs on. May be stale at once.
    fn cpu() -> CpuId;

    /// The socket (NUMA node) that the caller runs on. May change between lock and unlock.
    fn socket() -> SocketId;

    /// Whether this machine has more than one socket: where it has not, no algorithm sorts by
    /// socket.
    fn numa() -> bool;

    /// How far the caches of two CPUs are from each other: 0 is as near as can be, and larger is
    /// farther. The unit is the platform's; a guess, 0 where nothing is known.
    fn distance(_: CpuId, _: CpuId) -> u32 {
        0
    }

    /// Whether there are distances to sort by on this machine.
    fn tiered() -> bool {
        Self::numa()
    }

    /// How urgent the scheduler holds the calling thread to be; larger goes first. An ordinary
    /// thread of the usual niceness is [`RANK`]; nice values are 1 to 40, real-time priorities 101
    /// to 199, deadlines 255.
    fn rank() -> u8 {
        RANK
    }

    /// The [`rank`](Self::rank) of a thread that has a real-time priority: more than 100; 0 of one
    /// that shares time. Locks serve those first, the highest of them before the others. Asked when
    /// a wait begins or its waiter is about to sleep; 0 is a safe answer.
    fn urgency() -> u8 {
        match Self::rank() {
            rank if rank > 100 => rank,
            _ => 0,
        }
    }

    /// Makes `thread`, which may have ended, run as if it were at least as urgent as `rank`, until
    /// as many [`reclaim`](Self::reclaim)s have been made as loans. A loan is not lost because of
    /// another loan or its end.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] where that is not possible or not permitted; then nothing was lent.
    fn lend(_thread: ThreadId, _rank: u8) -> Result<(), Unsupported> {
        Err(Unsupported)
    }

    /// Ends one loan to `thread`.
    fn reclaim(_thread: ThreadId) {}

    /// Nanoseconds of `clock`.
    fn now(clock: Clock) -> u64;

    /// The counter of the CPU that the caller runs on. All CPUs count at one rate, in a unit of the
    /// platform's, and without an access to memory that others share. Their counters may differ by
    /// a constant, so what is read later, on another CPU, may be less.
    ///
    /// It is read when all loads and read-modify-writes that come earlier in the program are done,
    /// and before any later access begins: so a reading says when they were, and what was done
    /// before an earlier reading is seen by what comes after a later one. An earlier plain store
    /// may still be on its way; a `SeqCst` [`fence`](Self::fence) has it done. The default is for
    /// platforms whose monotonic clock is read so.
    fn counter() -> u64 {
        Self::now(Clock::Monotonic)
    }

    /// Spins until [`counter`](Self::counter) is more than `value`, and returns what it is then.
    fn counter_after(value: u64) -> u64 {
        loop {
            let now = Self::counter();
            if now > value {
                return now;
            }
            core::hint::spin_loop();
        }
    }

    /// A memory fence. `SeqCst` here is the only sequentially consistent operation of the seam.
    fn fence(order: Ordering);

    /// Stores `value` (release) in `word` unless `flag` is non-zero; says whether it stored.
    ///
    /// Atomic against [`heavy_fence`](Self::heavy_fence): once that has returned, each call that
    /// began before it has either stored already or will see a flag that was raised before it.
    /// Nothing is touched after the store. Where [`light`](Self::light) is `false` this may not be
    /// called.
    ///
    /// # Safety
    ///
    /// Both words must be valid until the store takes effect; not after it.
    unsafe fn store_unless(word: *const Self::U8, value: u8, flag: *const Self::U16) -> bool;

    /// Whether the calling thread may use [`store_unless`](Self::store_unless). Once any thread
    /// of the process was told `true`, [`fenced`](Self::fenced) is `true` for good.
    fn light() -> bool;

    /// Whether some thread may be using `store_unless`, so that a sleeper has to fence.
    fn fenced() -> bool;

    /// The cheap half of the asymmetric pair: a [`heavy_fence`](Self::heavy_fence) of another
    /// thread is after what the caller has stored before this, or before what it loads after it.
    /// Costs nothing where a platform has it: only the compiler is told then.
    #[inline]
    fn light_fence() {
        Self::fence(Ordering::SeqCst);
    }

    /// The expensive half of the asymmetric pair: a full fence in each running thread of the
    /// process, which restarts open [`store_unless`](Self::store_unless) sections.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] where the kernel refuses, for good or this time; a sleeper that relies on it
    /// to be woken must not sleep for long then.
    fn heavy_fence() -> Result<(), Unsupported>;

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

    /// Whether other processes may have the memory at `address`: their threads don't know the
    /// waiters of this one, so a waiter there has to look up from time to time.
    fn is_foreign(_address: usize) -> bool {
        false
    }

    /// Whether the caller may sleep on a word ([`wait_on`](Self::wait_on)): many such sleepers are
    /// woken by one call, and need no node. A fiber may not: it would block the thread under it.
    fn waits_on_words() -> bool {
        false
    }

    /// Blocks the caller, in a place of 0 to 31, while the low half of `word` holds `low`: until a
    /// [`wake_on`](Self::wake_on) that has chosen it, the deadline has passed, or for no reason. A
    /// waiter that was chosen is not told [`Parked::TimedOut`]. A thread that changes that half and
    /// then wakes the place wakes the waiters there that do not see the change. A wake orders
    /// nothing else: a waiter that needs to see what was done reads it from a word.
    ///
    /// Only for callers that were told that they [may](Self::waits_on_words).
    fn wait_on(_word: &Self::U64, _low: u32, _place: u32, _deadline: Option<Deadline>) -> Parked {
        Parked::Woken
    }

    /// Wakes up to `count` of the waiters on the word at this address in one of the `places`, a bit
    /// for each; says how many these were. The address is used as a name only: the word may be
    /// gone.
    fn wake_on(_word: *const Self::U64, _places: u32, _count: u32) -> u32 {
        0
    }

    /// Tells the scheduler something about the caller. Doing nothing is a legal answer.
    fn hint(hint: Hint);

    /// Tells a tracer of the program what happens here. Not called on the way to a lock that is
    /// free. Doing nothing is a legal answer.
    #[inline(always)]
    fn probe(_probe: Probe) {}

    /// Whether more threads want to run than there are CPUs, as far as this platform can tell.
    /// A guess: it decides how long to spin, never what is correct.
    fn crowded() -> bool;

    /// Whether there are CPUs to spare: one is left that no other thread needs, beside those of the
    /// caller, which spins, and of the thread that is waited for. Never where it is
    /// [`crowded`](Self::crowded); a guess as that is.
    fn roomy() -> bool {
        !Self::crowded()
    }

    /// What a sleep costs: how long a woken thread takes to be back, in nanoseconds, from the call
    /// of [`unpark`](Self::unpark) to the return of [`park`](Self::park), where a CPU is free for
    /// it. A guess, as [`crowded`](Self::crowded) is: it decides how long to spin.
    fn sleep_cost_ns() -> u32 {
        20_000
    }

    /// How long the caller keeps its CPU if it goes on, in nanoseconds: what is left of its time
    /// slice, or [`u32::MAX`] while no other thread wants that CPU. A guess, as
    /// [`crowded`](Self::crowded) is; where the platform can't tell, it is one end or the other by
    /// that.
    fn slice_left_ns() -> u32 {
        if Self::crowded() { 0 } else { u32::MAX }
    }

    /// Whether `thread`, which may have ended, has a CPU now. A guess; `true` where the platform
    /// can't tell.
    fn runs(_thread: ThreadId) -> bool {
        true
    }
}

/// [`Platform::rank`] of a thread that was made neither more nor less urgent than others.
pub const RANK: u8 = 20;

/// The reason why [`Platform::park`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Parked {
    /// Unparked, or for no reason: look again.
    Woken,
    /// The deadline has passed.
    TimedOut,
}

/// A message of an algorithm to the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The caller begins to wait by spinning.
    SpinBegin,
    /// The caller has stopped waiting by spinning.
    SpinEnd,
    /// The caller owns what it waited for, and goes on to do something for others that wait.
    Owns,
    /// The caller may park until that time of the monotonic clock, in nanoseconds, which is not the
    /// end of its wait: it looks again then, and goes on waiting.
    LooksAgain {
        /// The time at which it looks again.
        at_ns: u64,
    },
}

/// A message of an algorithm to a tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The caller has to wait.
    WaitStart(Traced),
    /// The caller has waited, and has it.
    Acquired(Traced),
    /// The caller has waited in vain.
    GaveUp(Traced),
}

/// A lock, as a tracer is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The address of the lock.
    pub address: usize,
    /// The way in which the lock is waited for.
    pub kind: TracedKind,
}

impl Traced {
    /// The lock `lock`, for a tracer.
    pub fn new<L>(lock: &L, kind: TracedKind) -> Self {
        Self { address: core::ptr::from_ref(lock).addr(), kind }
    }
}

/// The way in which a lock is waited for. Tracers see the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TracedKind {
    /// A mutex.
    Mutex = 0,
    /// A readers-writer lock, to read.
    Read = 1,
    /// A readers-writer lock, to write.
    Write = 2,
    /// A spinlock.
    Spin = 3,
    /// A semaphore.
    Semaphore = 4,
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

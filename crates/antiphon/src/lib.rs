//! Locks for many-core Linux machines: small, NUMA-aware, and steady when threads outnumber CPUs.
//!
//! ```
//! use std::thread;
//!
//! static COUNT: antiphon::Mutex<u64> = antiphon::Mutex::new(0);
//!
//! thread::scope(|scope| {
//!     for _ in 0..4 {
//!         scope.spawn(|| (0..1000).for_each(|_| *COUNT.lock() += 1));
//!     }
//! });
//! assert_eq!(*COUNT.lock(), 4000);
//! ```
//!
//! # What is where
//!
//! | you want | see |
//! |---|---|
//! | a lock | [`Mutex`] (8 bytes), [`SpinMutex`] (4), [`RwLock`] (16), [`ReentrantMutex`] |
//! | to wait for a condition | [`Condvar`], [`EventCount`], [`Barrier`], [`Semaphore`] |
//! | to signal other threads | [`Event`], [`Latch`], [`Broadcast`] |
//! | to initialise once | [`Once`], [`OnceLock`], [`LazyLock`] |
//! | an order of waiters | [`policy`]: by socket (the default), distance, priority, or your own |
//! | memory that processes share | [`shared`] |
//! | threads that run tasks | [`pool`]; tasks that wait without a thread: [`fiber`] |
//! | values between tasks | [`channel`], [`promise`], [`select`]; to end a wait: [`cancel`] |
//! | sockets for fibers; pipelines | [`net`]; [`stage`] |
//! | timers on time | [`event_loop`]; beside other programs: [`coop`] |
//! | another thread to run something | [`message`] |
//! | timestamps | [`Clock`] |
//! | a look at a live program | [`look`] |
//! | the locks on other platforms | [`generic`]: a model checker, a simulator |
//!
//! A free lock owns nothing but its words, and none is ever poisoned. All locks are [`lock_api`]
//! types: timed locks, mapped guards, downgrade and upgrade work. All constructors are `const`.
//! Futures and fibers wait for the same objects as threads do ([`fiber::block_on`]).
//! [`enable_light`] makes unlocking a [`Mutex`] cheaper, where the machine can do it; off by
//! default.
//!
//! # What to know
//!
//! - **No poison.** A panic while a guard is alive unlocks the lock; the value is as the panic left
//!   it.
//! - **Guards may be sent** to another thread and dropped there, if the value allows it: these
//!   locks don't know their owners. [`ReentrantMutex`] does; its guards stay on their thread.
//! - **A guard may be forgotten**, and a locked lock moved or dropped. It stays locked.
//! - **No fair unlock.** `lock_api`'s `RawMutexFair` and `RawRwLockFair` promise that no thread
//!   takes the lock in between, and here a `try_lock` always may. A waiter that is overtaken for
//!   long gets the lock reserved without asking: after 50 µs or more, depending on the machine.
//! - **No timed spinlock.** For waits long enough to give up, use a [`Mutex`].
//! - A lock must be used through one copy of this crate in a process, not by a program and a plugin
//!   that have each linked their own.
//!
//! # Features
//!
//! - `arc_lock`: guards that own an `Arc` of their lock and borrow nothing, such as
//!   `ArcMutexGuard`.
//! - `deterministic`: pools for tests, on a simulated machine: one seed, one schedule.
//! - `io_uring`: fibers wait for sockets by a ring, where the kernel permits it: [`net::backend`].
//! - `migrating`: for experiments, pools whose fibers move between threads. It makes yields, waits
//!   of fibers and spawns in all pools 2 to 5 % slower, and a fork 0.3 ns.

mod alarm;
#[cfg(feature = "arc_lock")]
mod arc;
mod backend;
mod barrier;
#[cfg(doctest)]
mod borrows;
mod broadcast;
mod budget;
pub mod cancel;
pub mod channel;
mod clock;
mod condvar;
pub mod coop;
#[cfg(feature = "deterministic")]
pub mod deterministic;
mod event;
pub mod event_loop;
pub mod fiber;
mod local;
pub mod look;
pub mod message;
pub mod net;
mod observe;
mod once;
pub mod policy;
pub mod pool;
pub mod promise;
mod raw;
mod reentrant;
mod rw;
pub mod select;
mod semaphore;
pub mod shared;
pub mod stage;
mod unpoisoned;
mod worker;

pub use antiphon_linux::light::enable_light;
pub use antiphon_linux::{Changed as ClockChanged, ClockSource, Distrust};
pub use antiphon_platform::Unsupported;
pub use antiphon_sync::clock::Order;
pub use antiphon_sync::lock::Recursive;
#[cfg(feature = "arc_lock")]
pub use arc::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};
pub use barrier::{Barrier, BarrierWaitResult};
pub use broadcast::{Broadcast, Generation};
pub use clock::{Clock, NotMeasured, Timestamp};
pub use condvar::RawCondvar;
pub use event::{Event, EventCount, EventKey, Latch, MAX_COUNT};
pub use lock_api;
pub use once::{LazyLock, Once, OnceLock};
pub use raw::{RawMutex, RawSpin};
pub use reentrant::{ReentrantMutex, ReentrantMutexGuard, ThreadIdentity};
pub use rw::RawRwLock;
pub use semaphore::{MAX_PERMITS, Semaphore, SemaphorePermit, TooManyPermits};

/// A blocking mutex: [`ShflMutex`](generic::ShflMutex) on Linux.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// The guard that [`Mutex::lock`] returns; unlocks when dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// A guard of a part of the value that a [`MutexGuard`] guards; [`MutexGuard::map`] makes it.
///
/// ```
/// use antiphon::{MappedMutexGuard, Mutex, MutexGuard};
///
/// static PAIR: Mutex<(u32, String)> = Mutex::new((0, String::new()));
///
/// fn name() -> MappedMutexGuard<'static, String> {
///     MutexGuard::map(PAIR.lock(), |pair| &mut pair.1)
/// }
/// name().push_str("mapped");
/// assert_eq!(PAIR.lock().1, "mapped");
/// ```
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;
/// A condition variable for [`Mutex`]: `lock_api`'s type over [`RawCondvar`].
///
/// ```
/// use antiphon::{Condvar, Mutex};
///
/// static READY: Mutex<bool> = Mutex::new(false);
/// static CHANGED: Condvar = Condvar::new();
///
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         *READY.lock() = true;
///         CHANGED.notify_one();
///     });
///     let mut ready = READY.lock();
///     CHANGED.wait_while(&mut ready, |ready| !*ready);
/// });
/// ```
pub type Condvar = lock_api::Condvar<RawCondvar>;
/// A spinlock, for critical sections well under a microsecond: [`ShflSpin`](generic::ShflSpin).
pub type SpinMutex<T> = lock_api::Mutex<RawSpin, T>;
/// The guard that [`SpinMutex::lock`] returns; unlocks when dropped.
pub type SpinMutexGuard<'a, T> = lock_api::MutexGuard<'a, RawSpin, T>;
/// A guard of a part of the value that a [`SpinMutexGuard`] guards.
pub type MappedSpinMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawSpin, T>;

/// A blocking readers-writer lock: [`ShflRwLock`](generic::ShflRwLock) on Linux.
///
/// Readers wait behind a waiting writer, so a thread that reads already must not read again.
///
/// ```
/// static NAMES: antiphon::RwLock<Vec<&str>> = antiphon::RwLock::new(Vec::new());
///
/// let mut names = NAMES.write();
/// names.push("reader");
/// let names = antiphon::RwLockWriteGuard::downgrade(names);
/// assert_eq!(*names, ["reader"]);
/// ```
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// The guard that [`RwLock::read`] returns; unlocks when dropped.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// The guard that [`RwLock::write`] returns; unlocks when dropped.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
/// The guard that [`RwLock::upgradable_read`] returns; unlocks when dropped.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

/// A guard of a part of the value that a [`RwLockReadGuard`] guards.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;
/// A guard of a part of the value that a [`RwLockWriteGuard`] guards.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;

/// A readers-writer lock that a thread may read-lock again while it holds it for reading, a writer
/// waiting or not. In return, readers that overlap without end keep writers out.
///
/// ```
/// use antiphon::RecursiveRwLock;
///
/// static PARENT: RecursiveRwLock<[usize; 3]> = RecursiveRwLock::new([0, 0, 1]);
///
/// fn depth(node: usize) -> u32 {
///     let parent = PARENT.read();
///     if node == 0 { 0 } else { 1 + depth(parent[node]) }
/// }
/// assert_eq!(depth(2), 2);
/// ```
pub type RecursiveRwLock<T> = lock_api::RwLock<RawRwLock<Recursive>, T>;

/// The algorithms, generic over the machine. What stands in the nodes of waiters is followed, and
/// written through, so to come by one is `unsafe`:
///
/// ```compile_fail,E0133
/// use antiphon::generic::{Linux, Platform};
/// let _ = Linux::arena();
/// ```
///
/// ```compile_fail,E0133
/// use antiphon::generic::{Linux, Platform};
/// let _ = Linux::waiter(1);
/// ```
///
/// So is a machine of one's own, which gives them out:
///
/// ```compile_fail,E0200
/// struct Machine;
/// impl antiphon::generic::Platform for Machine {}
/// ```
pub mod generic {
    pub use antiphon_linux::Linux;
    pub use antiphon_platform::Platform;
    pub use antiphon_runtime::message;
    pub use antiphon_sync::clock::{Apart, Least, Meeting, Ordo, SharedCounter, Stamps, tl2};
    pub use antiphon_sync::lock::classic;
    pub use antiphon_sync::lock::delegation;
    pub use antiphon_sync::lock::numa;
    pub use antiphon_sync::lock::{Form, Lock, Published, ShflMutex, ShflSpin, Standard};
    pub use antiphon_sync::lock::{GroupReaders, GroupWriters};
    pub use antiphon_sync::lock::{MAX_READERS, Recursive, Refused, RwForm, ShflRwLock};
    pub use antiphon_sync::policy;
    pub use antiphon_sync::wait::{
        Barrier, Broadcast, Condvar, CrowdForm, Once, Semaphore, Unpolled,
    };
    pub use antiphon_sync::wait::{Event, EventCount, Key, Latch};
}

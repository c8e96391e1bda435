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
//! [`Mutex`] is 8 bytes beside its value, [`SpinMutex`] 4, [`RwLock`] 16; a free lock owns nothing
//! else, and none is ever poisoned. All are [`lock_api`] types, so what is written for those works:
//! timed locks, mapped guards, downgrade and upgrade. All constructors are `const`. [`Barrier`],
//! [`Semaphore`], [`Once`], [`OnceLock`] and [`LazyLock`] wait as the locks do. [`Event`],
//! [`Latch`], [`EventCount`] and [`Broadcast`] tell other threads that something has happened.
//! [`Clock`] gives timestamps without a shared counter, with a measured uncertainty.
//! [`enable_light`] makes unlocking a [`Mutex`] cheaper, where the machine can do it; off at first.
//! Waiters are sorted by socket; [`policy`] has other orders, for each lock and at any time.
//! [`message`] has active messages: mailboxes whose owners run what others post.
//! [`pool`] has threads that run tasks, in the order that you want; as [`fiber`]s, if they wait.
//! [`look`] shows the pools of a live program to `antiphon top`.
//! [`net`] has sockets, which such fibers wait for as if they were threads.
//! [`channel`] has what one sends to another, who waits for it; [`select`] waits for the first of
//! several things. [`promise`] has a value that somebody comes up with, and [`cancel`] tokens that
//! say that work is to end. Futures wait for these, too, and fibers for futures
//! ([`fiber::block_on`]).
//! [`coop`] has loops that are on time on a busy machine.
//! [`shared`] has types for memory that several processes share.
//! [`generic`] has the same locks for other machines than this one: a model checker, a simulator.
//!
//! # What to know
//!
//! - **No poison.** A panic while a guard is alive unlocks and no more; the value is as the panic
//!   left it.
//! - **Guards may be sent** to another thread and dropped there, if the value allows it: no lock
//!   here knows its owner. [`ReentrantMutex`] does; its guards stay where they are.
//! - **A guard may be forgotten**, and a locked lock moved or dropped. It stays locked, no more.
//! - **No fair unlock.** `lock_api`'s `RawMutexFair` and `RawRwLockFair` promise that nobody can
//!   take the lock in between, and here a try always may. A waiter that is overtaken for long has
//!   the lock kept for it all the same, without being asked: 50 µs or more, as the machine is.
//! - **No timed spinlock.** Who may wait for long enough to give up wants a [`Mutex`].
//! - A lock must be used through one copy of this crate in a process: not by a program and a plugin
//!   that have each linked their own.
//!
//! # Features
//!
//! - `arc_lock`: guards that keep an `Arc` of their lock and borrow nothing, as `ArcMutexGuard`.
//! - `deterministic`: pools for tests, on a simulated machine: one seed, one schedule.
//! - `io_uring`: fibers wait for sockets by a ring, where the kernel lets them: [`net::backend`].
//! - `migrating`: for experiments, pools whose fibers move between threads. With it yields, waits
//!   of fibers, and spawning take 2 to 5 % longer in all pools, and a fork 0.3 ns.

mod alarm;
#[cfg(feature = "arc_lock")]
mod arc;
mod barrier;
#[cfg(doctest)]
mod borrows;
mod broadcast;
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
/// What [`Mutex::lock`] returns; unlocks when dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// A part of what a [`MutexGuard`] guards; [`MutexGuard::map`] makes it.
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
/// What [`SpinMutex::lock`] returns; unlocks when dropped.
pub type SpinMutexGuard<'a, T> = lock_api::MutexGuard<'a, RawSpin, T>;
/// A part of what a [`SpinMutexGuard`] guards.
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
/// What [`RwLock::read`] returns; unlocks when dropped.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// What [`RwLock::write`] returns; unlocks when dropped.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
/// What [`RwLock::upgradable_read`] returns; unlocks when dropped.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

/// A part of what a [`RwLockReadGuard`] guards.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;
/// A part of what a [`RwLockWriteGuard`] guards.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;

/// A readers-writer lock that a thread may read-lock again while it holds it for reading, a writer
/// waiting or not. In return, readers who are never all out keep writers out.
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

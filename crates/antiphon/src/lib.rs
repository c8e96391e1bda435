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
//! # Map
//!
//! Locks and the objects that threads wait for are on this page. All else is in modules.
//!
//! | you want | see |
//! |---|---|
//! | a lock | [`Mutex`] (8 bytes), [`RwLock`] (16), [`SpinMutex`] (4), [`ReentrantMutex`] |
//! | to wait for a condition | [`Condvar`], [`EventCount`], [`Barrier`], [`Semaphore`] |
//! | to signal other threads | [`Event`], [`Latch`], [`Broadcast`] |
//! | to initialise once | [`Once`], [`OnceLock`], [`LazyLock`] |
//! | a lock that processes share | the crate `antiphon-shared` |
//! | an order of waiters | [`policy`]: by socket (the default), distance, priority, or your own |
//! | to run tasks on threads | [`pool`]; an order of tasks: [`pool::policy`] |
//! | tasks that wait without a thread | [`fiber`]; their sockets: [`net`] |
//! | values between tasks | [`channel`], [`promise`], [`select`]; pipelines: [`stage`] |
//! | to end a wait | [`cancel`] |
//! | memory that one thread fills and another releases | [`recycle`] |
//! | another thread to run something | the crate `antiphon-message` |
//! | timers on time | the crate `antiphon-coop`: event loops, also beside other programs |
//! | timestamps | the crate `antiphon-clock` |
//! | to look at a live program | [`look`] |
//! | to name a guard, a result, or a raw lock | [`guard`], [`raw`] |
//! | the locks on other platforms | the crates `antiphon-sync` and `antiphon-platform` |
//!
//! A free lock owns nothing but its words, and no lock is ever poisoned. All locks are [`lock_api`]
//! types: timed locks, mapped guards, downgrade and upgrade work. All constructors are `const`.
//! Futures and fibers wait for the same objects as threads do ([`fiber::block_on`]).
//! [`enable_light`] makes unlocking a [`Mutex`] cheaper, where the machine supports it; and
//! [`enable_sections`] has the kernel put off preemptions of threads that hold one. Both are off by
//! default.
//!
//! # What to know
//!
//! - **No poison.** A panic while a guard is alive unlocks the lock; the value is as the panic left
//!   it.
//! - **Guards may be sent** to another thread and dropped there, if the value allows it: these
//!   locks don't record their owners. [`ReentrantMutex`] does; its guards stay on their thread.
//! - **A guard may be forgotten**, and a locked lock moved or dropped. The lock stays locked.
//! - **No fair unlock.** `lock_api`'s `RawMutexFair` and `RawRwLockFair` promise that no thread
//!   takes the lock in between, and here a `try_lock` always may. For a waiter that is overtaken
//!   for long, the lock is reserved automatically: after 50 µs or more, depending on the machine.
//! - **No timed spinlock.** For waits long enough to give up, use a [`Mutex`].
//! - A lock must be used through one copy of this crate in a process, not by a program and a plugin
//!   that have each linked their own.
//!
//! # Features
//!
//! - `arc_lock`: guards that own an `Arc` of their lock and borrow nothing, such as
//!   `ArcMutexGuard`.
//! - `deterministic`: pools for tests, on a simulated machine: one seed, one schedule.
//! - `io_uring`: fibers wait for sockets through an `io_uring` ring, where the kernel permits it:
//!   [`net::backend`].
//! - `migrating`: for experiments, pools whose fibers move between threads. It makes yields, waits
//!   of fibers and spawns in all pools 2 to 5 % slower, and a fork 0.3 ns slower.

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
mod condvar;
mod deadline;
mod debug;
#[cfg(feature = "deterministic")]
pub mod deterministic;
mod event;
pub mod fiber;
pub mod guard;
mod local;
mod locks;
pub mod look;
mod mutex;
pub mod net;
mod observe;
mod once;
pub mod policy;
pub mod pool;
pub mod promise;
pub mod recycle;
mod reentrant;
mod rw;
pub mod select;
mod semaphore;
pub mod stage;
mod unpoisoned;
mod worker;

pub use antiphon_linux::light::enable_light;
pub use antiphon_linux::section::{Listener, enable_sections};
pub use antiphon_platform::Unsupported;
pub use barrier::Barrier;
pub use broadcast::Broadcast;
pub use event::{Event, EventCount, Latch};
pub use lock_api;
pub use locks::{
    Condvar, Mutex, MutexGuard, RecursiveRwLock, RwLock, RwLockReadGuard, RwLockWriteGuard,
    SpinMutex,
};
pub use once::{LazyLock, Once, OnceLock};
pub use reentrant::ReentrantMutex;
pub use semaphore::Semaphore;

/// The raw forms of the locks, for your own [`lock_api`] types.
pub mod raw {
    pub use crate::condvar::RawCondvar;
    pub use crate::mutex::{RawMutex, RawSpin};
    pub use crate::reentrant::ThreadIdentity;
    pub use crate::rw::RawRwLock;
    pub use antiphon_sync::lock::Recursive;
}

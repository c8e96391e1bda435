//! Fibers: tasks with their own stacks, which are suspended where they wait.
//!
//! The tasks of a pool that is built with [`fibers`](crate::pool::Builder::fibers) run as fibers. A
//! fiber waits as a thread does, in the middle of any call and beside threads in the same queues:
//! for this crate's locks, events, condition variables, barriers and semaphores, for tasks, and at
//! the end of scopes. While it waits, its thread runs other tasks.
//!
//! ```
//! use antiphon::{Event, fiber, pool::Pool};
//! use std::sync::Arc;
//!
//! // SAFETY: no fiber waits while it makes a thread-local.
//! let pool = unsafe { Pool::builder().threads(1).fibers(fiber::STACK_BYTES) }.build()?;
//! let events: Arc<[Event; 100]> = Arc::new([const { Event::new() }; 100]);
//! // Each waits for the next, all on one thread.
//! let waiters: Vec<_> = (0..99)
//!     .map(|number| {
//!         let events = events.clone();
//!         pool.spawn(move || {
//!             events[number + 1].wait();
//!             events[number].set();
//!         })
//!     })
//!     .collect();
//! events[99].set();
//! events[0].wait();
//! # waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A task that has not begun costs as much memory as its closure. From its beginning to its end it
//! has a stack, of which only the used part is in memory, at least a page. A fiber that has begun
//! stays on its thread. So it may use `Rc`, `RefCell` and thread-locals; but while its thread is in
//! a long task, the fiber waits. (Fibers move only in pools for experiments: feature `migrating`.)
//!
//! [`block_on`] waits for a future, for example one of Tokio's. A task's handle is a future itself.
//!
//! # What to know
//!
//! - **A fiber must not wait while it initialises a thread-local**, nor within a scope that sets
//!   one for a while. Nothing checks this, so [asking for fibers](crate::pool::Builder::fibers) is
//!   `unsafe`; spawning them is not.
//! - **Other ways to wait block the thread**: a `std::sync` lock, a channel of another crate, a
//!   file, a socket that is not of [`net`](crate::net), a [`SpinMutex`](crate::SpinMutex), and the
//!   types of the crate `antiphon-shared`. With [`pool::blocking`](crate::pool::blocking) another
//!   thread runs tasks that have not begun meanwhile. If a fiber waits while it holds a guard of
//!   `std::sync::Mutex` or `SpinMutex`, the next fiber of its thread that wants the lock blocks the
//!   thread for ever.
//! - **Fibers take turns.** A fiber that computes and never waits should call [`checkpoint`] now
//!   and then; otherwise it keeps other fibers of its thread from running. A fiber whose waits are
//!   always over at once, such as waits for an open latch, lets others run at each 128th of them.
//! - **The stack has the size that was asked for.** A fiber that needs more ends the process with
//!   `SIGSEGV`, because there is a guard page below its stack. There is no message as for threads.
//! - **While a panic unwinds**, a fiber that waits blocks its thread: otherwise `std` would
//!   consider a fiber on another stack to be panicking, too. If it waits for another fiber of its
//!   thread, for example one that holds a lock and waits, it waits for ever. So a destructor should
//!   try a lock, or take only locks that no fiber holds while it waits.
//! - **A pool that is dropped** waits for its fibers, including those that wait for others.

mod block_on;
pub mod census;
mod clocked;
mod control;
mod current;
#[doc(hidden)]
pub mod external;
mod files;
mod holders;
mod hooks;
mod host;
mod looks;
mod polls;
mod reactor;
#[cfg(feature = "io_uring")]
mod ring;
#[cfg(feature = "io_uring")]
mod transfers;
mod untold;

use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_platform::{Clocks as _, Parked, Platform as _, Waiter};

pub use block_on::block_on;
pub(crate) use census::Desks;
pub(crate) use clocked::Clocked;
pub(crate) use control::{GoesOn, next_identity};
pub(crate) use current::{current_is_ours, not_here, show_stack, top_of};
pub(crate) use files::{ByToken, Seats, Suspends, Until, Waited};
pub(crate) use holders::Waits;
pub(crate) use hooks::{identity, stacks, stays};
pub(crate) use host::{Host, Next, has_begun, monotonic_ns};

use crate::budget;
#[doc(hidden)]
pub use crate::budget::may_be_ready;
use crate::deadline::deadline_after;
use control::Said;

/// A size of a fiber's stack that is enough for most tasks: 64 KiB.
pub const STACK_BYTES: usize = 64 << 10;

/// Lets other fibers of this thread and tasks that have not begun run.
///
/// One task begins after every fourth turn of a fiber; now and then it is a task from outside or of
/// another worker. So under any policy, a task that the caller waits for by yielding gets its turn.
/// If the caller is not a fiber, lets other threads run.
#[inline(always)]
pub fn yield_now() {
    if !hooks::leave(Said::Yields { soft: false }) {
        thread::yield_now();
    }
}

/// Lets other fibers of this thread run, and begins tasks only now and then. Costs less than
/// [`yield_now`].
#[inline(always)]
pub fn yield_soft() {
    if !hooks::leave(Said::Yields { soft: true }) {
        thread::yield_now();
    }
}

/// Lets others run as [`yield_now`] does, if the fiber has run for 100 µs or more without a break.
///
/// Call it in code that computes, as often as is convenient. If the time is not over, it costs a
/// nanosecond or two: a count, and about every 25 µs a reading of the clock. If quick steps of a
/// fiber become slow, this is noticed after at most 1024 steps. If the caller is not a fiber, does
/// nothing.
#[inline]
pub fn checkpoint() {
    if budget::is_over() && current_is_ours() {
        yield_now();
    }
}

/// Suspends the calling fiber for at least `time`. If the caller is not a fiber, same as
/// [`thread::sleep`].
pub fn sleep(time: Duration) {
    if !current_is_ours() && external::running().is_none() {
        return thread::sleep(time);
    }
    budget::may_be_ready();
    let deadline = deadline_after(time);
    let waiter = Waiter::NEW;
    while Linux::now(deadline.clock) < deadline.ns {
        // No other thread knows this node.
        let _: Parked = Linux::park(&waiter, Some(deadline));
    }
}

/// Returns whether the caller is a fiber of a pool, which is suspended when it waits.
#[must_use]
pub fn is_fiber() -> bool {
    current_is_ours()
}

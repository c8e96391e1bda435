//! Code that reads straight down: where it waits, its fiber is suspended, and its thread runs
//! others.
//!
//! The tasks of a pool that is built with [`fibers`](crate::pool::Builder::fibers) run as fibers,
//! each on a stack of its own: it waits by this crate's locks, events, condition variables,
//! barriers and semaphores, for tasks and at the end of scopes as a thread does, beside threads in
//! the same queues, and keeps no thread from other tasks meanwhile.
//!
//! ```
//! use antiphon::{Event, fiber, pool::Pool};
//! use std::sync::Arc;
//!
//! // SAFETY: no thread-local is made by what waits.
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
//! A task that waits to be run costs what its closure does; it has a stack from its beginning to
//! its end, of which as much is in memory as it has used: a page at least. One that has begun stays
//! on its thread. So it may use `Rc`, `RefCell` and thread-locals; and where its thread is in a
//! long task, it waits for that. (Only in pools for experiments it moves: the feature
//! `migrating`.)
//!
//! [`block_on`] has one wait for a future, of Tokio's, say; and a task's handle is a future itself.
//!
//! # What to know
//!
//! - **No fiber may wait while it makes a thread-local**, in its initializer, nor within what sets
//!   one for a while: so to ask for fibers is [`unsafe`](crate::pool::Builder::fibers), and to
//!   spawn them is not. Nothing checks it.
//! - **Other ways to wait block the thread**: a `std::sync` lock, a channel of another crate, a
//!   file, a socket that is not of [`net`](crate::net), a [`SpinMutex`](crate::SpinMutex); so do
//!   the types of [`shared`](crate::shared). [`pool::blocking`](crate::pool::blocking) has another
//!   thread run what has not begun meanwhile. Where a guard of `std::sync::Mutex` or `SpinMutex` is
//!   held while a fiber waits, the next fiber of its thread that wants the lock blocks the thread
//!   for ever.
//! - **Fibers take turns.** One that computes and never waits calls [`checkpoint`] now and then, or
//!   keeps those on its thread from going on. One whose waits are always over at once, as that for
//!   a latch that is open, lets others run at each 128th of them.
//! - **The stack is as large as was asked for**, and what needs more ends the process: there is a
//!   page below that nobody may touch. That is a `SIGSEGV`, without the message that threads get.
//! - **While a panic unwinds** a fiber blocks its thread where it waits: who is on another stack
//!   would be taken to panic, too. If what it waits for is another fiber of its thread, one that
//!   holds a lock and waits, say, that is for ever. So a destructor tries a lock, or locks what no
//!   fiber holds while it waits.
//! - **A pool that is dropped** waits for its fibers, which wait for others.

mod block_on;
mod census;
mod clocked;
mod control;
mod cycles;
mod files;
mod frames;
mod holders;
mod hooks;
mod host;
mod looks;
mod polls;
mod reactor;
#[cfg(feature = "io_uring")]
mod ring;
mod slice;
mod sources;
#[cfg(feature = "io_uring")]
mod transfers;
mod untold;

use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_platform::{Parked, Platform as _, Waiter};

pub use block_on::block_on;
pub(crate) use census::Desks;
pub use census::{Answer, Census, Hosted, Lock, Wait};
pub(crate) use clocked::Clocked;
pub(crate) use control::{Fiber, next_identity};
pub(crate) use cycles::Parts;
pub(crate) use files::{ByToken, Seats, Suspends, Until, Waited};
pub use frames::{Frame, Place};
pub(crate) use frames::{telling, users, write_frames};
pub(crate) use holders::Waits;
pub(crate) use hooks::{current_is_ours, identity, not_here, show_stack, top_of};
pub(crate) use host::{GoesOn, Host, Next, has_begun, monotonic_ns, stacks};

use crate::raw::deadline_after;
use control::Said;

/// How large a fiber's stack is if nobody has a reason for another size: 64 KiB.
pub const STACK_BYTES: usize = 64 << 10;

/// Lets others run: the other fibers of this thread, and tasks that have not begun, one after every
/// fourth turn of a fiber: so that whatever the policy, what one waits for this way gets its turn.
/// Now and then that is a task from outside, or of another worker. On a thread, lets other threads
/// run.
#[inline(always)]
pub fn yield_now() {
    if !hooks::leave(Said::Yields { soft: false }) {
        thread::yield_now();
    }
}

/// As [`yield_now`], and costs less: other fibers of this thread run, and tasks that have not begun
/// only now and then.
#[inline(always)]
pub fn yield_soft() {
    if !hooks::leave(Said::Yields { soft: true }) {
        thread::yield_now();
    }
}

/// Lets others run as [`yield_now`] does, if the fiber has run for 100 µs or more without a break:
/// for what computes, as often as is convenient. Where it has not, this costs a nanosecond or two:
/// a count, and now and then a look at the clock, about every 25 µs. A fiber of quick steps that
/// becomes slow is noticed in 1024 of them at the latest. On a thread, does nothing.
#[inline]
pub fn checkpoint() {
    if slice::is_over() && current_is_ours() {
        yield_now();
    }
}

/// As [`checkpoint`], where the fiber may not have to wait; also has others run at each 128th of
/// such steps. It is called before the step, so nobody has what that takes while others run. Public
/// for the C API.
#[doc(hidden)]
#[inline]
pub fn may_be_ready() {
    if slice::is_tiring() {
        others_go_on();
    }
}

/// Once in many steps, so what a switch costs more in a function of its own is of no matter.
#[cold]
#[inline(never)]
fn others_go_on() {
    yield_now();
}

/// Waits for so long, or somewhat longer. On a thread, as [`thread::sleep`].
pub fn sleep(time: Duration) {
    if !current_is_ours() && !hooks::current_is_looped() {
        return thread::sleep(time);
    }
    may_be_ready();
    let deadline = deadline_after(time);
    let waiter = Waiter::NEW;
    while Linux::now(deadline.clock) < deadline.ns {
        // Nobody knows this node.
        let _: Parked = Linux::park(&waiter, Some(deadline));
    }
}

/// Whether the caller is a fiber of a pool, and is suspended where it waits.
#[must_use]
pub fn is_fiber() -> bool {
    current_is_ours()
}

//! An event loop for programs that must meet deadlines and compute all the time: a player, a game,
//! an instrument, a controller.
//!
//! ```
//! use antiphon_coop::event_loop::{Event, Loop, Step, now_ns};
//!
//! let mut events = Loop::new()?;
//! let begun_ns = now_ns();
//! // A beat, 1000 times a second: whatever else there is to do, this is first when it is due.
//! let mut beats = 0;
//! events.submit(
//!     Event::timer_in_steps(begun_ns, move |context| {
//!         beats += 1;
//!         let next_ns = context.release_ns().unwrap() + 1_000_000;
//!         if beats < 20 { Step::At(next_ns) } else { Step::Done }
//!     })
//!     .named("beat"),
//! );
//! // And what takes as long as there is time for it, in steps that end when something is due.
//! let mut number = 0_u64;
//! events.submit(
//!     Event::best_effort_in_steps(0, move |context| {
//!         while !context.is_over() {
//!             number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
//!         }
//!         if now_ns() < begun_ns + 30_000_000 { Step::More(0) } else { Step::Done }
//!     })
//!     .named("compute"),
//! );
//! let _ = events.run();
//! let beat = &events.stats()[0];
//! println!("{}: p99 {} ns late", beat.name, beat.tardiness.percentile_ns(99_000));
//! # assert_eq!(beat.tardiness.count(), 20);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! [`antiphon_runtime::event_loop`] describes the order of events, and has the same loop for other
//! machines. The loop here waits for files ([`Source`], [`Signals`]), for other threads
//! ([`Handle`]), and for what futures wait for ([`Event::task`](GenericEvent::task)): this crate's
//! channels, events, latches. Release times are nanoseconds of the monotonic clock ([`now_ns`]).
//! Waits are exact to the nanosecond where the kernel's are, and the timer slack of the thread is
//! set to a nanosecond.
//!
//! # Inside other loops
//!
//! A [`Loop`] is a file ([`AsFd`]) that becomes readable when there is something to do after a
//! [`turn`](EventLoop::turn):
//!
//! ```
//! # use std::os::fd::{AsFd, AsRawFd};
//! # use antiphon_coop::event_loop::{Event, Loop, now_ns};
//! let mut events = Loop::new()?;
//! events.submit(Event::timer(now_ns() + 1_000_000, |_| println!("on time")));
//! while events.turn(16).end.is_none() {
//!     let fd = events.as_fd().as_raw_fd();
//!     let mut files = [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }];
//!     // SAFETY: `files.len()` files.
//!     unsafe { libc::poll(files.as_mut_ptr(), files.len() as _, -1) };
//! }
//! # Ok::<(), std::io::Error>(())
//! ```

mod fiber;
mod files;
mod loops;
#[cfg(feature = "io_uring")]
mod ring;
#[cfg(test)]
mod tests;
mod watch;

use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd};

use antiphon_linux::set_timer_slack;
use antiphon_runtime::coop::Alone;
use antiphon_runtime::event_loop::{self as generic, Wait as _};

use crate::kernel;

pub use antiphon_linux::files::{Signalled, Signals};
pub use antiphon_runtime::coop::{Answer, Ask, Cooperate};
pub use antiphon_runtime::event_loop::Event as GenericEvent;
pub use antiphon_runtime::event_loop::{
    Callback, Due, End, EventId, EventLoop, Gone, Histogram, Lookout, Name, Options, Sighting,
    Stats, Step, Task, Trouble, Turn,
};
pub use fiber::{Fiber, Fibers, Suspendable};
pub use files::{Files, Ready, Source};
pub use loops::{Colours, Loops};
pub use watch::Watchdog;

/// The examples of the guide, as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/event-loop.md")]
struct Guide;

/// An event of a loop; see [`GenericEvent`].
pub type Event<C = ()> = generic::Event<Files, C>;
/// The loop, as seen by a callback.
pub type Context<'a> = generic::Context<'a, Files>;
/// The handle by which other threads submit events to a loop.
pub type Handle = generic::Handle<Files>;

/// An event loop that waits for files. It belongs to the thread that has created it. Its methods
/// are those of [`EventLoop`].
///
/// Where `antiphon sched --full` runs when the loop is created, or when it is told its tier, the
/// loop is under the scheduler in the kernel, [as long as that is there](crate::Scheduled).
#[derive(Debug)]
pub struct Loop(EventLoop<Files>);

impl Loop {
    /// Creates a loop with the default [options](Options).
    ///
    /// # Errors
    ///
    /// If too many files are open.
    pub fn new() -> io::Result<Self> {
        Self::with(Options::default())
    }

    /// Creates a loop with these options.
    ///
    /// # Errors
    ///
    /// If too many files are open.
    pub fn with(options: Options) -> io::Result<Self> {
        // If that is refused, the loop is as late as all other threads.
        let _ = set_timer_slack(1);
        let mut events = EventLoop::new(Files::new()?, options);
        if kernel::may_be_there() {
            events.cooperate_by(Box::new(Alone));
        }
        Ok(Self(events))
    }
}

impl Deref for Loop {
    type Target = EventLoop<Files>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Loop {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// Readable when there is something to do after a [`turn`](EventLoop::turn) of the loop. A poller
/// that reports this only once (edge-triggered, as Tokio is) must take turns until one has called
/// nothing.
impl AsFd for Loop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.waits().as_fd()
    }
}

/// Returns the current time, in the unit of release times: nanoseconds of the monotonic clock.
#[must_use]
pub fn now_ns() -> u64 {
    Files::now_ns()
}

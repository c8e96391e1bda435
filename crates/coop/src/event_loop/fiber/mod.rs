//! Events that are fibers: code that reads straight down, and is suspended when its budget ends.
//!
//! | file | content |
//! |---|---|
//! | `mod` | how a program asks for fibers, and what a fiber has of its loop |
//! | `steps` | one as a callback: how it begins, goes on, and comes to an end |
//! | `control` | what it shares with its thread, and with those that wake it |

mod control;
mod steps;

use std::fmt;
use std::io;
use std::panic::resume_unwind;
use std::ptr::NonNull;
use std::thread;
use std::time::Duration;

use antiphon::fiber::external::{self, Running};
use antiphon_linux::stack::Stacks;
use antiphon_runtime::event_loop::{Due, Step};

pub use steps::Suspendable;

use super::{Context, Event, Ready, now_ns};
use control::{Control, Said, Unwound};

/// Makes events that are fibers, each with a stack of its own. Clones have the same stacks; for all
/// loops and threads.
///
/// ```
/// use antiphon_coop::event_loop::{Event, Fibers, Loop, Step, now_ns};
/// use antiphon::fiber;
///
/// // SAFETY: no fiber waits while it makes a thread-local.
/// let fibers = unsafe { Fibers::new(fiber::STACK_BYTES) }?;
/// let mut events = Loop::new()?;
/// events.submit(fibers.event(0, |fiber| {
///     let mut sum = 0_u64;
///     for number in 0..100_000 {
///         sum += number;
///         fiber.checkpoint();                     // timers that are due are called here
///     }
///     fiber.sleep_until(now_ns() + 1_000_000);
///     println!("{sum}, on time");                 // as a timer
/// }));
/// let _ = events.run();
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// A fiber that waits by `antiphon`, for a lock, a channel, a latch, a task, is suspended, and its
/// loop goes on; so it is in [`fiber::sleep`](antiphon::fiber::sleep) and
/// [`fiber::block_on`](antiphon::fiber::block_on). A call that blocks the thread of other
/// [fibers](antiphon::fiber) blocks the loop; [sockets](antiphon::net) do, too.
///
/// A fiber stays on the thread of its loop, is called as other work is, by its importance, and each
/// step counts as a callback. A panic comes out of `run`.
///
/// # When it is dropped
///
/// With the loop, or as it is [cancelled](super::EventLoop::cancel), it is unwound from where it is
/// suspended, as by a panic that prints nothing; it may catch that, and is unwound again by its
/// next call. One that waits by a lock or the like can't be left before that wait is over: it is
/// unwound when it is to be suspended next by [`Fiber`], or comes to its end; and a loop that is
/// dropped runs until then. In a program that aborts on panics, its stack is leaked instead.
#[derive(Clone)]
pub struct Fibers(Stacks);

/// The handle by which the closure of a fiber acts on itself. No other code may use it; that
/// panics.
pub struct Fiber(NonNull<Control>);

impl Fibers {
    /// Makes fibers with stacks of `stack_bytes` bytes each; see
    /// [`STACK_BYTES`](antiphon::fiber::STACK_BYTES).
    ///
    /// # Errors
    ///
    /// If there can't be any of that size; or there is another fiber runtime in the process.
    ///
    /// # Safety
    ///
    /// As of [the fibers of a pool](antiphon::pool::Builder::fibers): what they run does not wait
    /// by `antiphon`, nor by [`Fiber`], while it makes a thread-local (in the initializer), nor
    /// within what sets a thread-local for a while and then puts back what was there. Other fibers
    /// of the thread come in between, and a value is dropped that another one has borrowed.
    pub unsafe fn new(stack_bytes: usize) -> io::Result<Self> {
        external::stacks(stack_bytes).map(Self)
    }

    /// An event whose closure is a fiber, of that importance at first. It has a stack from when it
    /// is called first to its end; where there is none to be had, it begins when one is given back.
    ///
    /// # Panics
    ///
    /// The loop's `run` does, if there is no stack, and none taken that could be given back.
    #[track_caller]
    pub fn event<F>(&self, importance: u64, body: F) -> Event<Suspendable<F>>
    where
        F: FnOnce(&Fiber) + 'static,
    {
        let steps = Suspendable::new(self.0.clone(), importance, body);
        Event::new(Due::Importance(importance), steps)
    }
}

impl Fiber {
    /// Lets others be called, if its time is over or something more important is there: what is
    /// called between two of these is as late as they are apart. It costs a look at the clock.
    pub fn checkpoint(&self) {
        if self.is_over() {
            self.more(self.here().importance.get());
        }
    }

    /// Whether a [`checkpoint`](Self::checkpoint) would let others be called.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.with(|context| context.is_over())
    }

    /// Goes on by that importance, and lets others be called that are due, or as important.
    pub fn more(&self, importance: u64) {
        self.here().importance.set(importance);
        self.suspend(Step::More(importance));
    }

    /// Waits until that time. What follows is called as a timer of that release.
    pub fn sleep_until(&self, at_ns: u64) {
        loop {
            let now_ns = now_ns();
            if now_ns >= at_ns {
                return;
            }
            if thread::panicking() {
                thread::sleep(Duration::from_nanos(at_ns - now_ns));
            } else {
                self.suspend(Step::At(at_ns));
            }
        }
    }

    /// Waits until its source, if it is [watched](super::EventLoop::watch) for one, says something,
    /// and returns that: all since the source was asked last. Without a source, it waits until it
    /// is [woken](super::EventLoop::wake) meanwhile. A wake that comes where the fiber is suspended
    /// for something else ends no wait, so a fiber that waits for a condition checks the condition,
    /// and then waits, with nothing between. May return for no reason; while the fiber unwinds, it
    /// always does.
    pub fn wait(&self) -> Ready {
        let ready = &self.here().ready;
        if ready.get() == Ready::default() {
            self.suspend(Step::Asleep);
        }
        ready.take()
    }

    /// The loop, for as long as `f` runs: there, a wait blocks the thread.
    ///
    /// # Panics
    ///
    /// Within itself; and where the fiber is unwound, as its loop has let go of it.
    pub fn with<R>(&self, f: impl FnOnce(&mut Context<'_>) -> R) -> R {
        let lent = self.here().lend().expect("the loop is lent once, and while it is there");
        // `f` has the loop, and is not to be left in the middle.
        let _thread = Running::thread();
        // SAFETY: of the loop that has called the fiber, and is suspended in that; and lent to no
        // other code before `lent` is dropped.
        f(unsafe { lent.at.cast().as_mut() })
    }

    /// The control block of the fiber.
    ///
    /// # Panics
    ///
    /// If it is not the caller.
    fn here(&self) -> &Control {
        let is_here = external::running() == Some(self.0.cast());
        assert!(is_here, "a fiber of an event loop is asked by itself, and not inside of `with`");
        // SAFETY: it runs, and so it is there.
        unsafe { self.0.as_ref() }
    }

    /// Lets the loop go on; returns when the fiber is called again. While it unwinds, returns at
    /// once: code on another stack would be taken to panic, too.
    fn suspend(&self, step: Step) {
        let control = self.here();
        if thread::panicking() {
            return;
        }
        if !control.cancelled.get() {
            // SAFETY: it is what runs here, and does not unwind.
            unsafe { control.leave(Said::Steps(step)) };
        }
        if control.cancelled.get() {
            resume_unwind(Box::new(Unwound));
        }
    }
}

impl fmt::Debug for Fibers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fibers").field(&self.0.counts()).finish()
    }
}

impl fmt::Debug for Fiber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fiber")
    }
}

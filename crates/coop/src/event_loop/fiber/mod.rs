//! Events that are fibers: sequential code that is suspended when its budget ends.
//!
//! | file | content |
//! |---|---|
//! | `mod` | how a program creates fibers, and the handle of a fiber |
//! | `steps` | a fiber as a callback: how it begins, continues and ends |
//! | `control` | what it shares with its thread, and with the threads that wake it |

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

/// Creates events that are fibers, each with its own stack. Clones share the stacks, and may be
/// used for all loops and on all threads.
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
/// A fiber that waits by `antiphon`, for a lock, a channel, a latch or a task, is suspended, and
/// its loop goes on; the same holds for [`fiber::sleep`](antiphon::fiber::sleep) and
/// [`fiber::block_on`](antiphon::fiber::block_on). A call that blocks the thread of other
/// [fibers](antiphon::fiber) blocks the loop; so do [sockets](antiphon::net).
///
/// A fiber stays on the thread of its loop, is called like other work, by its importance, and each
/// step counts as a callback. A panic comes out of `run`.
///
/// # Dropping and cancelling
///
/// When the loop is dropped or the fiber is [cancelled](super::EventLoop::cancel), the fiber is
/// unwound from where it is suspended, as by a panic that prints nothing; it may catch that, and is
/// unwound again by its next call. A fiber that waits for a lock or the like cannot be unwound
/// before that wait is over: it is unwound at its next suspension by [`Fiber`], or runs to its end;
/// and a loop that is dropped runs until then. In a program that aborts on panics, its stack is
/// leaked instead.
#[derive(Clone)]
pub struct Fibers(Stacks);

/// The handle by which the closure of a fiber acts on itself. Use by other code panics.
pub struct Fiber(NonNull<Control>);

impl Fibers {
    /// Creates a source of fibers with stacks of `stack_bytes` bytes each; see
    /// [`STACK_BYTES`](antiphon::fiber::STACK_BYTES).
    ///
    /// # Errors
    ///
    /// If no stack of that size can be allocated, or the process has another fiber runtime.
    ///
    /// # Safety
    ///
    /// The same as for [the fibers of a pool](antiphon::pool::Builder::fibers): their code must not
    /// wait by `antiphon` or by [`Fiber`] while it initialises a thread-local, nor in a scope that
    /// sets a thread-local and restores its former value at the end. Otherwise other fibers of the
    /// thread run in between, and a value may be dropped that another fiber has borrowed.
    pub unsafe fn new(stack_bytes: usize) -> io::Result<Self> {
        external::stacks(stack_bytes).map(Self)
    }

    /// Creates an event whose closure is a fiber, with that importance at first. It has a stack
    /// from its first call to its end; if no stack is free, it begins when one is given back.
    ///
    /// # Panics
    ///
    /// The loop's `run` panics if no stack can be allocated, and none is in use that could be given
    /// back.
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
    /// Lets other events be called if its time is over or a more important event is ready. The time
    /// between two checkpoints is how late those events may be. Costs a reading of the clock.
    pub fn checkpoint(&self) {
        if self.is_over() {
            self.more(self.here().importance.get());
        }
    }

    /// Returns whether a [`checkpoint`](Self::checkpoint) would let other events be called.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.with(|context| context.is_over())
    }

    /// Continues with that importance, and lets events be called that are due, or as important.
    pub fn more(&self, importance: u64) {
        self.here().importance.set(importance);
        self.suspend(Step::More(importance));
    }

    /// Waits until that time. The fiber then continues as a timer of that release.
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

    /// Waits until its source, if it is [watched](super::EventLoop::watch) for one, reports
    /// something, and returns everything reported since the last call. Without a source, it waits
    /// until it is [woken](super::EventLoop::wake) meanwhile. A wake that comes while the fiber is
    /// suspended for another reason ends no wait, so a fiber that waits for a condition must check
    /// it right before it waits. May return spuriously; while the fiber unwinds, returns at once.
    pub fn wait(&self) -> Ready {
        let ready = &self.here().ready;
        if ready.get() == Ready::default() {
            self.suspend(Step::Asleep);
        }
        ready.take()
    }

    /// Calls `f` with the loop; a wait inside `f` blocks the thread.
    ///
    /// # Panics
    ///
    /// If called inside itself, or while the fiber is unwound, because its loop has released it.
    pub fn with<R>(&self, f: impl FnOnce(&mut Context<'_>) -> R) -> R {
        let lent = self.here().lend().expect("the loop is lent once, and while it is there");
        // `f` has the loop, and must not be suspended in the middle.
        let _thread = Running::thread();
        // SAFETY: the context belongs to the loop that has called the fiber and waits for its
        // return; it is lent to no other code before `lent` is dropped.
        f(unsafe { lent.at.cast().as_mut() })
    }

    /// Returns the control block of the fiber.
    ///
    /// # Panics
    ///
    /// If the fiber is not the caller.
    fn here(&self) -> &Control {
        let is_here = external::running() == Some(self.0.cast());
        assert!(is_here, "a fiber of an event loop is asked by itself, and not inside of `with`");
        // SAFETY: the fiber runs, so its control block exists.
        unsafe { self.0.as_ref() }
    }

    /// Switches to the loop; returns when the fiber is called again. While it unwinds, returns at
    /// once: code on another stack would also count as panicking.
    fn suspend(&self, step: Step) {
        let control = self.here();
        if thread::panicking() {
            return;
        }
        if !control.cancelled.get() {
            // SAFETY: the fiber is the running code, and does not unwind.
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

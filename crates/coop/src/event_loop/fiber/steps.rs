//! A fiber as a callback: how it begins, continues and ends.

use std::any::Any;
use std::fmt;
use std::mem;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::thread;

use antiphon::fiber::external::{ForksKept, Running};
use antiphon_linux::stack::{Stack, Stacks};
use antiphon_runtime::event_loop::{Callback, Step};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::super::{Context, Files};
use super::Fiber;
use super::control::{Control, Said, Unwound, until};

/// The event of a [fiber](super::Fibers), in the form that a loop calls.
pub struct Suspendable<F>(State<F>);

enum State<F> {
    Unmade { stacks: Stacks, importance: u64, body: F },
    Begun(Begun),
    Over,
}

/// A fiber that has begun, and has a stack.
struct Begun {
    /// Points into a box that this value owns.
    control: NonNull<Control>,
    coroutine: Option<Switch>,
}

/// Result of a closure: its return or its panic.
type Ended = Result<(), Box<dyn Any + Send>>;
type Switch = Coroutine<(), Said, Ended, Whole>;

/// A stack with its guard.
struct Whole(Stack);

// SAFETY: the lowest page is a guard, and the owner alone uses the rest of the stack.
unsafe impl corosensei::stack::Stack for Whole {
    fn base(&self) -> NonZeroUsize {
        self.0.base()
    }

    fn limit(&self) -> NonZeroUsize {
        self.0.limit()
    }
}

// SAFETY: only the loop begins it, and the loop never gives it to another thread afterwards; before
// that, it consists of `Send` values.
unsafe impl<F: Send> Send for Suspendable<F> {}

/// Time between two attempts to get a free stack, when all are taken, in nanoseconds.
const AGAIN_NS: u64 = 1_000_000;

impl<F: FnOnce(&Fiber) + 'static> Suspendable<F> {
    pub(super) fn new(stacks: Stacks, importance: u64, body: F) -> Self {
        Self(State::Unmade { stacks, importance, body })
    }

    /// Gives the fiber a stack. If none is free, returns when to try again.
    fn begin(&mut self, context: &Context<'_>) -> Result<(), Step> {
        let State::Unmade { stacks, .. } = &self.0 else { return Ok(()) };
        let stack = stacks.take().map_err(|error| {
            let counts = stacks.counts();
            assert!(counts.made > counts.hot + counts.cold, "a fiber of an event loop: {error}");
            Step::At(context.now_ns().saturating_add(AGAIN_NS))
        })?;
        let State::Unmade { importance, body, .. } = mem::replace(&mut self.0, State::Over) else {
            return Ok(());
        };
        let control = Box::new(Control::new(context.handle(), context.id(), importance));
        let control = NonNull::from(Box::leak(control));
        let coroutine = Switch::with_stack(Whole(stack), move |yielder, ()| {
            event_fiber_begins_here(control, yielder, body)
        });
        self.0 = State::Begun(Begun { control, coroutine: Some(coroutine) });
        Ok(())
    }
}

impl<F: FnOnce(&Fiber) + 'static> Callback<Files> for Suspendable<F> {
    fn call(&mut self, context: &mut Context<'_>) -> Step {
        if let Err(later) = self.begin(context) {
            return later;
        }
        let State::Begun(begun) = &mut self.0 else { return Step::Done };
        match begun.step(context) {
            Ok(step) => step,
            Err(ended) => {
                self.0 = State::Over;
                ended.map_or_else(|panic| resume_unwind(panic), |()| Step::Done)
            }
        }
    }

    fn cancel(&mut self) -> bool {
        let State::Begun(begun) = &self.0 else { return true };
        begun.control().cancelled.set(true);
        begun.control().sleep.get().is_none()
    }
}

impl Begun {
    fn control(&self) -> &Control {
        // SAFETY: the control block is in a box that only `drop` frees.
        unsafe { self.control.as_ref() }
    }

    /// Runs the fiber until it is suspended, and returns how to call it next; an error if it has
    /// ended.
    fn step(&mut self, context: &mut Context<'_>) -> Result<Step, Ended> {
        let control = self.control();
        control.ready.set(control.ready.get() | context.ready());
        if let Some(step) = control.still_waits() {
            return Ok(step);
        }
        loop {
            self.control().context.set(Some(NonNull::from(&mut *context).cast()));
            let said = self.switch();
            self.control().context.set(None);
            match said {
                CoroutineResult::Return(ended) => return Err(ended),
                CoroutineResult::Yield(Said::Steps(step)) => return Ok(step),
                CoroutineResult::Yield(Said::Sleeps) => {}
            }
            let sleep = self.control().sleep.get().expect("it is suspended in one");
            // Before the commit: after it, other threads may resume the fiber.
            let step = until(&sleep);
            // SAFETY: the fiber was switched away from, and each sleep is committed once.
            if unsafe { sleep.commit() } {
                return Ok(step);
            }
            self.control().sleep.set(None);
        }
    }

    /// Switches to its stack; returns when the fiber switches away.
    fn switch(&mut self) -> CoroutineResult<Said, Ended> {
        // Forks of the caller are not the fiber's.
        let _kept = ForksKept::now();
        // SAFETY: the fiber is switched to here, and back before this is dropped. Its control block
        // lives until it ends.
        let _here = unsafe { Running::fiber(self.control.cast()) };
        self.coroutine.as_mut().expect("it has not ended").resume(())
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let control = self.control();
        control.cancelled.set(true);
        control.ends.set(true);
        let is_left = self.coroutine.as_ref().is_some_and(|coroutine| !coroutine.done());
        if is_left && (control.sleep.get().is_some() || cfg!(panic = "abort")) {
            // In the middle of a wait that is not over, other threads have the addresses of values
            // on its stack; or the stack cannot be unwound.
            mem::forget(self.coroutine.take());
            return;
        }
        let ended = if is_left { Some(self.switch()) } else { None };
        drop(self.coroutine.take());
        // SAFETY: `Box::leak` made it, LOOPED-1, and no other code uses it any more.
        drop(unsafe { Box::from_raw(self.control.as_ptr()) });
        // If the caller unwinds, the panic was printed, and is not resumed.
        if let Some(CoroutineResult::Return(Err(panic))) = ended
            && !thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}

/// The code that runs on a stack. Backtraces find the fiber's frames by this name.
#[inline(never)]
fn event_fiber_begins_here(
    control: NonNull<Control>,
    yielder: &Yielder<(), Said>,
    body: impl FnOnce(&Fiber),
) -> Ended {
    // SAFETY: it is freed when this has ended.
    unsafe { control.as_ref() }.yielder.set(yielder);
    let ended = catch_unwind(AssertUnwindSafe(|| body(&Fiber(control))));
    match ended {
        Err(panic) if panic.is::<Unwound>() => Ok(()),
        ended => ended,
    }
}

impl<F> fmt::Debug for Suspendable<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Suspendable")
    }
}

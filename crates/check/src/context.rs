//! The current execution of the calling OS thread.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

use crate::execution::Execution;
use crate::fiber;
use crate::model::FailureKind;
use crate::op::{Op, Outcome};
use crate::step::Step;

thread_local! {
    static EXECUTION: RefCell<Option<Execution>> = const { RefCell::new(None) };
    /// The message of a panic inside a visible operation.
    static INSIDE: RefCell<String> = const { RefCell::new(String::new()) };
    /// Whether panics are findings.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Unwinds a setup or final check whose execution has ended.
struct Halt;

/// A panic of the checker itself leaves the model here: it was silent so far, and is reported when
/// this is dropped.
pub(crate) struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        if QUIET.replace(false) {
            EXECUTION.take();
            eprintln!("{}", INSIDE.take());
        }
    }
}

/// Makes `execution` current on the calling OS thread, until [`leave`].
pub(crate) fn enter(execution: Execution) -> Entered {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(
            move |info| {
                if QUIET.get() { note_panic(info) } else { previous(info) }
            },
        ));
    });
    EXECUTION.with_borrow_mut(|slot| {
        assert!(slot.is_none(), "a model can't be run inside a model");
        *slot = Some(execution);
    });
    QUIET.set(true);
    Entered
}

/// Ends and returns the current execution.
pub(crate) fn leave() -> Execution {
    QUIET.set(false);
    EXECUTION.take().expect("an execution was entered")
}

/// Records a panic of the program under test as a failure of its execution. It is recorded before
/// anything unwinds, so that destructors don't continue the execution.
fn note_panic(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    if payload.is::<Halt>() {
        return;
    }
    let text = (payload.downcast_ref::<&str>().copied())
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic");
    let place = info.location().map(|at| format!(" ({}:{})", at.file(), at.line()));
    let what = format!("{text}{}", place.unwrap_or_default());
    INSIDE.set(what.clone());
    // Inside a visible operation it can't be recorded yet; `guarded` does that.
    let _ = try_with(|execution| execution.fail(FailureKind::Panic, what));
}

/// Runs a part of the program under test; its panics become the execution's failure.
pub(crate) fn guarded(part: impl FnOnce()) {
    if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(part))
        && !payload.is::<Halt>()
    {
        with(|execution| execution.fail(FailureKind::Panic, INSIDE.take()));
    }
}

/// Runs `look` on the current execution.
///
/// # Panics
///
/// If there is no execution: modelled state can only be used in a model.
pub(crate) fn with<R>(look: impl FnOnce(&mut Execution) -> R) -> R {
    try_with(look).expect("`Check` words can only be used while a model runs")
}

/// Runs `look` on the current execution, if there is one and it is not borrowed.
pub(crate) fn try_with<R>(look: impl FnOnce(&mut Execution) -> R) -> Option<R> {
    let look = |slot: &RefCell<Option<Execution>>| {
        slot.try_borrow_mut().ok().and_then(|mut slot| slot.as_mut().map(look))
    };
    EXECUTION.try_with(look).ok().flatten()
}

/// Performs a visible operation, however long it must wait.
pub(crate) fn perform(op: &Op) -> Outcome {
    if std::thread::panicking() {
        // A destructor runs. The execution ends here, so that it never waits in the middle of a
        // panic.
        with(|execution| execution.fail(FailureKind::Panic, INSIDE.with_borrow(String::clone)));
    }
    loop {
        match with(|execution| execution.step(op)) {
            Step::Done(outcome) => return outcome,
            Step::Stop => stop(),
            Step::Wait => {
                if !fiber::suspend() {
                    with(|execution| {
                        let what = "the setup or the final check would wait for ever".to_owned();
                        execution.fail(FailureKind::Deadlock, what);
                    });
                    stop();
                }
            }
        }
    }
}

/// Stops the caller for good.
pub(crate) fn stop() -> ! {
    while fiber::suspend() {}
    panic::panic_any(Halt)
}

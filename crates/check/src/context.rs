//! The execution that the calling OS thread is in.

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

/// A panic of the checker itself leaves the model here: it was kept quiet before, and is reported
/// now.
pub(crate) struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        if QUIET.replace(false) {
            EXECUTION.take();
            eprintln!("{}", INSIDE.take());
        }
    }
}

/// Makes `execution` the calling OS thread's, until [`leave`].
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

/// Takes the execution back.
pub(crate) fn leave() -> Execution {
    QUIET.set(false);
    EXECUTION.take().expect("an execution was entered")
}

/// A panic of the program under test is a finding of the execution that it is in. It is noted
/// before anything unwinds, so that destructors don't go on with the execution.
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
    // Inside of a visible operation it can't be noted yet; `guarded` does it.
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

/// Looks at the execution.
///
/// # Panics
///
/// If there is none: modelled state can only be used in a model.
pub(crate) fn with<R>(look: impl FnOnce(&mut Execution) -> R) -> R {
    try_with(look).expect("`Check` words can only be used while a model runs")
}

/// Accesses the execution, if there is one and it is not borrowed already.
pub(crate) fn try_with<R>(look: impl FnOnce(&mut Execution) -> R) -> Option<R> {
    let look = |slot: &RefCell<Option<Execution>>| {
        slot.try_borrow_mut().ok().and_then(|mut slot| slot.as_mut().map(look))
    };
    EXECUTION.try_with(look).ok().flatten()
}

/// Does a visible operation, however long it has to wait.
pub(crate) fn perform(op: &Op) -> Outcome {
    if std::thread::panicking() {
        // A destructor. The execution ends here, so that it never waits in the middle of a panic.
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

/// Never lets the caller go on.
pub(crate) fn stop() -> ! {
    while fiber::suspend() {}
    panic::panic_any(Halt)
}

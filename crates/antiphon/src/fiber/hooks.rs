//! How waits of fibers come here: the table that Linux asks who waits, and what is to be done.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::thread;

use antiphon_linux::fiber::{AlreadyInstalled, Hooks, Sleep, install};

use super::control::{Fiber, Said};
use super::host;
use crate::pool::Notes;

static HOOKS: Hooks = Hooks { current, suspend, resume };

thread_local! {
    static CURRENT: Cell<Option<Fiber>> = const { Cell::new(None) };
}

/// Has waits of fibers come here, for good.
///
/// # Errors
///
/// If they go elsewhere: there is another fiber runtime in this process.
pub(super) fn installed() -> Result<(), AlreadyInstalled> {
    install(&HOOKS)
}

/// Which fiber runs on the calling thread from now on.
#[inline]
pub(super) fn set_current(fiber: Option<Fiber>) {
    CURRENT.set(fiber);
}

/// Whether the caller is a fiber of ours.
pub(crate) fn current_is_ours() -> bool {
    CURRENT.get().is_some()
}

/// Tells the task of the calling fiber from others, those that have ended too.
pub(crate) fn identity() -> Option<NonZeroUsize> {
    CURRENT.get().map(Fiber::identity)
}

/// Runs `ask` as the thread does that is under the caller: it waits as that.
#[inline]
pub(crate) fn not_here<R>(ask: impl FnOnce() -> R) -> R {
    let _back = CURRENT.get().map(|fiber| {
        CURRENT.set(None);
        Back(fiber)
    });
    ask()
}

struct Back(Fiber);

impl Drop for Back {
    fn drop(&mut self) {
        CURRENT.set(Some(self.0));
    }
}

/// Lets others run. `false`: the caller is no fiber; or it unwinds, and nobody may run on its
/// thread while that is taken to panic.
///
/// Inline: a `ret` behind a switch is one that the processor has not seen the `call` of, and it
/// predicts the next wrongly, too.
#[inline(always)]
pub(super) fn leave(said: Said) -> bool {
    let Some(fiber) = CURRENT.get().filter(|_| !thread::panicking()) else { return false };
    // What the others fork is theirs.
    let _notes = Notes::set_aside();
    // SAFETY: it is what runs here, and does not unwind.
    unsafe { fiber.leave(said) };
    true
}

fn current() -> Option<u64> {
    CURRENT.get().map(Fiber::handle)
}

fn suspend(handle: u64, sleep: Sleep) {
    if thread::panicking() {
        // SAFETY: the caller is that fiber, and so it is there.
        return host::wait_here(unsafe { Fiber::of_handle(handle) }, sleep);
    }
    if let Some(fiber) = CURRENT.get() {
        fiber.get().sleep.set(Some(sleep));
        leave(Said::Sleeps);
    }
}

fn resume(handle: u64) {
    // SAFETY: the fiber is suspended in a wait: that is when this is called, once.
    unsafe { Fiber::post(handle) };
}

//! How waits of fibers come here: the table that Linux asks which fiber or thread waits, and how it
//! is to wait.
//!
//! | handle | the waiter |
//! |---|---|
//! | the address of a control block | a fiber |
//! | that of a bell, + 1 | a thread that rests while its fibers wait for files |
//! | that of a control block, + 2 | a fiber of an [event loop](crate::event_loop) |
//!
//! So whatever such a thread rests on, it polls files meanwhile, and a thread that wakes it ends
//! the poll.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering::SeqCst, compiler_fence};
use std::thread;

use antiphon_linux::fiber::{AlreadyInstalled, Hooks, Sleep, install};
use antiphon_linux::glance::own_stack;
use antiphon_linux::notify::EventFd;
use antiphon_platform::{Notify as _, Ticket};

use super::clocked;
use super::control::{Fiber, Said};
use super::host;
use crate::budget::{self, Fibers};
use crate::event_loop::Looped;
use crate::local;
use crate::worker::Notes;

static HOOKS: Hooks = Hooks { current, suspend, resume };

thread_local! {
    /// The bounds of the thread's stack.
    static STACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// The file by which the thread rests, if not by a word.
    static RESTS: Cell<Option<&'static EventFd>> = const { Cell::new(None) };
}

const BELL: u64 = 1;
const _: () = assert!(align_of::<EventFd>() > BELL as usize);
const LOOPED: u64 = 2;
const _: () = assert!(align_of::<Looped>() > (BELL | LOOPED) as usize);

/// Directs waits of fibers here, for good.
///
/// # Errors
///
/// If they go elsewhere: there is another fiber runtime in this process.
pub(super) fn installed() -> Result<(), AlreadyInstalled> {
    install(&HOOKS)?;
    budget::register(Fibers { turn: host::turn, yield_now: others_go_on });
    Ok(())
}

fn others_go_on() {
    if !leave(Said::Yields { soft: false }) {
        thread::yield_now();
    }
}

/// Sets the fiber that runs on the calling thread from now on. HOST-1: a signal handler sees all
/// writes from before.
#[inline(always)]
pub(super) fn set_current(fiber: Option<Fiber>) {
    compiler_fence(SeqCst);
    local::with(|own| own.fiber.set(fiber.map(Fiber::address)));
    compiler_fence(SeqCst);
}

/// The fiber that the caller is.
#[inline(always)]
pub(super) fn current_fiber() -> Option<Fiber> {
    // SAFETY: `set_current` has put it there, and it runs.
    local::with(|own| own.fiber.get()).map(|fiber| unsafe { Fiber::at(fiber) })
}

/// Returns the end of the stack that contains `address`: the stack of the fiber that runs on the
/// calling thread, or the thread's own. 0 if neither contains it. May be called in a signal
/// handler: by FIBER-1 it reads only what belongs to its thread.
pub(crate) fn top_of(address: usize) -> usize {
    let of_fiber = current_fiber().and_then(|fiber| fiber.top_of(address));
    let (low, high) = STACK.get();
    of_fiber.unwrap_or(if (low..high).contains(&address) { high } else { 0 })
}

/// The calling thread may be [looked at](antiphon_linux::glance).
pub(crate) fn show_stack() {
    STACK.set(own_stack().unwrap_or((0, 0)));
}

/// Whether the caller is a fiber of ours.
pub(crate) fn current_is_ours() -> bool {
    current_fiber().is_some()
}

/// Tells the task of the calling fiber from others, those that have ended too.
pub(crate) fn identity() -> Option<NonZeroUsize> {
    match local::with(|own| own.looped.get()) {
        // SAFETY: it runs, and so it is there.
        Some(looped) => Some(unsafe { looped.cast::<Looped>().as_ref() }.identity()),
        None => current_fiber().map(Fiber::identity),
    }
}

/// Whether the caller is a fiber of an event loop.
pub(super) fn current_is_looped() -> bool {
    local::with(|own| own.looped.get().is_some())
}

/// Runs `ask` as the thread under the calling fiber: a wait in it is a wait of that thread.
#[inline]
pub(crate) fn not_here<R>(own: &local::Thread, ask: impl FnOnce() -> R) -> R {
    let _back = own.fiber.take().map(|fiber| Back(own, fiber));
    ask()
}

/// Runs `rest`, in which the calling thread waits as a fiber would, by this bell.
pub(super) fn resting<R>(bell: &'static EventFd, rest: impl FnOnce() -> R) -> R {
    struct Over;

    impl Drop for Over {
        fn drop(&mut self) {
            RESTS.set(None);
        }
    }

    RESTS.set(Some(bell));
    let _over = Over;
    rest()
}

struct Back<'a>(&'a local::Thread, NonNull<()>);

impl Drop for Back<'_> {
    fn drop(&mut self) {
        self.0.fiber.set(Some(self.1));
    }
}

/// Lets others run. `false`: the caller is no fiber; or it unwinds, and no other code may run on
/// its thread while that is taken to panic.
///
/// Inline: a `ret` behind a switch is one that the processor has not seen the `call` of, and it
/// predicts the next wrongly, too.
#[inline(always)]
pub(super) fn leave(said: Said) -> bool {
    let Some(fiber) = current_fiber().filter(|_| !thread::panicking()) else { return false };
    // SAFETY: it is what runs here, and does not unwind.
    unsafe { go_away(fiber, said) };
    true
}

/// As [`leave`].
///
/// # Safety
///
/// The caller is that fiber, and does not unwind.
#[inline(always)]
unsafe fn go_away(fiber: Fiber, said: Said) {
    // Forks of the others are theirs.
    let _notes = Notes::set_aside();
    // SAFETY: the caller's.
    unsafe {
        match fiber.get().clocked.get() {
            Some(clocked) if clocked::is_told(fiber, clocked, said) => {
                clocked::leave(fiber, clocked, said);
            }
            Some(clocked) => {
                fiber.leave(said);
                if matches!(said, Said::Sleeps) {
                    clocked::has_gone_on(clocked);
                }
            }
            None => fiber.leave(said),
        }
    }
}

fn current() -> Option<u64> {
    if let Some(looped) = local::with(|own| own.looped.get()) {
        return Some(looped.as_ptr().expose_provenance() as u64 | LOOPED);
    }
    let fiber = current_fiber().map(Fiber::handle);
    fiber.or_else(|| RESTS.get().map(|bell| ptr::from_ref(bell).expose_provenance() as u64 + BELL))
}

/// The fiber of an event loop that has that handle.
fn looped(handle: u64) -> NonNull<Looped> {
    let control = ptr::with_exposed_provenance_mut((handle & !LOOPED) as usize);
    NonNull::new(control).expect("an address")
}

fn suspend(handle: u64, sleep: Sleep) {
    if handle & LOOPED != 0 {
        // SAFETY: the caller is that fiber, and so it is there.
        return unsafe { looped(handle).as_ref() }.sleeps(sleep);
    }
    if handle & BELL != 0 {
        // A signal handler that waits meanwhile does so as a thread: the reactor is in use.
        let bell = RESTS.take();
        host::rest(sleep);
        return RESTS.set(bell);
    }
    if thread::panicking() {
        // SAFETY: the caller is that fiber, and so it is there.
        return host::wait_here(unsafe { Fiber::of_handle(handle) }, sleep);
    }
    if let Some(fiber) = current_fiber() {
        fiber.get().sleep.set(Some(sleep));
        // SAFETY: as above, and it does not unwind.
        unsafe { go_away(fiber, Said::Sleeps) };
    }
}

fn resume(handle: u64) {
    if handle & LOOPED != 0 {
        // SAFETY: the fiber waits: that is when this is called, once.
        return unsafe { Looped::resume(looped(handle)) };
    }
    if handle & BELL != 0 {
        let bell = ptr::with_exposed_provenance::<EventFd>((handle - BELL) as usize);
        // SAFETY: the handle of `current`; FILE-4 and FILE-6, it is never freed.
        return unsafe { &*bell }.notify(Ticket::MIN);
    }
    // SAFETY: the fiber is suspended in a wait: that is when this is called, once.
    unsafe {
        if !host::wake_beside(handle) {
            Fiber::post(handle);
        }
    }
}

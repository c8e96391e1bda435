//! The hooks of the Linux back end for waits of fibers: which fiber or thread waits, and how it
//! waits.
//!
//! | handle | the waiter |
//! |---|---|
//! | the address of a control block | a fiber |
//! | the address of a bell, + 1 | a thread that rests while its fibers wait for files |
//! | the address of a header, + 2 | an [external](super::external) fiber, as of an event loop |
//!
//! So a resting thread polls files in all its waits, and a thread that wakes it ends the poll.

use std::io;
use std::num::NonZeroUsize;
use std::ptr::{self, NonNull};
use std::thread;

use antiphon_linux::fiber::{AlreadyInstalled, Hooks, Sleep, install};
use antiphon_linux::notify::EventFd;
use antiphon_linux::stack::Stacks;
use antiphon_platform::{Notify as _, Ticket};

use super::control::{Fiber, Said};
use super::current::{self, current_fiber};
use super::external::{self, Header};
use super::host;
use super::host::timing;
use crate::budget::{self, Fibers};
use crate::worker::Notes;

static HOOKS: Hooks = Hooks { current, suspend, resume, give_way };

const BELL: u64 = 1;
const _: () = assert!(align_of::<EventFd>() > BELL as usize);
const EXTERNAL: u64 = 2;
const _: () = assert!(align_of::<Header>() > (BELL | EXTERNAL) as usize);

/// The functions that the budget needs from fibers.
static FIBERS: Fibers = Fibers { turn: host::turn, yield_now: others_go_on };

/// Installs the hooks for the life of the process.
///
/// # Errors
///
/// If another fiber runtime in this process has installed its own.
fn installed() -> Result<(), AlreadyInstalled> {
    install(&HOOKS)?;
    budget::register(&FIBERS);
    Ok(())
}

fn others_go_on() {
    if !leave(Said::Yields { soft: false }) {
        thread::yield_now();
    }
}

/// Returns whether the caller stays on its thread until it returns: so for a thread, and for a
/// fiber of a pool whose fibers don't move.
pub(crate) fn stays() -> bool {
    external::running().is_none() && !host::may_move()
}

fn give_way() -> bool {
    host::has_ready() && leave(Said::Yields { soft: false })
}

/// Creates stacks for the fibers of a pool, of `bytes` bytes each.
///
/// # Errors
///
/// If stacks of that size can't be made, or there is another fiber runtime in the process.
pub(crate) fn stacks(bytes: usize) -> io::Result<Stacks> {
    let stacks = Stacks::new(bytes).map_err(io::Error::other)?;
    // Try one: if there were no stack, tasks would not be fibers, and the caller would get no
    // error.
    drop(stacks.take().map_err(io::Error::other)?);
    installed().map_err(|_| {
        io::Error::other("another fiber runtime has its waits go through antiphon's locks")
    })?;
    Ok(stacks)
}

/// Returns the identity of the calling fiber's task, unique also among tasks that have ended.
pub(crate) fn identity() -> Option<NonZeroUsize> {
    match external::running() {
        // SAFETY: the fiber runs, and so its header exists.
        Some(external) => Some(unsafe { external.as_ref() }.identity()),
        None => current_fiber().map(Fiber::identity),
    }
}

/// Lets others run. Returns `false` if the caller is not a fiber; or if it unwinds, because no
/// other code may run on its thread while `std` considers the thread to be panicking.
///
/// Inline: the processor has not seen the `call` of a `ret` behind a switch, and then mispredicts
/// the next `ret`, too.
#[inline(always)]
pub(super) fn leave(said: Said) -> bool {
    let Some(fiber) = current_fiber().filter(|_| !thread::panicking()) else { return false };
    // SAFETY: the fiber runs here, and does not unwind.
    unsafe { go_away(fiber, said) };
    true
}

/// Switches away from `fiber`, as [`leave`] does.
///
/// # Safety
///
/// The caller is that fiber, and does not unwind.
#[inline(always)]
unsafe fn go_away(fiber: Fiber, said: Said) {
    // Other fibers must not see this fiber's forks.
    let _notes = Notes::set_aside();
    // SAFETY: promised by the caller.
    unsafe {
        match fiber.get().clocked.get() {
            Some(clocked) if timing::is_told(fiber, clocked, said) => {
                timing::leave(fiber, clocked, said);
            }
            Some(clocked) => {
                fiber.leave(said);
                if matches!(said, Said::Sleeps) {
                    timing::has_gone_on(clocked);
                }
            }
            None => fiber.leave(said),
        }
    }
}

fn current() -> Option<u64> {
    if let Some(external) = external::running() {
        return Some(external.as_ptr().expose_provenance() as u64 | EXTERNAL);
    }
    let fiber = current_fiber().map(Fiber::handle);
    fiber.or_else(|| {
        current::rests_by().map(|bell| ptr::from_ref(bell).expose_provenance() as u64 + BELL)
    })
}

/// Returns the external fiber with that handle.
fn external(handle: u64) -> NonNull<Header> {
    let control = ptr::with_exposed_provenance_mut((handle & !EXTERNAL) as usize);
    NonNull::new(control).expect("an address")
}

fn suspend(handle: u64, sleep: Sleep) {
    if handle & EXTERNAL != 0 {
        let fiber = external(handle);
        // SAFETY: the caller is that fiber, and so it exists.
        return unsafe { (fiber.as_ref().table().sleeps)(fiber, sleep) };
    }
    if handle & BELL != 0 {
        // A signal handler that waits meanwhile waits as a thread: the reactor is in use.
        return current::not_resting(|| host::rest(sleep));
    }
    if thread::panicking() {
        // SAFETY: the caller is that fiber, and so it exists.
        return host::wait_here(unsafe { Fiber::of_handle(handle) }, sleep);
    }
    if let Some(fiber) = current_fiber() {
        fiber.get().sleep.set(Some(sleep));
        // SAFETY: the caller is that fiber, and does not unwind.
        unsafe { go_away(fiber, Said::Sleeps) };
    }
}

fn resume(handle: u64) {
    if handle & EXTERNAL != 0 {
        let fiber = external(handle);
        // SAFETY: this is called once, while the fiber waits. So the fiber exists.
        return unsafe { (fiber.as_ref().table().resume)(fiber) };
    }
    if handle & BELL != 0 {
        let bell = ptr::with_exposed_provenance::<EventFd>((handle - BELL) as usize);
        // SAFETY: the handle comes from `current`; the bell is never freed (FILE-4 and FILE-6).
        return unsafe { &*bell }.notify(Ticket::MIN);
    }
    // SAFETY: this is called once, while the fiber is suspended in a wait.
    unsafe {
        if !host::wake_beside(handle) {
            Fiber::post(handle);
        }
    }
}

//! How waits of fibers come here: the table that Linux asks which fiber or thread waits, and how it
//! is to wait.
//!
//! | handle | the waiter |
//! |---|---|
//! | the address of a control block | a fiber |
//! | that of a bell, + 1 | a thread that rests while its fibers wait for files |
//! | that of a control block, + 2 | an [external](super::external) fiber, as of an event loop |
//!
//! So whatever such a thread rests on, it polls files meanwhile, and a thread that wakes it ends
//! the poll.

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

/// The functions that the budget of ready steps needs from fibers.
static FIBERS: Fibers = Fibers { turn: host::turn, yield_now: others_go_on };

/// Directs waits of fibers here, for good.
///
/// # Errors
///
/// If they go elsewhere: there is another fiber runtime in this process.
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

/// Whether the caller stays on its thread until it returns: a thread does, and a fiber of a pool
/// whose fibers don't move.
pub(crate) fn stays() -> bool {
    external::running().is_none() && !host::may_move()
}

fn give_way() -> bool {
    host::has_ready() && leave(Said::Yields { soft: false })
}

/// Stacks for the fibers of a pool, of `bytes` bytes each.
///
/// # Errors
///
/// If there can't be any of that size; or there is another fiber runtime in the process.
pub(crate) fn stacks(bytes: usize) -> io::Result<Stacks> {
    let stacks = Stacks::new(bytes).map_err(io::Error::other)?;
    // At least one: with none, tasks would not be fibers, and the caller would get no error.
    drop(stacks.take().map_err(io::Error::other)?);
    installed().map_err(|_| {
        io::Error::other("another fiber runtime has its waits go through antiphon's locks")
    })?;
    Ok(stacks)
}

/// Tells the task of the calling fiber from others, those that have ended too.
pub(crate) fn identity() -> Option<NonZeroUsize> {
    match external::running() {
        // SAFETY: it runs, and so it is there.
        Some(external) => Some(unsafe { external.as_ref() }.identity()),
        None => current_fiber().map(Fiber::identity),
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

/// The external fiber that has that handle.
fn external(handle: u64) -> NonNull<Header> {
    let control = ptr::with_exposed_provenance_mut((handle & !EXTERNAL) as usize);
    NonNull::new(control).expect("an address")
}

fn suspend(handle: u64, sleep: Sleep) {
    if handle & EXTERNAL != 0 {
        let fiber = external(handle);
        // SAFETY: the caller is that fiber, and so it is there.
        return unsafe { (fiber.as_ref().table().sleeps)(fiber, sleep) };
    }
    if handle & BELL != 0 {
        // A signal handler that waits meanwhile does so as a thread: the reactor is in use.
        return current::not_resting(|| host::rest(sleep));
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
    if handle & EXTERNAL != 0 {
        let fiber = external(handle);
        // SAFETY: the fiber waits: that is when this is called, once. So it is there until then.
        return unsafe { (fiber.as_ref().table().resume)(fiber) };
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

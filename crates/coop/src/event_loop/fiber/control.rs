//! The state of a fiber that a loop shares with its thread, and with those that end its waits.
//!
//! ```text
//!            call                       checkpoint, sleeps until, …   ┌──────────────┐
//!  ┌───────┐ ─────► ┌──────────────┐ ───────────────────────────────► │ between steps│
//!  │ event │        │ runs: looped │ ◄─────────────────────────────── └──────────────┘
//!  └───────┘        └──────┬───▲───┘  call
//!                waits for │   │ call, when it was resumed, or is due
//!                   a lock ▼   │
//!                      ┌───────┴───┐
//!                      │ suspended │
//!                      └───────────┘
//! ```
//!
//! - LOOPED-1: a control block is of the thread of its loop, but for `handle`, which stays as it
//!   is, and `woken`. It is freed when the fiber has come to its end, so never in the middle of a
//!   wait.
//! - LOOPED-2: the thread that resumes a fiber has done with the block when it sets `woken`: from
//!   then on the fiber may go on, and end.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;

use antiphon::fiber::external::{ForksKept, Header, Running, Table, monotonic_ns};
use antiphon_linux::fiber::Sleep;
use antiphon_linux::{Linux, U32};
use antiphon_platform::{Atomic, Clocks as _, Deadline, SharedWait as _};
use antiphon_runtime::event_loop::{EventId, Step};
use corosensei::Yielder;

use super::super::{Handle, Ready};

/// Named by its address, which is that of its header.
#[repr(C)]
pub(super) struct Control {
    header: Header,
    handle: Handle,
    id: EventId,
    /// Whether the wait in which the fiber is suspended is over, and whether its thread waits for
    /// that.
    woken: U32,
    /// The wait that it is suspended in, or is about to be.
    pub(super) sleep: Cell<Option<Sleep>>,
    /// Set when it begins.
    pub(super) yielder: Cell<*const Yielder<(), Said>>,
    /// The `Context` of the step that it is in.
    pub(super) context: Cell<Option<NonNull<()>>>,
    pub(super) importance: Cell<u64>,
    /// The events that its source has told, and that the fiber has not asked for yet.
    pub(super) ready: Cell<Ready>,
    /// Whether it is to be unwound.
    pub(super) cancelled: Cell<bool>,
    /// Whether it is being unwound: its loop does not call it any more.
    pub(super) ends: Cell<bool>,
}

/// Why a stack is switched away from.
pub(super) enum Said {
    /// The step by which its loop is to call it again.
    Steps(Step),
    /// The fiber waits, by its `sleep`.
    Sleeps,
}

/// The payload of the panic that unwinds a fiber that is to go.
pub(super) struct Unwound;

/// The context of a fiber, lent until this is dropped.
pub(super) struct Lent<'a> {
    of: &'a Control,
    pub(super) at: NonNull<()>,
}

static TABLE: Table = Table { sleeps, resume };

/// See [`Table::sleeps`].
unsafe fn sleeps(fiber: NonNull<Header>, sleep: Sleep) {
    // SAFETY: the caller's, and the header is that of a `Control`, with which it begins.
    unsafe { fiber.cast::<Control>().as_ref() }.sleeps(sleep);
}

/// See [`Table::resume`].
unsafe fn resume(fiber: NonNull<Header>) {
    // SAFETY: the caller's, and as above.
    unsafe { Control::resume(fiber.cast()) };
}

/// No wait is over. Values of `woken`.
const NOT: u32 = 0;
/// The wait is over: the fiber was resumed.
const WOKEN: u32 = 1;
/// The wait is not over, and its thread waits on the word.
const BLOCKED: u32 = 2;

impl Control {
    pub(super) fn new(handle: Handle, id: EventId, importance: u64) -> Self {
        Self {
            header: Header::new(&TABLE),
            handle,
            id,
            woken: U32::ZERO,
            sleep: Cell::new(None),
            yielder: Cell::new(ptr::null()),
            context: Cell::new(None),
            importance: Cell::new(importance),
            ready: Cell::default(),
            cancelled: Cell::new(false),
            ends: Cell::new(false),
        }
    }

    pub(super) fn lend(&self) -> Option<Lent<'_>> {
        self.context.take().map(|at| Lent { of: self, at })
    }

    /// The fiber, which is the caller, waits by this sleep.
    fn sleeps(&self, sleep: Sleep) {
        if thread::panicking() || self.ends.get() {
            return self.blocks(sleep);
        }
        self.sleep.set(Some(sleep));
        // SAFETY: it is the caller, and does not unwind.
        unsafe { self.leave(Said::Sleeps) };
    }

    /// Switches away from its stack, which the caller is on; returns when it is switched to.
    ///
    /// # Safety
    ///
    /// The caller runs on it, and is not unwinding.
    pub(super) unsafe fn leave(&self, said: Said) {
        // Forks of other code stay with that code.
        let _kept = ForksKept::now();
        // SAFETY: set when it began, which it has, and there until it ends.
        unsafe { &*self.yielder.get() }.suspend(said);
    }

    /// Waits on its stack, which may not be left: its thread waits.
    fn blocks(&self, sleep: Sleep) {
        // SAFETY: no thread lets it go on but this one, which is here.
        if !unsafe { sleep.commit() } {
            return;
        }
        loop {
            // Acquire: LOOPED-2, pairs with the release in `resume`.
            if self.woken.compare_exchange(NOT, BLOCKED, Acquire, Acquire) == Err(WOKEN) {
                break;
            }
            let _ = Linux::wait_shared(&self.woken, BLOCKED, sleep.deadline);
            // SAFETY: it has not gone on. Where a wake has ended the sleep, `woken` is to come.
            if sleep.deadline.is_some_and(passed) && unsafe { sleep.expire() } {
                break;
            }
        }
        // Relaxed: no other thread touches it before the next commit.
        self.woken.store(NOT, Relaxed);
    }

    /// Ends a wait: the fiber may go on. On any thread.
    ///
    /// # Safety
    ///
    /// The fiber is suspended in a wait, and this call ends it.
    unsafe fn resume(of: NonNull<Self>) {
        let of = of.as_ptr();
        // SAFETY: the caller's; LOOPED-1, these are for all.
        let (handle, id, woken) =
            unsafe { ((*of).handle.clone(), (*of).id, &raw const (*of).woken) };
        // Release: what was done before is seen where it goes on. SAFETY: LOOPED-2, for the last
        // time.
        match unsafe { &*woken }.swap(WOKEN, Release) {
            BLOCKED => Linux::wake_shared(woken, 1),
            _ => {
                // The code that wakes it does not wait as a fiber, for example for the posts of a
                // loop.
                let _thread = Running::thread();
                // A loop that is gone has none that wait, but those that it has leaked.
                let _ = handle.wake(id);
            }
        }
    }

    /// If the fiber is in the middle of a wait, returns how it is to be called then. If the wait is
    /// over, ends it and returns `None`.
    pub(super) fn still_waits(&self) -> Option<Step> {
        let sleep = self.sleep.get()?;
        // Acquire: pairs with the release in `resume`.
        if self.woken.load(Acquire) == WOKEN {
            // Relaxed: no other thread touches it before the next commit.
            self.woken.store(NOT, Relaxed);
        } else {
            // SAFETY: it has not gone on, and does not before `resume` if this fails.
            let expired = sleep.deadline.is_some_and(passed) && unsafe { sleep.expire() };
            if !expired {
                return Some(until(&sleep));
            }
        }
        self.sleep.set(None);
        None
    }
}

/// How a fiber that sleeps so is to be called.
pub(super) fn until(sleep: &Sleep) -> Step {
    match sleep.deadline {
        // A fiber whose time is over, and that did not expire, is woken in a moment.
        Some(deadline) if !passed(deadline) => Step::At(monotonic_ns(deadline)),
        _ => Step::Asleep,
    }
}

fn passed(deadline: Deadline) -> bool {
    Linux::now(deadline.clock) >= deadline.ns
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.of.context.set(Some(self.at));
    }
}

//! The control block of an event-loop fiber, shared by the loop, the fiber, and the threads that
//! end its waits.
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
//! - LOOPED-1: a control block belongs to the thread of its loop, except for `handle`, which never
//!   changes, and `woken`. It is freed when the fiber has ended, so never in the middle of a wait.
//! - LOOPED-2: the thread that resumes a fiber does not touch the block after it sets `woken`: from
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

/// The control block of a fiber, named by its address, which is that of its header.
#[repr(C)]
pub(super) struct Control {
    header: Header,
    handle: Handle,
    id: EventId,
    /// Whether the wait in which the fiber is suspended is over, and whether the fiber's thread
    /// waits for that.
    woken: U32,
    /// The wait in which the fiber is suspended, or is about to be.
    pub(super) sleep: Cell<Option<Sleep>>,
    /// Set when the fiber begins.
    pub(super) yielder: Cell<*const Yielder<(), Said>>,
    /// The `Context` of the step that the fiber is in.
    pub(super) context: Cell<Option<NonNull<()>>>,
    pub(super) importance: Cell<u64>,
    /// Events that its source has reported, and that the fiber has not taken yet.
    pub(super) ready: Cell<Ready>,
    /// Whether the fiber must be unwound.
    pub(super) cancelled: Cell<bool>,
    /// Whether it is being unwound: its loop no longer calls it.
    pub(super) ends: Cell<bool>,
}

/// Reason for switching away from a stack.
pub(super) enum Said {
    /// The fiber ends a step; tells how its loop must call it again.
    Steps(Step),
    /// The fiber waits in `sleep`.
    Sleeps,
}

/// Payload of the panic that unwinds a cancelled fiber.
pub(super) struct Unwound;

/// The context of a fiber, lent until this is dropped.
pub(super) struct Lent<'a> {
    of: &'a Control,
    pub(super) at: NonNull<()>,
}

static TABLE: Table = Table { sleeps, resume };

/// Implements [`Table::sleeps`].
unsafe fn sleeps(fiber: NonNull<Header>, sleep: Sleep) {
    // SAFETY: the caller's promise, and the header is the first field of a `Control`.
    unsafe { fiber.cast::<Control>().as_ref() }.sleeps(sleep);
}

/// Implements [`Table::resume`].
unsafe fn resume(fiber: NonNull<Header>) {
    // SAFETY: the caller's promise, and the header is the first field of a `Control`.
    unsafe { Control::resume(fiber.cast()) };
}

/// Value of `woken`: the wait is not over.
const NOT: u32 = 0;
/// Value of `woken`: the wait is over, because the fiber was resumed.
const WOKEN: u32 = 1;
/// Value of `woken`: the wait is not over, and the fiber's thread waits on the word.
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

    /// Suspends the fiber, which is the caller, in this sleep.
    fn sleeps(&self, sleep: Sleep) {
        if thread::panicking() || self.ends.get() {
            return self.blocks(sleep);
        }
        self.sleep.set(Some(sleep));
        // SAFETY: the fiber is the caller, and does not unwind.
        unsafe { self.leave(Said::Sleeps) };
    }

    /// Switches away from the fiber's stack, on which the caller runs; returns when it is resumed.
    ///
    /// # Safety
    ///
    /// The caller runs on the fiber's stack, and is not unwinding.
    pub(super) unsafe fn leave(&self, said: Said) {
        // Forks of other code stay with that code.
        let _kept = ForksKept::now();
        // SAFETY: `yielder` was set when the fiber began, and is valid until it ends.
        unsafe { &*self.yielder.get() }.suspend(said);
    }

    /// Blocks the thread until the wait is over, because this stack must not be left.
    fn blocks(&self, sleep: Sleep) {
        // SAFETY: only this thread can let the fiber go on, and it is here.
        if !unsafe { sleep.commit() } {
            return;
        }
        loop {
            // Acquire: LOOPED-2, pairs with the release in `resume`.
            if self.woken.compare_exchange(NOT, BLOCKED, Acquire, Acquire) == Err(WOKEN) {
                break;
            }
            let _ = Linux::wait_shared(&self.woken, BLOCKED, sleep.deadline);
            // SAFETY: the fiber has not gone on. If a wake has ended the sleep, `woken` is about to
            // be set.
            if sleep.deadline.is_some_and(passed) && unsafe { sleep.expire() } {
                break;
            }
        }
        // Relaxed: no other thread touches it before the next commit.
        self.woken.store(NOT, Relaxed);
    }

    /// Ends a wait, so that the fiber may go on. May be called on any thread.
    ///
    /// # Safety
    ///
    /// The fiber is suspended in a wait, and this call ends it.
    unsafe fn resume(of: NonNull<Self>) {
        let of = of.as_ptr();
        // SAFETY: the caller's promise; by LOOPED-1, any thread may access these fields.
        let (handle, id, woken) =
            unsafe { ((*of).handle.clone(), (*of).id, &raw const (*of).woken) };
        // Release: what was done before is visible to the fiber when it goes on. SAFETY: LOOPED-2,
        // this is the last access.
        match unsafe { &*woken }.swap(WOKEN, Release) {
            BLOCKED => Linux::wake_shared(woken, 1),
            _ => {
                // The waking code must not wait as a fiber, for example for the posts of a loop.
                let _thread = Running::thread();
                // A dropped loop has no waiting fibers, except those that it has leaked.
                let _ = handle.wake(id);
            }
        }
    }

    /// If the fiber is in the middle of a wait, returns how the loop must call it next. If the wait
    /// is over, ends it and returns `None`.
    pub(super) fn still_waits(&self) -> Option<Step> {
        let sleep = self.sleep.get()?;
        // Acquire: pairs with the release in `resume`.
        if self.woken.load(Acquire) == WOKEN {
            // Relaxed: no other thread touches it before the next commit.
            self.woken.store(NOT, Relaxed);
        } else {
            // SAFETY: the fiber has not gone on, and if this fails, does not go on before `resume`.
            let expired = sleep.deadline.is_some_and(passed) && unsafe { sleep.expire() };
            if !expired {
                return Some(until(&sleep));
            }
        }
        self.sleep.set(None);
        None
    }
}

/// Returns how the loop must call a fiber in this sleep next.
pub(super) fn until(sleep: &Sleep) -> Step {
    match sleep.deadline {
        // A fiber whose deadline has passed, but whose sleep did not expire, is woken in a moment.
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

//! Fibers that are not run by a pool, but for example by an event loop of `antiphon-coop`. Not for
//! users: `antiphon-coop` is built with the same version of this crate.
//!
//! A fiber of this kind is identified by the address of its [`Header`], with which its control
//! block begins. The code that runs it marks it as running ([`Running`]) meanwhile.

use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

use antiphon_linux::fiber::Sleep;
use antiphon_linux::stack::Stacks;
use antiphon_platform::Deadline;

use super::next_identity;
use crate::debug::by_name;
use crate::local;
use crate::worker::Notes;

/// The beginning of the control block of an external fiber. Its address names the fiber, and has
/// two free bits.
#[repr(align(8))]
#[derive(Debug)]
pub struct Header {
    identity: NonZeroUsize,
    table: &'static Table,
}

/// How the fibers of one kind wait.
#[derive(Debug)]
pub struct Table {
    /// Suspends the fiber, which is the caller, in this sleep.
    ///
    /// # Safety
    ///
    /// The control block that begins with the header runs on the calling thread.
    pub sleeps: unsafe fn(NonNull<Header>, Sleep),
    /// Ends a wait, so that the fiber may continue. On any thread.
    ///
    /// # Safety
    ///
    /// The fiber is suspended in a wait, and this call ends the wait.
    pub resume: unsafe fn(NonNull<Header>),
}

impl Header {
    /// Creates the header of a new fiber, with an identity that no task of a pool and no other
    /// fiber has.
    #[must_use]
    pub fn new(table: &'static Table) -> Self {
        Self { identity: NonZeroUsize::new(next_identity()).expect("odd"), table }
    }

    pub(super) fn identity(&self) -> NonZeroUsize {
        self.identity
    }

    pub(super) fn table(&self) -> &'static Table {
        self.table
    }
}

/// Returns the external fiber that runs on the calling thread, if any.
#[must_use]
pub fn running() -> Option<NonNull<Header>> {
    local::with(|own| own.external.get()).map(NonNull::cast)
}

/// Marks a fiber, or the thread itself, as running on the calling thread. On drop, the previous
/// mark is restored.
#[derive(Debug)]
pub struct Running {
    external: Option<NonNull<()>>,
    /// The pool's fiber that was marked before.
    fiber: Option<NonNull<()>>,
}

impl Running {
    /// Marks the thread itself as running.
    #[must_use]
    pub fn thread() -> Self {
        Self::instead(None)
    }

    /// Marks this fiber as running.
    ///
    /// # Safety
    ///
    /// Until this is dropped, the calling thread runs the fiber, or switches to it and back, and
    /// the fiber's control block exists.
    #[must_use]
    pub unsafe fn fiber(fiber: NonNull<Header>) -> Self {
        Self::instead(Some(fiber))
    }

    fn instead(external: Option<NonNull<Header>>) -> Self {
        local::with(|own| Self {
            external: own.external.replace(external.map(NonNull::cast)),
            fiber: own.fiber.take(),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        local::with(|own| {
            own.external.set(self.external);
            own.fiber.set(self.fiber.take());
        });
    }
}

/// Hides the forks of the calling code from the code that runs on another stack until this is
/// dropped.
pub struct ForksKept(#[expect(dead_code, reason = "for its drop")] Notes);

impl ForksKept {
    /// Hides the calling code's forks from now on.
    #[must_use]
    pub fn now() -> Self {
        Self(Notes::set_aside())
    }
}

/// Converts a deadline to the monotonic clock, in nanoseconds.
#[must_use]
pub fn monotonic_ns(deadline: Deadline) -> u64 {
    super::monotonic_ns(deadline)
}

/// Creates stacks of `bytes` bytes each for external fibers. From then on, waits of fibers in this
/// process go through this crate.
///
/// # Errors
///
/// If stacks of that size can't be made, or there is another fiber runtime in the process.
pub fn stacks(bytes: usize) -> io::Result<Stacks> {
    super::stacks(bytes)
}

by_name!([] ForksKept, "ForksKept");

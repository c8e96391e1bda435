//! Fibers that something other than a pool runs, such as an event loop of `antiphon-coop`. Not for
//! users: `antiphon-coop` is built with the same version of this crate.
//!
//! A fiber of this kind is known by the address of its [`Header`], with which its control block
//! begins. Whoever runs it marks it as running ([`Running`]) while it does.

use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

use antiphon_linux::fiber::Sleep;
use antiphon_linux::stack::Stacks;
use antiphon_platform::Deadline;

use super::next_identity;
use crate::local;
use crate::worker::Notes;

/// The beginning of the control block of such a fiber. Named by its address, of which two bits are
/// free.
#[repr(align(8))]
#[derive(Debug)]
pub struct Header {
    identity: NonZeroUsize,
    table: &'static Table,
}

/// How the fibers of one kind wait.
#[derive(Debug)]
pub struct Table {
    /// The fiber, which is the caller, waits by this sleep.
    ///
    /// # Safety
    ///
    /// The control block that begins with the header runs on the calling thread.
    pub sleeps: unsafe fn(NonNull<Header>, Sleep),
    /// Ends a wait: the fiber may go on. On any thread.
    ///
    /// # Safety
    ///
    /// The fiber is suspended in a wait, and this call ends it.
    pub resume: unsafe fn(NonNull<Header>),
}

impl Header {
    /// That of a new fiber, whose identity no task of a pool and no other fiber has.
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

/// The fiber of this kind that runs on the calling thread.
#[must_use]
pub fn running() -> Option<NonNull<Header>> {
    local::with(|own| own.external.get()).map(NonNull::cast)
}

/// Marks what runs on the thread, a fiber or the thread itself, until this is dropped: then what
/// ran before is marked again.
#[derive(Debug)]
pub struct Running {
    external: Option<NonNull<()>>,
    /// The fiber of a pool.
    fiber: Option<NonNull<()>>,
}

impl Running {
    /// The thread itself runs.
    #[must_use]
    pub fn thread() -> Self {
        Self::instead(None)
    }

    /// This fiber runs.
    ///
    /// # Safety
    ///
    /// Until this is dropped, the calling thread runs the fiber, or switches to it and back, and
    /// the fiber's control block is there.
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

/// Keeps the forks of the calling code from the code that runs until this is dropped, on another
/// stack.
pub struct ForksKept(#[expect(dead_code, reason = "for its drop")] Notes);

impl ForksKept {
    /// From now on.
    #[must_use]
    pub fn now() -> Self {
        Self(Notes::set_aside())
    }
}

/// The time of a deadline on the monotonic clock, in nanoseconds.
#[must_use]
pub fn monotonic_ns(deadline: Deadline) -> u64 {
    super::monotonic_ns(deadline)
}

/// Stacks of `bytes` bytes each for such fibers. Directs waits of fibers to this crate, for good.
///
/// # Errors
///
/// If there can't be any of that size; or there is another fiber runtime in the process.
pub fn stacks(bytes: usize) -> io::Result<Stacks> {
    super::stacks(bytes)
}

impl fmt::Debug for ForksKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ForksKept")
    }
}

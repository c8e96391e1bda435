//! A thread's wait for a file that a token may end: cancelling the token rings a bell.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::task::Wake;

use antiphon_linux::Linux;
use antiphon_linux::files::{self, Way};
use antiphon_linux::notify::EventFd;
use antiphon_platform::{Notify as _, Ticket};
use antiphon_sync::nap;

use crate::fiber::Until;

/// A bell for one wait, rung at most once.
struct Bell(EventFd);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify(Ticket::MIN);
    }
}

/// Time between two checks of a waiter that is not notified, in nanoseconds.
const LOOK_NS: u64 = 10_000_000;

/// Blocks until the file is ready, or the wait is over; returns whether the file is ready. May
/// return early.
///
/// # Errors
///
/// The error of the kernel: for example, if there is a token, that too many files are open.
pub(super) fn wait(file: BorrowedFd<'_>, way: Way, until: &Until<'_>) -> io::Result<bool> {
    let deadline = until.deadline();
    let Some(by) = until.token else { return files::wait(file, way, deadline) };
    let bell = Arc::new(Bell(EventFd::new()?));
    // `None`: the waiter was notified already.
    let Some(left) = by.told.leave_waker(bell.clone().into()) else { return Ok(false) };
    if left.is_told() {
        return files::wait_beside(file, way, bell.0.as_fd(), deadline);
    }
    files::wait(file, way, Some(nap::earlier::<Linux>(deadline, LOOK_NS)))
}

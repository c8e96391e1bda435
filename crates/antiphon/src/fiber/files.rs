//! Waits of fibers for files. The file is registered with the reactor of the fiber's thread when
//! the fiber first has to wait for it, and stays registered until it is closed.
//!
//! Fibers of several threads may wait for one file. Each thread registers the file for itself, so
//! no fiber depends on another thread to be notified. A thread that has a ring registers nothing:
//! it makes a request to the kernel for each wait.

use std::cell::Cell;
use std::io::{self, ErrorKind::WouldBlock};
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_linux::files::Way;
use antiphon_platform::{Deadline, Platform as _, Waiter};
use antiphon_sync::nap;
use antiphon_sync::wait::Several;

use super::control::{Fiber, GoesOn, Said};
use super::current::current_fiber;
use super::hooks;
use super::host::{Host, below};
use super::reactor::{Reactor, Seat};
use crate::budget;
use crate::cancel::{Cancelled, Token};
use crate::deadline::deadline_after;

/// The registrations of a file: one for each thread whose fibers have waited for it.
#[derive(Debug, Default)]
pub(crate) struct Seats {
    first: OnceLock<Seat>,
    others: Mutex<Vec<Seat>>,
    /// Used on threads that have rings.
    #[cfg(feature = "io_uring")]
    pub(super) hints: super::transfers::Hints,
}

/// A file, and the side of it (reading or writing) that is waited for.
#[derive(Clone, Copy)]
pub(crate) struct Waited<'a> {
    pub(crate) seats: &'a Seats,
    pub(crate) file: BorrowedFd<'a>,
    pub(crate) way: Way,
    pub(crate) until: &'a Until<'a>,
}

/// What ends the waits of a call besides their file: a timeout, which begins with the first wait,
/// and a token.
pub(crate) struct Until<'a> {
    timeout: Option<Duration>,
    /// Set by the first wait; later waits of the call, after unsuccessful tries, use the same.
    deadline: Cell<Option<Deadline>>,
    pub(crate) token: Option<ByToken<'a>>,
}

/// A token, and the word that its cancelling notifies. The caller is on the token's list, which
/// takes a lock, before the waits begin and until they are over. So entering and leaving the list
/// may happen on any thread, and the waits in between are on one (MIGRATE-3).
#[derive(Clone, Copy)]
pub(crate) struct ByToken<'a> {
    pub(crate) token: &'a Token,
    pub(crate) told: &'a Several<Linux>,
    /// The epoch of the process that made it: in a child of that process, no thread notifies the
    /// waiters.
    pub(crate) epoch: u32,
}

impl<'a> Until<'a> {
    pub(crate) fn new(timeout: Option<Duration>, token: Option<ByToken<'a>>) -> Self {
        Self { timeout, deadline: Cell::new(None), token }
    }

    /// Returns the deadline of a wait that is about to begin.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        if self.deadline.get().is_none() {
            let own = self.timeout.map(deadline_after);
            let of_token = self.token.and_then(|by| by.token.inner().deadline());
            // Both times are of the same clock.
            self.deadline.set(own.into_iter().chain(of_token).min_by_key(|deadline| deadline.ns));
        }
        self.deadline.get()
    }

    /// Returns whether the call must not wait any more: cancelled, or past its deadline.
    pub(crate) fn is_over(&self) -> bool {
        self.is_cancelled() || nap::passed::<Linux>(self.deadline())
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.token.is_some_and(|by| by.token.is_cancelled())
    }

    /// Returns the error of a call that ends without success.
    pub(crate) fn error(&self) -> io::Error {
        if self.is_cancelled() { Cancelled.into() } else { WouldBlock.into() }
    }
}

/// The calling fiber, which is suspended while it waits for a file. The value stays in that fiber.
pub(crate) struct Suspends<'a> {
    pub(super) host: &'a Host,
    pub(super) fiber: Fiber,
}

impl Seats {
    /// Returns the registration with this reactor, if there is one.
    #[inline]
    fn find<'a>(&self, reactor: &'a Reactor) -> Option<(&'a Reactor, Seat)> {
        let first = self.first.get().filter(|seat| reactor.owns(seat)).copied();
        Some((reactor, first.or_else(|| self.find_other(reactor))?))
    }

    #[cold]
    fn find_other(&self, reactor: &Reactor) -> Option<Seat> {
        self.first.get()?;
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.iter().find(|seat| reactor.owns(seat)).copied()
    }

    fn put(&self, seat: Seat) {
        if let Err(seat) = self.first.set(seat) {
            self.others.lock().unwrap_or_else(PoisonError::into_inner).push(seat);
        }
    }

    /// Removes all registrations, before the file is closed. No fiber may wait for it.
    pub(crate) fn give_up(&mut self, file: BorrowedFd<'_>) {
        let others = self.others.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.first.take().into_iter().chain(others.drain(..)).for_each(|seat| seat.give_up(file));
    }
}

impl<'a> Suspends<'a> {
    /// Returns `None` if the caller is not a fiber, or unwinds: then it blocks its thread.
    #[inline]
    pub(crate) fn here() -> Option<Self> {
        let fiber = current_fiber().filter(|_| !thread::panicking())?;
        Some(Self { host: below()?, fiber })
    }

    /// Tries until the file does not block, and waits for the file between tries. `drained`
    /// returns, for the result, whether the file has no more: then the next call does not try
    /// before there is more.
    ///
    /// # Errors
    ///
    /// The error of `attempt`, or of the registration; `WouldBlock` when the time is over.
    pub(crate) fn until<R>(
        &self,
        waited: Waited<'_>,
        mut attempt: impl FnMut() -> io::Result<R>,
        drained: impl FnOnce(&R) -> bool,
    ) -> io::Result<R> {
        let Waited { seats, way, until, .. } = waited;
        let mut known = self.host.polls.known().and_then(|reactor| seats.find(reactor));
        loop {
            let Some((reactor, seat)) = known else {
                match attempt() {
                    Err(error) if error.kind() == WouldBlock => {}
                    tried => return self.after(tried),
                }
                #[cfg(feature = "io_uring")]
                if let Some(ring) = self.host.polls.ring()? {
                    self.ready(ring, waited)?;
                    continue;
                }
                known = Some(self.seat(waited)?);
                continue;
            };
            let (tick, tries) = reactor.before(seat, way);
            if tries {
                match attempt() {
                    Err(error) if error.kind() == WouldBlock => {
                        reactor.spent(seat, way, tick, false);
                    }
                    Ok(done) => {
                        if drained(&done) {
                            reactor.spent(seat, way, tick, true);
                        }
                        return self.after(Ok(done));
                    }
                    // For example, accepting fails repeatedly while too many files are open.
                    failed => return self.after(failed),
                }
            }
            if !self.wait_after(reactor, seat, waited, tick) {
                return Err(until.error());
            }
        }
    }

    /// Waits until a poll, the deadline or cancellation ends the wait. May return spuriously.
    /// `is_told` returns whether a poll has reported the awaited side.
    pub(super) fn waits(
        &self,
        until: &Until<'_>,
        deadline: Option<Deadline>,
        is_told: impl Fn() -> bool,
    ) {
        let told = until.token.filter(|by| by.epoch == Linux::epoch());
        let Some(ByToken { token, told, .. }) = told else {
            // No other thread knows this node.
            let waiter = Waiter::NEW;
            return self.stays(|| _ = Linux::park(&waiter, deadline));
        };
        self.stays(|| told.wait(deadline, || is_told() || token.is_cancelled()));
    }

    /// Runs `wait`. A fiber that can move stays on its thread meanwhile, because it is registered
    /// in a structure of the host (MIGRATE-3).
    fn stays(&self, wait: impl FnOnce()) {
        self.fiber.get().goes.set(GoesOn::Here);
        self.host.polls.waiting(wait);
    }

    /// Ends a try, after the last access to the host (MIGRATE-3). Lets others run now and then,
    /// also if files are always ready.
    #[inline]
    pub(super) fn after<R>(&self, tried: R) -> R {
        if budget::is_tiring() {
            hooks::leave(Said::Yields { soft: false });
        }
        tried
    }

    /// Registers the file with the thread's reactor, after a try that would block.
    #[cold]
    fn seat(&self, waited: Waited<'_>) -> io::Result<(&'a Reactor, Seat)> {
        let reactor = self.host.polls.reactor()?;
        // Another fiber of the thread may have registered the file during the caller's try.
        if let Some(known) = waited.seats.find(reactor) {
            return Ok(known);
        }
        let seat = reactor.register(waited.file, waited.way)?;
        waited.seats.put(seat);
        Ok((reactor, seat))
    }

    /// Waits until a poll has reported that side after the tick. Returns `false` if the wait is
    /// over first.
    fn wait_after(&self, reactor: &Reactor, seat: Seat, waited: Waited<'_>, tick: u32) -> bool {
        let (handle, Waited { way, until, .. }) = (self.fiber.handle(), waited);
        let is_told = || reactor.before(seat, way).0 != tick;
        while !is_told() {
            if until.is_over() {
                return false;
            }
            reactor.enter(seat, way, handle);
            self.waits(until, until.deadline(), is_told);
            reactor.leave(seat, way, handle);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Unsuccessful tries in between don't matter.
    #[test]
    fn the_time_of_a_call_begins_with_its_first_wait() {
        let until = Until::new(Some(Duration::from_secs(60)), None);
        let first = until.deadline().expect("a time");
        while deadline_after(Duration::from_secs(60)).ns == first.ns {}
        assert_eq!(until.deadline(), Some(first));
        assert!(!until.is_over() && Until::new(Some(Duration::ZERO), None).is_over());
        assert_eq!(until.error().kind(), WouldBlock);
        assert_eq!(Until::new(None, None).deadline(), None);
    }
}

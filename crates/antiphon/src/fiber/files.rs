//! A fiber that waits for a file. The file is registered with the reactor of its thread when the
//! fiber has to wait for the first time, and stays so until the file is closed.
//!
//! Fibers of several threads may wait for one file, and each thread has it registered for itself:
//! so no fiber depends on another thread to be notified. A thread that has a ring registers
//! nothing: it asks the kernel for each wait.

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

/// A file, of which one way is waited for.
#[derive(Clone, Copy)]
pub(crate) struct Waited<'a> {
    pub(crate) seats: &'a Seats,
    pub(crate) file: BorrowedFd<'a>,
    pub(crate) way: Way,
    pub(crate) until: &'a Until<'a>,
}

/// The ends of a call's waits beside their file: a time, which begins with the first of them; and a
/// token.
pub(crate) struct Until<'a> {
    timeout: Option<Duration>,
    /// Known from the first wait on: others of the call, after tries in vain, end then, too.
    deadline: Cell<Option<Deadline>>,
    pub(crate) token: Option<ByToken<'a>>,
}

/// A token, and what its cancelling notifies. The caller is on the token's list, which takes a
/// lock, before there are waits, and until they are over. So all of that is on any thread, and the
/// waits between are on one (MIGRATE-3).
#[derive(Clone, Copy)]
pub(crate) struct ByToken<'a> {
    pub(crate) token: &'a Token,
    pub(crate) told: &'a Several<Linux>,
    /// The epoch of the process that has made it: in a child of that process, no thread tells the
    /// waiters.
    pub(crate) epoch: u32,
}

impl<'a> Until<'a> {
    pub(crate) fn new(timeout: Option<Duration>, token: Option<ByToken<'a>>) -> Self {
        Self { timeout, deadline: Cell::new(None), token }
    }

    /// The deadline of a wait that is about to begin.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        if self.deadline.get().is_none() {
            let own = self.timeout.map(deadline_after);
            let of_token = self.token.and_then(|by| by.token.inner().deadline());
            // Both times by one clock.
            self.deadline.set(own.into_iter().chain(of_token).min_by_key(|deadline| deadline.ns));
        }
        self.deadline.get()
    }

    /// Whether no more is to be waited.
    pub(crate) fn is_over(&self) -> bool {
        self.is_cancelled() || nap::passed::<Linux>(self.deadline())
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.token.is_some_and(|by| by.token.is_cancelled())
    }

    /// Why the call ends in vain.
    pub(crate) fn error(&self) -> io::Error {
        if self.is_cancelled() { Cancelled.into() } else { WouldBlock.into() }
    }
}

/// The calling fiber, which is suspended where it waits for a file. It does not leave that fiber.
pub(crate) struct Suspends<'a> {
    pub(super) host: &'a Host,
    pub(super) fiber: Fiber,
}

impl Seats {
    /// The registration with this reactor.
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

    /// Takes all registrations back, before the file is closed. No fiber waits for it.
    pub(crate) fn give_up(&mut self, file: BorrowedFd<'_>) {
        let others = self.others.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.first.take().into_iter().chain(others.drain(..)).for_each(|seat| seat.give_up(file));
    }
}

impl<'a> Suspends<'a> {
    /// `None`: the caller is no fiber, or unwinds; it blocks its thread.
    #[inline]
    pub(crate) fn here() -> Option<Self> {
        let fiber = current_fiber().filter(|_| !thread::panicking())?;
        Some(Self { host: below()?, fiber })
    }

    /// Tries until the file would not block, and waits for the file between tries. `drained` says,
    /// of the result, whether the file has no more: then the next call does not try before there is
    /// more.
    ///
    /// # Errors
    ///
    /// The error of `attempt`; that the file can't be registered; `WouldBlock` when the time is
    /// over.
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
                    // As where accepting fails again and again, while too many files are open.
                    failed => return self.after(failed),
                }
            }
            if !self.wait_after(reactor, seat, waited, tick) {
                return Err(until.error());
            }
        }
    }

    /// Waits until a poll ends the wait, or the deadline, or the call is cancelled; or for no
    /// reason. `is_told` says whether a poll has told of the awaited side.
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

    /// Runs `wait`. A fiber that moves stays on its thread meanwhile: it has a place in a structure
    /// of the host (MIGRATE-3).
    fn stays(&self, wait: impl FnOnce()) {
        self.fiber.get().goes.set(GoesOn::Here);
        self.host.polls.waiting(wait);
    }

    /// Ends a try, after the last access to the host (MIGRATE-3); others have their turn where
    /// files are always ready.
    #[inline]
    pub(super) fn after<R>(&self, tried: R) -> R {
        if budget::is_tiring() {
            hooks::leave(Said::Yields { soft: false });
        }
        tried
    }

    /// The registration of the file with the thread's reactor, which has been tried, and would
    /// block.
    #[cold]
    fn seat(&self, waited: Waited<'_>) -> io::Result<(&'a Reactor, Seat)> {
        let reactor = self.host.polls.reactor()?;
        // Another fiber of the thread may have come before, while the caller has tried.
        if let Some(known) = waited.seats.find(reactor) {
            return Ok(known);
        }
        let seat = reactor.register(waited.file, waited.way)?;
        waited.seats.put(seat);
        Ok((reactor, seat))
    }

    /// Waits until a poll has told of that side after the tick; `false` if the wait is over first.
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

    /// Whatever is tried in vain between.
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

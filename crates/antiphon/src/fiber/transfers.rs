//! A fiber that has the kernel receive or send for it: by the ring of its thread, if that has one.
//!
//! | what | by a call of its own | by the ring |
//! |---|---|---|
//! | to receive | if it is not known that the socket was emptied | where that would block |
//! | to send | if no other fiber may go on | otherwise, or where that would block |
//! | all else | always | waits until the file is ready, for the next try |
//!
//! Where others may go on, they may send, too: the ring has one system call for all. A send is
//! begun when none may, or in 200 µs, or when the fiber that runs then lets others.

use std::io::{self, ErrorKind::WouldBlock};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

use antiphon_linux::files::{Done, Epoll};

use super::files::{Seats, Suspends, Until, Waited};
use super::ring::{Asks, Request, Ring};

/// The state of a file that its waiters have found.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// The last to receive had room for more: the next is better off to wait.
    emptied: AtomicBool,
    /// Whether it was waited for, and was found to be a file that can be.
    waits: AtomicU8,
}

const WAITED: u8 = 1;
const FOUND: u8 = 2;

impl Hints {
    // Relaxed, here and below: a reader of a stale value tries in vain, or waits though there is
    // something, and is notified at once.
    fn is_emptied(&self) -> bool {
        self.emptied.load(Relaxed)
    }

    fn set_emptied(&self, is: bool) {
        if self.is_emptied() != is {
            self.emptied.store(is, Relaxed);
        }
    }

    /// Finds out whether the file can be waited for, if it is not for the first time: a ring says
    /// of one that can't that it is ready.
    ///
    /// # Errors
    ///
    /// The errors of [`Epoll::add`], which says that the file can't be waited for.
    fn may_wait(&self, file: BorrowedFd<'_>) -> io::Result<()> {
        match self.waits.load(Relaxed) {
            FOUND => return Ok(()),
            WAITED => {
                Epoll::new()?.add(file, 0)?;
                self.waits.store(FOUND, Relaxed);
            }
            _ => self.waits.store(WAITED, Relaxed),
        }
        Ok(())
    }
}

impl Suspends<'_> {
    /// Receives, as a try in the same way would; waits for no longer than that. `None`: the thread
    /// has no ring, or that says to try again.
    ///
    /// # Errors
    ///
    /// The error of `attempt` or of the system; `WouldBlock` when the time is over.
    pub(crate) fn receive(
        &self,
        waited: Waited<'_>,
        buffer: &mut [u8],
        attempt: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> Option<io::Result<usize>> {
        let (seats, room) = (waited.seats, buffer.len());
        if room == 0 || !self.host.polls.may_ring() {
            return None;
        }
        if !seats.hints.is_emptied() {
            match attempt(buffer) {
                Err(error) if error.kind() == WouldBlock => {}
                tried => return Some(self.received(seats, room, tried)),
            }
        }
        let asks = Asks::Receive { at: buffer.as_mut_ptr(), room };
        // SAFETY: the buffer is lent to this call, which is not over before it is done.
        let received = unsafe { self.transfer(waited, asks) };
        if received.is_none() {
            seats.hints.set_emptied(false);
        }
        received.map(|received| self.received(seats, room, received))
    }

    fn received(&self, seats: &Seats, room: usize, got: io::Result<usize>) -> io::Result<usize> {
        // A result of 0 bytes is the end, which is reported each time.
        seats.hints.set_emptied(matches!(got, Ok(bytes) if 0 < bytes && bytes < room));
        self.after(got)
    }

    /// Sends, as of [`receive`](Self::receive).
    ///
    /// # Errors
    ///
    /// The errors of `receive`.
    pub(crate) fn send(
        &self,
        waited: Waited<'_>,
        bytes: &[u8],
        attempt: impl FnOnce(&[u8]) -> io::Result<usize>,
    ) -> Option<io::Result<usize>> {
        if bytes.is_empty() || !self.host.polls.may_ring() {
            return None;
        }
        // Others may send, too: that is one system call for all.
        if !self.host.has_ready() {
            match attempt(bytes) {
                Err(error) if error.kind() == WouldBlock => {}
                tried => return Some(self.after(tried)),
            }
        }
        let asks = Asks::Send { at: bytes.as_ptr(), bytes: bytes.len() };
        // SAFETY: the bytes are lent to this call, which is not over before it is done.
        unsafe { self.transfer(waited, asks) }
    }

    /// Asks the ring to do the transfer; `None`: there is no ring, or it says to try again.
    ///
    /// # Safety
    ///
    /// The bytes stay valid for the call; no other code uses them if they are written to, or writes
    /// to them if they are read.
    unsafe fn transfer(&self, waited: Waited<'_>, asks: Asks) -> Option<io::Result<usize>> {
        let ring = match self.host.polls.ring() {
            Ok(ring) => ring?,
            Err(error) => return Some(Err(error)),
        };
        // SAFETY: the caller's.
        match unsafe { self.ask(ring, waited, asks) } {
            Done::Bytes(bytes) => Some(Ok(bytes)),
            Done::TakenBack => Some(Err(waited.until.error())),
            Done::Again => None,
            Done::Failed(code) => Some(Err(io::Error::from_raw_os_error(code))),
        }
    }

    /// Waits until the file is ready, as it was not when it was tried.
    ///
    /// # Errors
    ///
    /// The error of the system: that the file is always ready; `WouldBlock` when the time is over.
    pub(super) fn ready(&self, ring: &Ring, waited: Waited<'_>) -> io::Result<()> {
        if waited.until.is_over() {
            return Err(waited.until.error());
        }
        waited.seats.hints.may_wait(waited.file)?;
        // SAFETY: there are no bytes.
        match unsafe { self.ask(ring, waited, Asks::Ready(waited.way)) } {
            Done::Bytes(_) | Done::Again => Ok(()),
            Done::TakenBack => Err(waited.until.error()),
            Done::Failed(code) => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Asks the ring for the operation, and waits until it is done; or, when the deadline has
    /// passed, until it was taken back.
    ///
    /// # Safety
    ///
    /// The conditions of [`transfer`](Self::transfer).
    unsafe fn ask(&self, ring: &Ring, waited: Waited<'_>, asks: Asks) -> Done {
        let request = Request::of(self.fiber.handle());
        // SAFETY: FILE-5: the request and, by the caller, its bytes stay until this is over, and it
        // is not over before the request is done.
        unsafe { ring.begin(waited.file, asks, &request) }
        self.completes(ring, &request, waited.until)
    }

    fn completes(&self, ring: &Ring, request: &Request, until: &Until<'_>) -> Done {
        let is_told = || request.done().is_some();
        loop {
            if let Some(done) = request.done() {
                return done;
            }
            if until.is_over() {
                break;
            }
            self.waits(until, until.deadline(), is_told);
        }
        // FILE-7.
        if ring.is_inherited() {
            return Done::TakenBack;
        }
        ring.take_back(request);
        loop {
            if let Some(done) = request.done() {
                return done;
            }
            self.waits(&Until::new(None, None), None, is_told);
        }
    }
}

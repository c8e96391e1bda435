//! Transfers through the ring of the thread, if it has one: the kernel receives or sends for a
//! fiber.
//!
//! | operation | by its own system call | by the ring |
//! |---|---|---|
//! | receive | unless the socket is known to be empty | if the call would block |
//! | send | if no other fiber may continue | otherwise, or if the call would block |
//! | others | always | waits until the file is ready, for the next try |
//!
//! Other fibers that may continue may send, too: the ring needs one system call for all. A send
//! begins when no fiber may continue, in 200 µs, or when the fiber that runs then lets others run.

use std::io::{self, ErrorKind::WouldBlock};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

use antiphon_linux::files::{Done, Epoll};

use super::files::{Seats, Suspends, Until, Waited};
use super::ring::{Asks, Request, Ring};

/// The state of a file, as its waiters have found it.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// Whether the last receive had room for more: the next should wait at once.
    emptied: AtomicBool,
    /// Whether the file was waited for ([`WAITED`]), and was found to support that ([`FOUND`]).
    waits: AtomicU8,
}

const WAITED: u8 = 1;
const FOUND: u8 = 2;

impl Hints {
    // Relaxed, here and below: a reader of a stale value tries without success, or waits although
    // there is data, and is notified at once.
    fn is_emptied(&self) -> bool {
        self.emptied.load(Relaxed)
    }

    fn set_emptied(&self, is: bool) {
        if self.is_emptied() != is {
            self.emptied.store(is, Relaxed);
        }
    }

    /// Checks whether the file can be waited for, except at the first wait. The check is needed
    /// because a ring reports a file that can't be waited for as ready.
    ///
    /// # Errors
    ///
    /// The errors of [`Epoll::add`]: the file can't be waited for.
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
    /// Receives like `attempt`, and waits if that would block. Returns `None` if the thread has no
    /// ring, or the ring asks for another try.
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
        // SAFETY: the buffer is lent to this call, which does not return before the transfer is
        // done.
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

    /// Sends like `attempt`, and waits if that would block. Returns `None` if the thread has no
    /// ring, or the ring asks for another try.
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
        // Other fibers may send, too: the ring needs one system call for all.
        if !self.host.has_ready() {
            match attempt(bytes) {
                Err(error) if error.kind() == WouldBlock => {}
                tried => return Some(self.after(tried)),
            }
        }
        let asks = Asks::Send { at: bytes.as_ptr(), bytes: bytes.len() };
        // SAFETY: the bytes are lent to this call, which does not return before the transfer is
        // done.
        unsafe { self.transfer(waited, asks) }
    }

    /// Asks the ring to do the transfer. Returns `None` if there is no ring, or it asks for another
    /// try.
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
        // SAFETY: promised by the caller.
        match unsafe { self.ask(ring, waited, asks) } {
            Done::Bytes(bytes) => Some(Ok(bytes)),
            Done::TakenBack => Some(Err(waited.until.error())),
            Done::Again => None,
            Done::Failed(code) => Some(Err(io::Error::from_raw_os_error(code))),
        }
    }

    /// Waits until the file is ready, after a try that would block.
    ///
    /// # Errors
    ///
    /// The error of the system, if the file can't be waited for; `WouldBlock` when the time is
    /// over.
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

    /// Asks the ring for the operation, and waits until it is done. If the deadline passes, takes
    /// the operation back and waits for that.
    ///
    /// # Safety
    ///
    /// The conditions of [`transfer`](Self::transfer).
    unsafe fn ask(&self, ring: &Ring, waited: Waited<'_>, asks: Asks) -> Done {
        let request = Request::of(self.fiber.handle());
        // SAFETY: FILE-5: the request and, as the caller promises, its bytes stay until this call
        // returns, which is not before the request is done.
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

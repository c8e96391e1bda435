//! Reads and writes of fibers through the ring of their thread.

use std::io;
use std::os::fd::AsFd;

use antiphon_linux::files::Way;

use super::Async;
use crate::fiber::{Suspends, Until, Waited};

impl<T: AsFd> Async<T> {
    /// Reads through the ring, as `read` does. Returns `None` if there is no ring, or the caller is
    /// not a fiber.
    ///
    /// # Errors
    ///
    /// The errors of `read`; and `WouldBlock` when the time is over.
    pub(super) fn receive(
        &self,
        buffer: &mut [u8],
        until: &Until<'_>,
        read: impl FnOnce(&T, &mut [u8]) -> io::Result<usize>,
    ) -> Option<io::Result<usize>> {
        let file = self.get_ref();
        let waited = Waited { seats: &self.seats, file: file.as_fd(), way: Way::Read, until };
        Suspends::here()?.receive(waited, buffer, |buffer| read(file, buffer))
    }

    /// Writes through the ring, as `write` does. Returns `None` as [`receive`](Self::receive) does.
    ///
    /// # Errors
    ///
    /// The errors of `write`; and `WouldBlock` when the time is over.
    pub(super) fn send(
        &self,
        bytes: &[u8],
        until: &Until<'_>,
        write: impl FnOnce(&T, &[u8]) -> io::Result<usize>,
    ) -> Option<io::Result<usize>> {
        let file = self.get_ref();
        let waited = Waited { seats: &self.seats, file: file.as_fd(), way: Way::Write, until };
        Suspends::here()?.send(waited, bytes, |bytes| write(file, bytes))
    }
}

//! A fiber that the ring of its thread serves.

use std::io;
use std::os::fd::AsFd;

use antiphon_linux::files::Way;

use super::Async;
use crate::fiber::{Suspends, Until, Waited};

impl<T: AsFd> Async<T> {
    /// Reads by the ring, as `read` does; `None`: there is no ring, or no fiber.
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

    /// Writes by the ring, as `write` does; `None` as in [`receive`](Self::receive).
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

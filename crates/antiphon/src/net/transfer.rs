//! A fiber that the ring of its thread serves.

use std::io;
use std::os::fd::AsFd;

use antiphon_linux::files::Way;

use super::Async;
use crate::fiber::{Suspends, Until, Waited};

impl<T: AsFd> Async<T> {
    /// As of `read`; `None`: there is no ring, or no fiber.
    ///
    /// # Errors
    ///
    /// As of that; and `WouldBlock` when the time is over.
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

    /// As of `write`, and of [`receive`](Self::receive).
    ///
    /// # Errors
    ///
    /// As of that.
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

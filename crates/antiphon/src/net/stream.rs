//! TCP connections.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{self, Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use antiphon_linux::files::{Way, connect};

use super::options::options;
use super::timed::timed;
use super::{Async, Timeout, first};
use crate::cancel::Token;
use crate::fiber::Until;

/// A TCP connection, like [`std::net::TcpStream`]. A waiting fiber is suspended.
///
/// As in `std`, `&TcpStream` reads and writes, too: a fiber of one thread may read while a fiber of
/// another writes.
#[derive(Debug)]
pub struct TcpStream {
    socket: Async<net::TcpStream>,
    read_timeout: Timeout,
    write_timeout: Timeout,
}

impl TcpStream {
    /// Connects to the first of the addresses that works.
    ///
    /// # Errors
    ///
    /// The error of the system for the last address; or an error if there is no address.
    pub fn connect(addresses: impl ToSocketAddrs) -> io::Result<Self> {
        first(addresses, |address| Self::connect_within(&address, None, None))
    }

    /// Connects like [`connect`](Self::connect), but gives up when the token is cancelled. The
    /// token also ends later waits of the connection ([`set_token`](Self::set_token)).
    ///
    /// # Errors
    ///
    /// As for `connect`; or [`Cancelled`](crate::cancel::Cancelled::is).
    pub fn connect_by(addresses: impl ToSocketAddrs, token: &Token) -> io::Result<Self> {
        first(addresses, |address| Self::connect_within(&address, None, Some(token)))
    }

    /// Connects like [`connect`](Self::connect), but gives up after `timeout`.
    ///
    /// # Errors
    ///
    /// `TimedOut` if it takes longer; `InvalidInput` if the timeout is zero.
    pub fn connect_timeout(address: &SocketAddr, timeout: Duration) -> io::Result<Self> {
        if timeout.is_zero() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "a timeout of zero"));
        }
        Self::connect_within(address, Some(timeout), None)
    }

    fn connect_within(
        address: &SocketAddr,
        timeout: Option<Duration>,
        token: Option<&Token>,
    ) -> io::Result<Self> {
        token.map_or(Ok(()), Token::check)?;
        let mut stream = Self::of_nonblocking(connect(address)?);
        stream.set_token(token);
        stream.socket.ready(Way::Write, timeout).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
            _ => error,
        })?;
        match stream.get_ref().take_error()? {
            Some(error) => Err(error),
            None => Ok(stream),
        }
    }

    options! {
        /// Returns the address of the peer, if it is still connected.
        fn peer_addr() -> SocketAddr;
        /// Returns the local address.
        fn local_addr() -> SocketAddr;
        /// Shuts down reading, writing or both, for all handles, and ends their waits for these, if
        /// there is a connection.
        fn shutdown(how: Shutdown) -> ();
        /// Sets whether small writes are sent at once (`TCP_NODELAY`).
        fn set_nodelay(nodelay: bool) -> ();
    }

    /// Reads without consuming: the next read returns the same bytes.
    ///
    /// # Errors
    ///
    /// The error of the system; `WouldBlock` after the read timeout.
    pub fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let timeout = self.read_timeout.get();
        self.socket.until(Way::Read, timeout, |socket| socket.peek(buffer), |_| false)
    }

    /// Reads into a buffer of `room` bytes. A shorter read means that there were no more.
    fn reads(
        &self,
        room: usize,
        until: &Until<'_>,
        read: impl FnMut(&net::TcpStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        if room == 0 {
            return Ok(0);
        }
        // A result of 0 bytes is the end, which is reported once.
        let drained = |&read: &usize| 0 < read && read < room;
        self.socket.until_by(Way::Read, until, read, drained)
    }

    /// Writes `bytes` bytes. A shorter write means that there was no more room.
    fn writes(
        &self,
        bytes: usize,
        until: &Until<'_>,
        write: impl FnMut(&net::TcpStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        if bytes == 0 {
            return Ok(0);
        }
        let full = |&written: &usize| 0 < written && written < bytes;
        self.socket.until_by(Way::Write, until, write, full)
    }
}

timed! {
    TcpStream:
    /// Like [`Async::set_token`]. If a `write_all` is cancelled, a part may have been sent.
    fn set_token;
    /// Returns the socket itself, for its other options. Its own calls don't wait, but fail with
    /// `WouldBlock` instead.
    fn get_ref;
    /// Makes another handle of the connection, with the present timeouts and token.
    fn try_clone;
    /// Sets the timeout of reads, after which a read fails with `WouldBlock`, as in `std`. `None`
    /// means no timeout.
    fn set_read_timeout;
    /// Sets the timeout of writes, as for [reads](Self::set_read_timeout).
    fn set_write_timeout;
    /// Returns the socket, in blocking mode again, which also affects its clones: see
    /// [`Async::into_inner`].
    fn into_std;
}

impl Read for &TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.within(self.read_timeout.get(), |until| {
            #[cfg(feature = "io_uring")]
            if let Some(read) = self.socket.receive(buffer, until, |mut it, room| it.read(room)) {
                return read;
            }
            self.reads(buffer.len(), until, |mut socket| socket.read(buffer))
        })
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let room = buffers.iter().map(|buffer| buffer.len()).sum();
        self.socket.within(self.read_timeout.get(), |until| {
            self.reads(room, until, |mut socket| socket.read_vectored(buffers))
        })
    }
}

impl Write for &TcpStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.socket.within(self.write_timeout.get(), |until| {
            #[cfg(feature = "io_uring")]
            if let Some(written) = self.socket.send(buffer, until, |mut it, bytes| it.write(bytes))
            {
                return written;
            }
            self.writes(buffer.len(), until, |mut socket| socket.write(buffer))
        })
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        let bytes = buffers.iter().map(|buffer| buffer.len()).sum();
        self.socket.within(self.write_timeout.get(), |until| {
            self.writes(bytes, until, |mut socket| socket.write_vectored(buffers))
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&*self).read_vectored(buffers)
    }
}

impl Write for TcpStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        (&*self).write(buffer)
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(buffers)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

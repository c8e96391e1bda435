//! UDP sockets.

use std::io;
use std::net::{self, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use antiphon_linux::files::Way;

use super::options::options;
use super::timed::timed;
use super::{Async, Timeout, first};
use crate::cancel::Token;

/// A UDP socket, like [`std::net::UdpSocket`]. A waiting fiber is suspended.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Async<net::UdpSocket>,
    read_timeout: Timeout,
    write_timeout: Timeout,
}

impl UdpSocket {
    /// Binds to the first of the addresses that works.
    ///
    /// # Errors
    ///
    /// The error of the system for the last address; or an error if there is no address.
    pub fn bind(addresses: impl ToSocketAddrs) -> io::Result<Self> {
        net::UdpSocket::bind(addresses)?.try_into()
    }

    /// Connects to the first of the addresses that works: from now on the socket sends to this
    /// address, and receives only from it.
    ///
    /// # Errors
    ///
    /// The error of the system for the last address; or an error if there is no address.
    pub fn connect(&self, addresses: impl ToSocketAddrs) -> io::Result<()> {
        self.socket.get_ref().connect(addresses)
    }

    /// Sends a datagram to the [connected](Self::connect) address; returns the number of bytes
    /// sent.
    ///
    /// # Errors
    ///
    /// The error of the system: for example, that the datagram is too long, or that an earlier
    /// datagram had no receiver.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.within(self.write_timeout.get(), |until| {
            #[cfg(feature = "io_uring")]
            if let Some(sent) = self.socket.send(bytes, until, |socket, bytes| socket.send(bytes)) {
                return sent;
            }
            self.socket.until_by(Way::Write, until, |socket| socket.send(bytes), |_| false)
        })
    }

    /// Sends a datagram to the first of the addresses that works.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send); or an error if there is no address.
    pub fn send_to(&self, bytes: &[u8], addresses: impl ToSocketAddrs) -> io::Result<usize> {
        let send = |address| {
            let timeout = self.write_timeout.get();
            self.socket.until(Way::Write, timeout, |it| it.send_to(bytes, address), |_| false)
        };
        first(addresses, send)
    }

    /// Waits for a datagram from the [connected](Self::connect) address; returns its length. A
    /// datagram that is longer than the buffer is cut.
    ///
    /// # Errors
    ///
    /// The error of the system: for example, that an earlier datagram had no receiver.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.within(self.read_timeout.get(), |until| {
            #[cfg(feature = "io_uring")]
            if let Some(received) =
                self.socket.receive(buffer, until, |socket, room| socket.recv(room))
            {
                return received;
            }
            self.socket.until_by(Way::Read, until, |socket| socket.recv(buffer), |_| false)
        })
    }

    /// Like [`recv`](Self::recv), but from any address, which is returned, too.
    ///
    /// # Errors
    ///
    /// As for [`recv`](Self::recv).
    pub fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.reads(|socket| socket.recv_from(buffer))
    }

    /// Like [`recv_from`](Self::recv_from), but does not consume the datagram.
    ///
    /// # Errors
    ///
    /// As for [`recv`](Self::recv).
    pub fn peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.reads(|socket| socket.peek_from(buffer))
    }

    /// Like [`recv`](Self::recv), but does not consume the datagram.
    ///
    /// # Errors
    ///
    /// As for [`recv`](Self::recv).
    pub fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads(|socket| socket.peek(buffer))
    }

    options! {
        /// Returns the local address.
        fn local_addr() -> SocketAddr;
        /// Returns the address to which it is [connected](Self::connect).
        fn peer_addr() -> SocketAddr;
    }

    fn reads<R>(&self, read: impl FnMut(&net::UdpSocket) -> io::Result<R>) -> io::Result<R> {
        self.socket.until(Way::Read, self.read_timeout.get(), read, |_| false)
    }
}

timed! {
    UdpSocket:
    /// Like [`Async::set_token`].
    fn set_token;
    /// Returns the socket itself, for its other options:
    ///
    /// ```
    /// use antiphon::net::UdpSocket;
    ///
    /// let socket = UdpSocket::bind("127.0.0.1:0")?;
    /// socket.get_ref().set_broadcast(true)?;
    /// assert!(socket.get_ref().broadcast()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// Its own calls don't wait, but fail with `WouldBlock` instead.
    fn get_ref;
    /// Makes another handle of the socket, with the present timeouts and token. Each datagram goes
    /// to one of the handles.
    fn try_clone;
    /// Sets the timeout of receives, after which a receive fails with `WouldBlock`, as in `std`.
    /// `None` means no timeout.
    fn set_read_timeout;
    /// Sets the timeout of sends, as for [receives](Self::set_read_timeout).
    fn set_write_timeout;
    /// Returns the socket, in blocking mode again: see [`Async::into_inner`].
    fn into_std;
}

//! Datagrams.

use std::io;
use std::net::{self, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use antiphon_linux::files::Way;

use super::options::options;
use super::timed::timed;
use super::{Async, Timeout, first};
use crate::cancel::Token;

/// A UDP socket: [`std::net::UdpSocket`], for which a fiber waits.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Async<net::UdpSocket>,
    read_timeout: Timeout,
    write_timeout: Timeout,
}

impl UdpSocket {
    /// A socket of the first of the addresses that can be.
    ///
    /// # Errors
    ///
    /// What the system says of the last address; that there is none.
    pub fn bind(addresses: impl ToSocketAddrs) -> io::Result<Self> {
        net::UdpSocket::bind(addresses)?.try_into()
    }

    /// Sends to this address, and receives from it only, from now on. The first of them that can
    /// be.
    ///
    /// # Errors
    ///
    /// What the system says of the last address; that there is none.
    pub fn connect(&self, addresses: impl ToSocketAddrs) -> io::Result<()> {
        self.socket.get_ref().connect(addresses)
    }

    /// Sends a datagram to where it is [connected](Self::connect): how many bytes were sent.
    ///
    /// # Errors
    ///
    /// What the system says: as that it is too long, or that nobody received an earlier one.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.within(self.write_timeout.get(), |until| {
            #[cfg(feature = "io_uring")]
            if let Some(sent) = self.socket.send(bytes, until, |socket, bytes| socket.send(bytes)) {
                return sent;
            }
            self.socket.until_by(Way::Write, until, |socket| socket.send(bytes), |_| false)
        })
    }

    /// Sends a datagram to the first of the addresses that can be.
    ///
    /// # Errors
    ///
    /// As of [`send`](Self::send); that there is no address.
    pub fn send_to(&self, bytes: &[u8], addresses: impl ToSocketAddrs) -> io::Result<usize> {
        let send = |address| {
            let timeout = self.write_timeout.get();
            self.socket.until(Way::Write, timeout, |it| it.send_to(bytes, address), |_| false)
        };
        first(addresses, send)
    }

    /// Waits for a datagram from where it is [connected](Self::connect): its length; what is longer
    /// than the buffer is cut.
    ///
    /// # Errors
    ///
    /// What the system says: as that nobody received what was sent.
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

    /// As [`recv`](Self::recv), from anywhere, and from where.
    ///
    /// # Errors
    ///
    /// As of that.
    pub fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.reads(|socket| socket.recv_from(buffer))
    }

    /// As [`recv_from`](Self::recv_from), and leaves it to be received again.
    ///
    /// # Errors
    ///
    /// As of that.
    pub fn peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.reads(|socket| socket.peek_from(buffer))
    }

    /// As [`recv`](Self::recv), and leaves it to be received again.
    ///
    /// # Errors
    ///
    /// As of that.
    pub fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads(|socket| socket.peek(buffer))
    }

    options! {
        socket:
        /// The address of this end.
        fn local_addr() -> SocketAddr;
        /// The address that it is [connected](Self::connect) to.
        fn peer_addr() -> SocketAddr;
        /// Whether it may send to broadcast addresses (`SO_BROADCAST`).
        fn set_broadcast(broadcast: bool) -> ();
        /// What was [set](Self::set_broadcast).
        fn broadcast() -> bool;
        /// How many routers what is sent passes at the most (`IP_TTL`).
        fn set_ttl(routers: u32) -> ();
        /// What was [set](Self::set_ttl).
        fn ttl() -> u32;
        /// Has it receive what is sent to this group, by the interface that has that address.
        fn join_multicast_v4(group: &Ipv4Addr, interface: &Ipv4Addr) -> ();
        /// Ends [that](Self::join_multicast_v4).
        fn leave_multicast_v4(group: &Ipv4Addr, interface: &Ipv4Addr) -> ();
        /// Has it receive what is sent to this group, by the interface of that number; 0 is any.
        fn join_multicast_v6(group: &Ipv6Addr, interface: u32) -> ();
        /// Ends [that](Self::join_multicast_v6).
        fn leave_multicast_v6(group: &Ipv6Addr, interface: u32) -> ();
        /// Whether this machine has what it sends to groups, too (`IP_MULTICAST_LOOP`).
        fn set_multicast_loop_v4(loops: bool) -> ();
        /// What was [set](Self::set_multicast_loop_v4).
        fn multicast_loop_v4() -> bool;
        /// As [`set_multicast_loop_v4`](Self::set_multicast_loop_v4), of IPv6.
        fn set_multicast_loop_v6(loops: bool) -> ();
        /// What was [set](Self::set_multicast_loop_v6).
        fn multicast_loop_v6() -> bool;
        /// How many routers what is sent to groups passes at the most (`IP_MULTICAST_TTL`).
        fn set_multicast_ttl_v4(routers: u32) -> ();
        /// What was [set](Self::set_multicast_ttl_v4).
        fn multicast_ttl_v4() -> u32;
        /// The error that the socket has, which is gone then.
        fn take_error() -> Option<io::Error>;
    }

    fn reads<R>(&self, read: impl FnMut(&net::UdpSocket) -> io::Result<R>) -> io::Result<R> {
        self.socket.until(Way::Read, self.read_timeout.get(), read, |_| false)
    }
}

timed! {
    UdpSocket:
    /// As of [`Async::set_token`].
    fn set_token;
    /// Another handle of it, with the same timeouts and token as of now: each datagram goes to one.
    fn try_clone;
    /// How long one waits for a datagram at the most: then it is a `WouldBlock`, as in `std`.
    /// `None`: for ever.
    fn set_read_timeout;
    /// How long one waits for room to send, as of [datagrams](Self::set_read_timeout).
    fn set_write_timeout;
    /// The socket, which blocks again: see [`Async::into_inner`].
    fn into_std;
}

//! TCP listeners.

use std::io;
use std::iter::FusedIterator;
use std::net::{self, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use antiphon_linux::files::{Way, set_backlog};

use super::{Async, TcpStream};
use crate::cancel::Token;

/// Accepts TCP connections, like [`std::net::TcpListener`]. A waiting fiber is suspended.
#[derive(Debug)]
pub struct TcpListener(Async<net::TcpListener>);

/// An iterator over incoming connections: see [`TcpListener::incoming`].
#[derive(Debug)]
pub struct Incoming<'a>(&'a TcpListener);

/// Maximum number of connections that wait to be accepted, if the system allows it; as in Go.
const BACKLOG: i32 = 4096;

impl TcpListener {
    /// Listens on the first of the addresses that works.
    ///
    /// # Errors
    ///
    /// The error of the system for the last address; or an error if there is no address.
    pub fn bind(addresses: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = net::TcpListener::bind(addresses)?;
        set_backlog(listener.as_fd(), BACKLOG)?;
        listener.try_into()
    }

    /// Waits for a connection; returns it with the address of its peer.
    ///
    /// # Errors
    ///
    /// The error of the system: for example, that too many files are open, or that the connection
    /// is gone already.
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let accept = |listener: &net::TcpListener| listener.accept();
        let (stream, from) = self.0.until(Way::Read, None, accept, |_| false)?;
        Ok((stream.try_into()?, from))
    }

    /// Like [`Async::set_token`]. An accepted connection has no token: give it a
    /// [child](Token::child) if it needs one.
    pub fn set_token(&mut self, token: Option<&Token>) {
        self.0.set_token(token);
    }

    /// Returns the token that was [set](Self::set_token).
    #[must_use]
    pub fn token(&self) -> Option<&Token> {
        self.0.token()
    }

    /// Returns an endless iterator over incoming connections, which waits for each. If a token is
    /// set, stop at the first error for which [`Cancelled::is`](crate::cancel::Cancelled::is) is
    /// true: no connections follow.
    #[must_use]
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming(self)
    }

    /// Returns the address on which it listens.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.get_ref().local_addr()
    }

    /// Returns the socket itself, for its options. Its own calls don't wait, but fail with
    /// `WouldBlock` instead.
    #[must_use]
    pub fn get_ref(&self) -> &net::TcpListener {
        self.0.get_ref()
    }

    /// Makes another handle of the listener, with the present token. Each connection goes to one of
    /// the handles.
    ///
    /// # Errors
    ///
    /// If too many files are open.
    pub fn try_clone(&self) -> io::Result<Self> {
        let mut clone = Self(Async::of_nonblocking(self.0.get_ref().try_clone()?));
        clone.set_token(self.token());
        Ok(clone)
    }

    /// Returns the socket, in blocking mode again, which also affects its clones: see
    /// [`Async::into_inner`].
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    pub fn into_std(self) -> io::Result<net::TcpListener> {
        self.0.into_inner()
    }
}

impl TryFrom<net::TcpListener> for TcpListener {
    type Error = io::Error;

    fn try_from(listener: net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self(Async::of_nonblocking(listener)))
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for TcpListener {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Iterator for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.accept().map(|(stream, _)| stream))
    }
}

impl FusedIterator for Incoming<'_> {}

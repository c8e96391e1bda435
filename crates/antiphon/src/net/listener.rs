//! Where connections come in.

use std::io;
use std::iter::FusedIterator;
use std::net::{self, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use antiphon_linux::files::{Way, set_backlog};

use super::options::options;
use super::{Async, TcpStream};
use crate::cancel::Token;

/// Accepts TCP connections: [`std::net::TcpListener`], for which a fiber waits.
#[derive(Debug)]
pub struct TcpListener(Async<net::TcpListener>);

/// The connections that come in: see [`TcpListener::incoming`].
#[derive(Debug)]
pub struct Incoming<'a>(&'a TcpListener);

/// How many connections wait to be accepted, if the system lets so many: as in Go.
const BACKLOG: i32 = 4096;

impl TcpListener {
    /// Listens on the first of the addresses that can be.
    ///
    /// # Errors
    ///
    /// What the system says of the last address; that there is none.
    pub fn bind(addresses: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = net::TcpListener::bind(addresses)?;
        set_backlog(listener.as_fd(), BACKLOG)?;
        listener.try_into()
    }

    /// Waits for a connection: and whose it is.
    ///
    /// # Errors
    ///
    /// What the system says: too many files are open; the connection has gone meanwhile.
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let accept = |listener: &net::TcpListener| listener.accept();
        let (stream, from) = self.0.until(Way::Read, None, accept, |_| false)?;
        Ok((stream.try_into()?, from))
    }

    /// As of [`Async::set_token`]. What was accepted has no token: give it a [child](Token::child),
    /// if it is to have one.
    pub fn set_token(&mut self, token: Option<&Token>) {
        self.0.set_token(token);
    }

    /// What was [set](Self::set_token).
    #[must_use]
    pub fn token(&self) -> Option<&Token> {
        self.0.token()
    }

    /// The connections that come in, without an end; waits for each. Who has set a token ends with
    /// the first error that is [`Cancelled`](crate::cancel::Cancelled::is): there are no others.
    #[must_use]
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming(self)
    }

    options! {
        0:
        /// The address that it listens on.
        fn local_addr() -> SocketAddr;
        /// How many routers what is sent passes at the most (`IP_TTL`).
        fn set_ttl(routers: u32) -> ();
        /// What was [set](Self::set_ttl).
        fn ttl() -> u32;
        /// The error that the socket has, which is gone then.
        fn take_error() -> Option<io::Error>;
    }

    /// Another handle of it, with the same token as of now: each connection goes to one.
    ///
    /// # Errors
    ///
    /// Too many files are open.
    pub fn try_clone(&self) -> io::Result<Self> {
        let mut clone = Self(Async::of_nonblocking(self.0.get_ref().try_clone()?));
        clone.set_token(self.token());
        Ok(clone)
    }

    /// The socket, which blocks again, as do its clones: see [`Async::into_inner`].
    ///
    /// # Errors
    ///
    /// What the system says.
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

//! Sockets for fibers: a fiber that waits for a socket is suspended, and its thread runs other
//! fibers meanwhile.
//!
//! ```
//! use antiphon::{fiber, net::{TcpListener, TcpStream}, pool::Pool};
//! use std::io::{Read, Write};
//!
//! // SAFETY: no fiber waits while it makes a thread-local.
//! let pool = unsafe { Pool::builder().threads(1).fibers(fiber::STACK_BYTES) }.build()?;
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! let address = listener.local_addr()?;
//! let server = pool.spawn(move || {
//!     let (mut stream, _) = listener.accept()?;
//!     std::io::copy(&mut stream.try_clone()?, &mut stream)
//! });
//! // On this thread, which blocks; or in another fiber, which does not block one.
//! let mut client = TcpStream::connect(address)?;
//! client.write_all(b"to and fro")?;
//! client.shutdown(std::net::Shutdown::Write)?;
//! let mut back = String::new();
//! client.read_to_string(&mut back)?;
//! assert_eq!(back, "to and fro");
//! assert_eq!(server.join().unwrap()?, 10);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! [`TcpListener`], [`TcpStream`] and [`UdpSocket`] have the calls and errors of those in
//! `std::net`. Their options are those of the `std` socket that `get_ref` returns; `into_std`
//! returns that socket by value. Leave it non-blocking, because a call that blocks in the system
//! blocks all fibers of the thread. [`Async`] wraps any other file that can be waited for: a Unix
//! socket, a pipe, an eventfd. Threads may use these types, too, and block; and threads and fibers
//! may share one socket. All types give access to their descriptor ([`AsFd`](std::os::fd::AsFd)),
//! with which crates such as `socket2` set the options that are missing in `std`.
//!
//! # What to know
//!
//! - **A wait costs a fiber no system call** except its share of an `epoll_wait`, which the thread
//!   calls when none of its fibers can run, or every 200 µs while some can. The first wait of a
//!   thread for a socket registers the socket, which costs one `epoll_ctl`.
//! - **With the feature `io_uring`** the kernel reads for fibers, and writes for them if several
//!   write at the same time; one system call serves many transfers. The kernel must allow the
//!   process to have rings: [`backend`] returns whether it does. Nothing else differs.
//! - **A token ends waits** ([`cancel`](crate::cancel)) of the handle that it was set for with
//!   `set_token`, as a timeout does, but with another error.
//! - **Each thread waits for the sockets of its own fibers.** If one of them computes for long, the
//!   thread is late to find that sockets are ready.
//! - **Name lookups** are made by the system, which blocks the thread: pass an address, or look
//!   names up in [`pool::blocking`](crate::pool::blocking).
//! - **Files on a disk are always ready**, and block the thread. [`Async`] refuses to wait for
//!   them.
//! - **While a panic unwinds** a fiber, its waits block the thread.

mod bell;
mod listener;
mod options;
mod source;
mod stream;
mod timed;
#[cfg(feature = "io_uring")]
mod transfer;
mod udp;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::deadline::nanos;

pub use crate::backend::{Backend, backend};
pub use listener::{Incoming, TcpListener};
pub use source::Async;
pub use stream::TcpStream;
pub use udp::UdpSocket;

/// The longest wait of a call, in nanoseconds; 0 means no limit.
#[derive(Debug, Default)]
struct Timeout(AtomicU64);

impl Timeout {
    fn get(&self) -> Option<Duration> {
        // Relaxed, here and below: no other data depends on the number.
        let ns = self.0.load(Relaxed);
        (ns != 0).then(|| Duration::from_nanos(ns))
    }

    fn set(&self, timeout: Option<Duration>) -> io::Result<()> {
        if timeout == Some(Duration::ZERO) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a timeout of zero: None waits for ever",
            ));
        }
        let ns = timeout.map_or(0, nanos);
        self.0.store(ns, Relaxed);
        Ok(())
    }
}

/// Calls `make` with the addresses in order, and returns the first success, or the last error.
fn first<R>(
    addresses: impl ToSocketAddrs,
    mut make: impl FnMut(SocketAddr) -> io::Result<R>,
) -> io::Result<R> {
    let mut failed = None;
    for address in addresses.to_socket_addrs()? {
        match make(address) {
            Ok(made) => return Ok(made),
            Err(error) => failed = Some(error),
        }
    }
    let none = || io::Error::new(io::ErrorKind::InvalidInput, "no addresses to choose from");
    Err(failed.unwrap_or_else(none))
}

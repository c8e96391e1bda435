//! A non-blocking `connect(2)`.

use std::io;
use std::mem::size_of_val;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Begins a connection. The socket is non-blocking, and becomes writable when it is connected or
/// the connection has failed ([`TcpStream::take_error`]).
///
/// # Errors
///
/// The kernel's immediate error: the address is unreachable; too many files are open.
pub fn connect(address: &SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes only numbers.
    let socket = unsafe { libc::socket(family, kind, 0) };
    if socket == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: opened above, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let begun = match address {
        SocketAddr::V4(address) => connect_to(
            &socket,
            &libc::sockaddr_in {
                sin_family: libc::AF_INET as _,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                sin_zero: [0; 8],
            },
        ),
        SocketAddr::V6(address) => connect_to(
            &socket,
            &libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as _,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                sin6_scope_id: address.scope_id(),
            },
        ),
    };
    match begun {
        // After a signal, the connection attempt goes on, as after `EINPROGRESS`.
        Err(error) if !matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EINTR)) => {
            Err(error)
        }
        _ => Ok(TcpStream::from(socket)),
    }
}

fn connect_to<A>(socket: &OwnedFd, address: &A) -> io::Result<()> {
    let (at, size) = (core::ptr::from_ref(address).cast(), size_of_val(address));
    // SAFETY: the socket is open, and the address has that size and its stated family.
    match unsafe { libc::connect(socket.as_raw_fd(), at, size as libc::socklen_t) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    use super::super::{Way, wait};
    use super::*;

    #[test]
    fn a_connection_is_made_of_both_families() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let listener = match TcpListener::bind(local) {
                Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => continue,
                bound => bound.expect("a port"),
            };
            let address = listener.local_addr().expect("bound");
            let stream = connect(&address).expect("there is a listener");
            let (_accepted, from) = listener.accept().expect("a connection");
            while !wait(stream.as_fd(), Way::Write, None).expect("a wait") {}
            assert!(stream.take_error().expect("a socket").is_none());
            assert_eq!(stream.local_addr().expect("connected"), from);
            assert_eq!(stream.peer_addr().expect("connected"), address);
        }
    }
}

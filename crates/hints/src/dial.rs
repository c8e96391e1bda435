//! Connecting to a socket without waiting, or for a bounded time: the queue of a listener may be
//! full.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd as _, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::ptr;
use std::time::{Duration, Instant};

/// Connects without waiting.
///
/// # Errors
///
/// There is no listener, or its queue is full (`WouldBlock`).
pub(crate) fn at_once(path: &Path) -> io::Result<UnixStream> {
    let stream = socket(libc::SOCK_NONBLOCK)?;
    connect(&stream, path)?;
    Ok(stream)
}

/// The end of a wait for a peer.
pub(crate) struct Limit {
    begun: Instant,
    patience: Duration,
}

impl Limit {
    pub(crate) fn of(patience: Duration) -> Self {
        Self { begun: Instant::now(), patience }
    }

    /// Connects, and waits for a place in the listener's queue.
    ///
    /// # Errors
    ///
    /// There is no listener, or the time is over (`TimedOut`).
    pub(crate) fn dial(&self, path: &Path) -> io::Result<UnixStream> {
        let stream = socket(0)?;
        self.retry(|left| {
            // It bounds the connection, too.
            stream.set_write_timeout(Some(left))?;
            connect(&stream, path)
        })?;
        Ok(stream)
    }

    /// Calls what blocks for a given time at most, again after a signal.
    ///
    /// # Errors
    ///
    /// As the call, and `TimedOut` if the time is over.
    pub(crate) fn retry<T>(
        &self,
        mut call: impl FnMut(Duration) -> io::Result<T>,
    ) -> io::Result<T> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "the scheduler does not answer");
        loop {
            let left = self.patience.saturating_sub(self.begun.elapsed());
            // A limit of zero would be none.
            if left.is_zero() {
                return Err(late());
            }
            match call(left) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(late()),
                done => return done,
            }
        }
    }
}

fn socket(flags: libc::c_int) -> io::Result<UnixStream> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | flags;
    // SAFETY: makes a descriptor, which nothing else knows.
    let file = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    Ok(UnixStream::from(unsafe { OwnedFd::from_raw_fd(file) }))
}

fn connect(stream: &UnixStream, path: &Path) -> io::Result<()> {
    let path = path.as_os_str().as_bytes();
    // SAFETY: all zero is an address.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // The last byte ends the path.
    if path.len() >= address.sun_path.len() || path.contains(&0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in address.sun_path.iter_mut().zip(path) {
        *to = *from as libc::c_char;
    }
    let bytes = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: reads an address of that size.
    let done = unsafe { libc::connect(stream.as_raw_fd(), ptr::from_ref(&address).cast(), bytes) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc;

    use super::*;

    /// For a host under load.
    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn a_listener_whose_queue_is_full_does_not_hold_a_caller_up() {
        let path = std::env::temp_dir().join(format!("antiphon-full-{}", std::process::id()));
        let listener = UnixListener::bind(&path).expect("a socket");
        // SAFETY: shortens the queue of a descriptor that is open.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
        let mut waiting = Vec::new();
        let full = loop {
            match at_once(&path) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        let (tell, told) = mpsc::channel();
        let socket = path.clone();
        std::thread::spawn(move || {
            let done = Limit::of(Duration::from_millis(20)).dial(&socket).map(drop);
            tell.send(done.map_err(|error| error.kind())).expect("it is waited for");
        });
        assert_eq!(told.recv_timeout(PATIENCE), Ok(Err(io::ErrorKind::TimedOut)));
        // With a place in the queue the same call succeeds.
        drop(listener.accept().expect("one waits"));
        Limit::of(PATIENCE).dial(&path).expect("a place");
        std::fs::remove_file(&path).expect("it is there");
    }

    #[test]
    fn a_call_is_repeated_after_a_signal_and_not_beyond_its_time() {
        let mut calls = 0;
        let done = Limit::of(PATIENCE).retry(|_| {
            calls += 1;
            if calls < 3 { Err(io::ErrorKind::Interrupted.into()) } else { Ok(calls) }
        });
        assert_eq!(done.ok(), Some(3));
        let over = Limit::of(Duration::ZERO).retry(|_| Ok(()));
        assert_eq!(over.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
    }
}

//! Takes the connections that wait at a listener, a bounded number at a time: the program is one
//! thread, and has other work to do while a process connects again and again.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};

/// How many connections are taken before the program does its other work.
pub const AT_ONCE: usize = 32;

/// Returns the connections that wait at a listener that does not block, [`AT_ONCE`] at most: the
/// others are taken the next time.
///
/// # Errors
///
/// As the system call.
pub fn take(listener: &UnixListener) -> io::Result<Vec<UnixStream>> {
    let mut taken = Vec::new();
    for _ in 0..AT_ONCE {
        match listener.accept() {
            Ok((stream, _)) => taken.push(stream),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            // The connection has ended before it was taken.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_connections_is_taken_in_parts() {
        let path = std::env::temp_dir().join(format!("antiphon-flood-{}", std::process::id()));
        let listener = UnixListener::bind(&path).expect("a socket");
        listener.set_nonblocking(true).expect("a socket");
        let connect = |_| UnixStream::connect(&path).expect("a place");
        let flood: Vec<_> = (0..AT_ONCE + 8).map(connect).collect();
        let turn = || take(&listener).expect("a listener").len();
        assert_eq!([turn(), turn(), turn()], [AT_ONCE, 8, 0]);
        drop(flood);
        std::fs::remove_file(&path).expect("it is there");
    }
}

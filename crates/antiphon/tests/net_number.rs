//! Reuse of a file descriptor's number. In a separate process: other tests would take the number.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use antiphon::fiber::STACK_BYTES;
use antiphon::net::{Async, TcpListener, TcpStream};
use antiphon::pool::Pool;

/// A file is closed while a clone of it stays open, and its number is given to another file.
#[test]
fn a_number_that_is_used_again_is_another_file() {
    // SAFETY: no fiber waits while it makes a thread-local.
    let pool = unsafe { Pool::builder().threads(1).fibers(STACK_BYTES) }.build().expect("fibers");
    let run = pool.spawn(|| {
        for _ in 0..20 {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let address = listener.local_addr().expect("bound");
            let one = TcpStream::connect(address).expect("it listens");
            let (other, _) = listener.accept().expect("a connection");
            one.set_read_timeout(Some(Duration::from_millis(1))).expect("a time");
            assert!((&one).read(&mut [0]).is_err());
            let (number, clone) = (one.as_fd().as_raw_fd(), one.try_clone().expect("a file"));
            drop(one);
            let (again, mut writes) = UnixStream::pair().expect("a pair");
            assert_eq!(again.as_raw_fd(), number);
            let mut again = Async::new(again).expect("a socket");
            (&other).write_all(b"to the clone").expect("room");
            writes.write_all(b"to the other").expect("room");
            let mut read = [0; 12];
            again.read_exact(&mut read).expect("bytes");
            assert_eq!(&read, b"to the other");
            (&clone).read_exact(&mut read).expect("bytes");
            assert_eq!(&read, b"to the clone");
        }
    });
    run.join().expect("no panic");
}

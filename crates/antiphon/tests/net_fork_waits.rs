//! Waits for sockets in the child of a fork. In a separate process, because it forks.

use std::io::{ErrorKind, Read, Write};
use std::process;
use std::time::Duration;

use antiphon::fiber::{STACK_BYTES, sleep};
use antiphon::net::{TcpListener, TcpStream};
use antiphon::pool::Pool;

const IN_CHILD: i32 = 7;

/// A child has copies of waiting fibers, for which the kernel does nothing: they wait until their
/// timeouts. The data goes to the parent.
#[test]
fn a_copy_of_a_wait_is_over_in_time_and_takes_nothing() {
    // SAFETY: no fiber waits while it makes a thread-local.
    let pool = unsafe { Pool::builder().threads(1).fibers(STACK_BYTES) }.build().expect("fibers");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let one = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    let (other, _) = listener.accept().expect("a connection");
    other.set_read_timeout(Some(Duration::from_millis(20))).expect("a time");
    let parent = process::id();
    let reader = pool.spawn(move || {
        let mut read = [0; 8];
        loop {
            let waited = (&other).read(&mut read);
            if process::id() != parent {
                let late = waited.is_err_and(|it| it.kind() == ErrorKind::WouldBlock);
                // A copy of a thread can't wait for files again.
                let refused = (&other).read(&mut read).is_err_and(|it| it.raw_os_error().is_none());
                // SAFETY: ends the process.
                unsafe { libc::_exit(if late && refused { IN_CHILD } else { 1 }) }
            }
            match waited {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read.map(|_| ()),
            }
        }
    });
    let fork = pool.spawn(|| {
        // Time for the other fiber to begin its wait.
        sleep(Duration::from_millis(5));
        // SAFETY: the child only uses the state of its one thread, and ends by itself.
        let child = unsafe { libc::fork() };
        if child == 0 {
            loop {
                sleep(Duration::from_millis(1));
            }
        }
        child
    });
    let (child, mut status) = (fork.join().expect("no panic"), 0);
    // SAFETY: a child of ours that was not waited for.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(libc::WEXITSTATUS(status), IN_CHILD, "{status}");
    (&one).write_all(b"bytes").expect("room");
    reader.join().expect("no panic").expect("what was sent");
}

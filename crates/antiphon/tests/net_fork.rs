//! Sockets in the child of a fork. In a separate process, because it forks.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use antiphon::fiber::{STACK_BYTES, sleep};
use antiphon::net::{TcpListener, TcpStream};
use antiphon::pool::Pool;

/// A child continues the fibers of the thread that has forked, and has their files.
#[test]
fn a_child_takes_nothing_from_its_parent() {
    // SAFETY: no fiber waits while it makes a thread-local.
    let pool = unsafe { Pool::builder().threads(1).fibers(STACK_BYTES) }.build().expect("fibers");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let one = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    let (other, _) = listener.accept().expect("a connection");
    let echo = pool.spawn(move || {
        let (mut byte, mut bytes) = ([0], 0);
        while (&other).read(&mut byte).expect("a byte or the end") != 0 {
            (&other).write_all(&byte).expect("room");
            bytes += 1;
        }
        bytes
    });
    let answers = || {
        (&one).write_all(b"x").expect("room");
        (&one).read_exact(&mut [0]).is_ok()
    };
    // The thread waits for files from now on.
    assert!(answers());
    let fork = pool.spawn(|| {
        // SAFETY: the child only uses the state of its one thread, and ends by itself or is killed.
        let child = unsafe { libc::fork() };
        if child == 0 {
            (0..10_000).for_each(|_| sleep(Duration::from_millis(1)));
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) }
        }
        child
    });
    let child = fork.join().expect("no panic");
    assert!(child > 0, "a child");
    // A long timeout: no answer comes if the child has taken the event.
    one.set_read_timeout(Some(Duration::from_secs(10))).expect("a time");
    let answered = (0..200).take_while(|_| {
        thread::sleep(Duration::from_micros(500));
        answers()
    });
    let answered = answered.count();
    // SAFETY: a child of ours that was not waited for.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    drop(one);
    // The parent has answered all messages, and the child's copy of the fiber none.
    assert_eq!((answered, echo.join().expect("no panic")), (200, 201));
}

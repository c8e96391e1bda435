//! Calls on sockets that a token ends.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::thread;
use std::time::Duration;

use antiphon::cancel::{Cancelled, Token};
use antiphon::fiber;
use antiphon::net::{Async, TcpStream, UdpSocket};

use super::{SHORT, fibers, in_fiber, listen, pair, pool};

const LONG: Duration = Duration::from_secs(3600);

/// Checks the error of a waiting call, in a fiber and on a thread, after another fiber or thread
/// has cancelled its token.
fn is_cancelled<F>(what: &str, prepared: impl Fn(&Token) -> F)
where
    F: FnOnce() -> io::Error + Send + 'static,
{
    let token = Token::new();
    let (pool, waits) = (pool(1), prepared(&token));
    let waiter = pool.spawn(waits);
    let inner = token.clone();
    let cancels = pool.spawn(move || {
        fiber::sleep(SHORT);
        inner.cancel();
    });
    cancels.join().expect("no panic");
    let error = waiter.join().expect("no panic");
    assert!(Cancelled::is(&error), "{what}, in a fiber: {error:?}");
    let token = Token::new();
    let waiter = thread::spawn(prepared(&token));
    thread::sleep(SHORT);
    token.cancel();
    let error = waiter.join().expect("no panic");
    assert!(Cancelled::is(&error), "{what}, on a thread: {error:?}");
    // The token is cancelled at its deadline, and before the call begins.
    for token in [Token::new().child_for(SHORT), token] {
        let error = in_fiber(prepared(&token));
        assert!(Cancelled::is(&error), "{what}, by a deadline: {error:?}");
        let error = prepared(&token)();
        assert!(Cancelled::is(&error), "{what}, too late: {error:?}");
    }
}

#[test]
fn who_reads_is_told() {
    is_cancelled("a read", |token| {
        let (one, mut other) = pair();
        other.set_token(Some(token));
        move || {
            let error = other.read(&mut [0; 9]).expect_err("nobody writes");
            drop(one);
            error
        }
    });
    is_cancelled("a pipe", |token| {
        let (reads, writes) = io::pipe().expect("a pipe");
        let mut reads = Async::new(reads).expect("a pipe");
        reads.set_token(Some(token));
        assert!(reads.token().is_some());
        move || {
            let error = reads.read_exact(&mut [0; 9]).expect_err("nobody writes");
            drop(writes);
            error
        }
    });
    is_cancelled("a datagram", |token| {
        let mut socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.set_token(Some(token));
        let socket = socket.try_clone().expect("a file");
        move || socket.recv(&mut [0; 9]).expect_err("nobody sends")
    });
    is_cancelled("a datagram from anywhere", |token| {
        let mut socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.set_token(Some(token));
        socket.set_read_timeout(Some(LONG)).expect("a time");
        move || socket.recv_from(&mut [0; 9]).expect_err("nobody sends")
    });
}

#[test]
fn who_writes_accepts_or_connects_is_told() {
    is_cancelled("a write", |token| {
        let (mut one, other) = pair();
        one.set_token(Some(token));
        let mut one = one.try_clone().expect("a file");
        move || {
            let error = one.write_all(&vec![0; 64 << 20]).expect_err("nobody reads");
            drop(other);
            error
        }
    });
    is_cancelled("to accept", |token| {
        let (mut listener, _) = listen();
        listener.set_token(Some(token));
        let listener = listener.try_clone().expect("a file");
        move || listener.incoming().next().expect("one").expect_err("nobody connects")
    });
    is_cancelled("to connect", |token| {
        use std::os::fd::AsFd;
        let (listener, address) = listen();
        antiphon_linux::files::set_backlog(listener.as_fd(), 0).expect("a listener");
        let token = token.clone();
        move || {
            let all: Result<Vec<_>, _> =
                (0..64).map(|_| TcpStream::connect_by(address, &token)).collect();
            drop(listener);
            all.expect_err("no room")
        }
    });
}

#[test]
fn who_is_cancelled_before_does_not_begin_to_connect() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let (address, token) = (listener.local_addr().expect("bound"), Token::new());
    let stream = TcpStream::connect_by(address, &token).expect("it listens");
    assert!(stream.token().is_some());
    listener.accept().expect("a connection");
    token.cancel();
    let error = TcpStream::connect_by(address, &token).expect_err("it is cancelled");
    assert!(Cancelled::is(&error), "{error}");
    listener.set_nonblocking(true).expect("a socket");
    assert_eq!(listener.accept().expect_err("nobody").kind(), io::ErrorKind::WouldBlock);
}

/// With a cancelled token nothing is read, even if there is data; without, all of it is.
#[test]
fn what_was_not_read_is_there() {
    let reads = || {
        let ((mut one, mut other), token) = (pair(), Token::new());
        one.write_all(b"first").expect("room");
        other.set_token(Some(&token.child()));
        let mut read = [0; 2];
        other.read_exact(&mut read).expect("bytes");
        token.cancel();
        assert!(Cancelled::is(&other.read(&mut read).expect_err("it is cancelled")));
        assert!(Cancelled::is(&other.peek(&mut read).expect_err("it is cancelled")));
        other.set_token(None);
        one.write_all(b"next").expect("room");
        let mut rest = [0; 7];
        other.read_exact(&mut rest).expect("bytes");
        assert_eq!((&read, &rest), (b"fi", b"rstnext"));
    };
    in_fiber(reads);
    reads();
}

/// Reads are cancelled while bytes arrive: each byte is read once.
#[test]
fn a_read_that_is_cancelled_loses_no_bytes() {
    const BYTES: usize = 2_000;
    for threads in [1, 2] {
        let (pool, (one, mut other)) = (pool(threads), pair());
        one.set_nodelay(true).expect("a socket");
        let tokens: Vec<_> = (0..BYTES / 4).map(|_| Token::new()).collect();
        let tokens = Arc::new(tokens);
        pool.scope(|scope| {
            scope.spawn(|| {
                for number in 0..BYTES {
                    (&one).write_all(&[number as u8]).expect("room");
                    fiber::sleep(Duration::from_micros(20 * (number % 4) as u64));
                }
                drop(one);
            });
            let each = tokens.clone();
            scope.spawn(move || {
                for token in each.iter() {
                    fiber::sleep(Duration::from_micros(100));
                    token.cancel();
                }
            });
            scope.spawn(|| {
                let (mut all, mut tokens) = (Vec::new(), tokens.iter());
                other.set_token(tokens.next());
                loop {
                    let mut buffer = [0; 3];
                    match other.read(&mut buffer) {
                        Ok(0) => break,
                        Ok(read) => all.extend_from_slice(&buffer[..read]),
                        Err(error) => {
                            assert!(Cancelled::is(&error), "{error}");
                            other.set_token(tokens.next());
                        }
                    }
                }
                let sent: Vec<_> = (0..BYTES).map(|number| number as u8).collect();
                assert!(all == sent, "{} of {BYTES} bytes", all.len());
            });
        });
    }
}

#[test]
fn many_are_told_at_once() {
    const FIBERS: usize = 200;
    let pool = fibers(2).room(FIBERS).build().expect("fibers");
    let token = Token::new();
    let (here, told) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let ends: Vec<_> = (0..FIBERS)
        .map(|number| {
            let (one, mut other) = pair();
            let own = token.child();
            other.set_token(Some(if number % 2 == 0 { &token } else { &own }));
            let (here, told) = (here.clone(), told.clone());
            drop(pool.spawn(move || {
                here.fetch_add(1, Relaxed);
                let error = other.read(&mut [0]).expect_err("nobody writes");
                told.fetch_add(usize::from(Cancelled::is(&error)), Relaxed);
                drop(own);
            }));
            one
        })
        .collect();
    while here.load(Relaxed) < FIBERS {
        thread::yield_now();
    }
    token.cancel();
    drop(pool);
    assert_eq!(told.load(Relaxed), FIBERS);
    drop(ends);
}

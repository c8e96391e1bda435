//! Sockets in a fiber and on a thread.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use antiphon::Event;
use antiphon::net::{Async, TcpStream, UdpSocket};

use super::{SHORT, in_fiber, listen, pair, pool};

#[test]
fn a_half_that_is_closed_is_the_end_of_reading_and_not_of_writing() {
    in_fiber(|| {
        let (mut one, mut other) = pair();
        one.write_all(b"question").expect("room");
        one.shutdown(Shutdown::Write).expect("connected");
        let mut read = String::new();
        other.read_to_string(&mut read).expect("the end");
        assert_eq!((read.as_str(), other.read(&mut [0; 9]).expect("the end")), ("question", 0));
        other.write_all(b"answer").expect("room");
        drop(other);
        let mut back = [0; 64];
        assert_eq!(one.read(&mut back).expect("an answer"), 6);
        assert_eq!(one.read(&mut back).expect("the end"), 0);
        assert_eq!(one.read(&mut []).expect("nothing asked for"), 0);
    });
}

/// A short read has waited once: the end arrives later, or had arrived before.
#[test]
fn the_end_is_found_behind_a_short_read() {
    let (one, other) = pair();
    let read = Arc::new(Event::new());
    let pool = pool(1);
    let reader = {
        let read = read.clone();
        pool.spawn(move || {
            let (mut other, mut buffer) = (other, [0; 64]);
            let first = other.read(&mut buffer).expect("a message");
            read.set();
            (first, other.read(&mut buffer).expect("the end"))
        })
    };
    thread::sleep(SHORT);
    (&one).write_all(b"abc").expect("room");
    read.wait();
    drop(one);
    assert_eq!(reader.join().expect("no panic"), (3, 0));
}

/// A read stops at urgent data, although there are more bytes behind it.
#[test]
fn what_is_behind_urgent_data_is_read() {
    let (mut one, other) = pair();
    let pool = pool(1);
    let reader = pool.spawn(move || {
        let mut all = Vec::new();
        while all.len() < 4 {
            let mut buffer = [0; 64];
            let read = (&other).read(&mut buffer).expect("bytes");
            all.extend_from_slice(&buffer[..read]);
        }
        all
    });
    thread::sleep(SHORT);
    one.write_all(b"ab").expect("room");
    let socket = one.as_fd().as_raw_fd();
    // SAFETY: an open socket, and one byte to read.
    let sent = unsafe { libc::send(socket, b"!".as_ptr().cast(), 1, libc::MSG_OOB) };
    assert_eq!(sent, 1);
    one.write_all(b"cd").expect("room");
    assert_eq!(reader.join().expect("no panic"), b"abcd");
}

#[test]
fn who_waits_for_too_long_is_told_so() {
    let waits = || {
        let (one, other) = pair();
        one.set_read_timeout(Some(SHORT)).expect("a time");
        assert_eq!(one.read_timeout().expect("a time"), Some(SHORT));
        for _ in 0..2 {
            let began = Instant::now();
            let error = (&one).read(&mut [0]).expect_err("nobody writes");
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            assert!(began.elapsed() >= SHORT);
        }
        one.set_write_timeout(Some(SHORT)).expect("a time");
        let error = (&one).write_all(&vec![0; 64 << 20]).expect_err("nobody reads");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        (&other).write_all(b"x").expect("room");
        assert_eq!((&one).read(&mut [0; 9]).expect("a byte"), 1);
        let error = one.set_read_timeout(Some(Duration::ZERO)).expect_err("no time");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    };
    in_fiber(waits);
    waits();
}

#[test]
fn who_connects_to_nobody_is_told_so() {
    let connects = || {
        let (listener, address) = listen();
        drop(listener);
        let error = TcpStream::connect(address).expect_err("nobody listens");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let error = TcpStream::connect_timeout(&address, Duration::ZERO).expect_err("no time");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let error = TcpStream::connect("127.0.0.1:x").expect_err("no port");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    };
    in_fiber(connects);
    connects();
}

/// A listener whose backlog is full answers no client.
#[test]
fn who_connects_for_too_long_is_told_so() {
    let connects = || {
        let (listener, address) = listen();
        antiphon_linux::files::set_backlog(listener.as_fd(), 0).expect("a listener");
        let open: Result<Vec<_>, _> =
            (0..64).map(|_| TcpStream::connect_timeout(&address, SHORT)).collect();
        assert_eq!(open.expect_err("no room").kind(), ErrorKind::TimedOut);
    };
    in_fiber(connects);
    connects();
}

#[test]
fn a_listener_that_is_gone_drops_who_was_not_accepted() {
    in_fiber(|| {
        let (listener, address) = listen();
        let mut waits = TcpStream::connect(address).expect("it listens");
        let clone = listener.try_clone().expect("a file");
        let mut accepted = TcpStream::connect(address).expect("it listens");
        let (first, from) = clone.accept().expect("a connection");
        assert_eq!(waits.local_addr().expect("connected"), from);
        drop((listener, clone));
        let error = accepted.read(&mut [0]).expect_err("it was dropped");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        drop(first);
        assert_eq!(waits.read(&mut [0]).expect("the end"), 0);
        let error = TcpStream::connect(address).expect_err("nobody listens");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn datagrams_are_sent_and_received() {
    let talks = || {
        let bind = || UdpSocket::bind("127.0.0.1:0").expect("a port");
        let (one, other) = (bind(), bind());
        let (here, there) = (one.local_addr().expect("a"), other.local_addr().expect("an address"));
        let mut buffer = [0; 16];
        other.set_read_timeout(Some(Duration::from_millis(1))).expect("a time");
        let error = other.recv_from(&mut buffer).expect_err("nobody sends");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        other.set_read_timeout(None).expect("no time");
        for message in [&b"one"[..], b"and", b"another"] {
            assert_eq!(one.send_to(message, there).expect("room"), message.len());
        }
        assert_eq!(other.peek_from(&mut buffer).expect("one"), (3, here));
        assert_eq!(other.recv_from(&mut buffer).expect("one"), (3, here));
        assert_eq!(&buffer[..3], b"one");
        other.connect(here).expect("an address");
        assert_eq!(other.peer_addr().expect("connected"), here);
        assert_eq!(other.recv(&mut buffer[..2]).expect("cut"), 2);
        assert_eq!(other.recv(&mut buffer).expect("one"), 7);
        assert_eq!(other.send(b"back").expect("room"), 4);
        assert_eq!(one.recv(&mut buffer).expect("one"), 4);
    };
    in_fiber(talks);
    talks();
}

#[test]
fn datagrams_go_from_fiber_to_fiber() {
    let pool = pool(2);
    let bind = || UdpSocket::bind("127.0.0.1:0").expect("a port");
    let (one, other) = (bind(), bind());
    one.connect(other.local_addr().expect("bound")).expect("an address");
    other.connect(one.local_addr().expect("bound")).expect("an address");
    pool.scope(|scope| {
        scope.spawn(|| {
            for number in 0..2_000_u32 {
                one.send(&number.to_ne_bytes()).expect("room");
                let mut back = [0; 4];
                assert_eq!(one.recv(&mut back).expect("an answer"), 4);
                assert_eq!(u32::from_ne_bytes(back), number + 1);
            }
        });
        scope.spawn(|| {
            for _ in 0..2_000_u32 {
                let mut read = [0; 4];
                other.recv(&mut read).expect("a question");
                let answer = u32::from_ne_bytes(read) + 1;
                other.send(&answer.to_ne_bytes()).expect("room");
            }
        });
    });
}

#[test]
fn clones_of_a_datagram_socket_share_what_comes() {
    let talks = || {
        let bind = || UdpSocket::bind("127.0.0.1:0").expect("a port");
        let (one, other) = (bind(), bind());
        one.connect(other.local_addr().expect("bound")).expect("an address");
        other.connect(one.local_addr().expect("bound")).expect("an address");
        other.set_read_timeout(Some(SHORT)).expect("a time");
        let clone = other.try_clone().expect("a file");
        assert_eq!(clone.read_timeout().expect("a time"), Some(SHORT));
        let mut buffer = [0; 16];
        assert_eq!(clone.peek(&mut buffer).expect_err("none").kind(), ErrorKind::WouldBlock);
        one.send(b"first").expect("room");
        one.send(b"next").expect("room");
        // The datagram is still there, for either handle.
        assert_eq!((clone.peek(&mut buffer[..2]), &buffer[..2]).0.expect("cut"), 2);
        assert_eq!(other.peek(&mut buffer).expect("a datagram"), 5);
        assert_eq!(clone.recv(&mut buffer).expect("a datagram"), 5);
        assert_eq!(&buffer[..5], b"first");
        drop(other);
        assert_eq!(clone.recv(&mut buffer).expect("a datagram"), 4);
    };
    in_fiber(talks);
    talks();
}

/// Options are set in the system: a `std` handle of the same socket shows them.
#[test]
fn options_are_those_of_the_socket() {
    let (listener, address) = listen();
    let stream = TcpStream::connect(address).expect("it listens");
    listener.get_ref().set_ttl(41).expect("a number");
    stream.get_ref().set_ttl(42).expect("a number");
    stream.set_nodelay(true).expect("a socket");
    assert!(listener.get_ref().take_error().expect("a socket").is_none());
    let raw = [listener.as_raw_fd(), stream.as_raw_fd()];
    let (listener, stream) = (listener.into_std().expect("one"), stream.into_std().expect("one"));
    assert_eq!(raw, [listener.as_raw_fd(), stream.as_raw_fd()]);
    assert_eq!((listener.ttl().expect("41"), stream.ttl().expect("42")), (41, 42));
    assert!(stream.nodelay().expect("set"));
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.get_ref().set_multicast_ttl_v4(2).expect("a number");
    socket.get_ref().set_broadcast(true).expect("a socket");
    let socket = socket.into_std().expect("a socket");
    assert_eq!(socket.multicast_ttl_v4().expect("2"), 2);
    assert!(socket.broadcast().expect("set"));
}

#[test]
fn any_file_that_can_be_waited_for_is() {
    in_fiber(|| {
        let (reads, writes) = io::pipe().expect("a pipe");
        let (mut reads, mut writes) =
            (Async::new(reads).expect("a pipe"), Async::new(writes).expect("a pipe"));
        writes.writable().expect("room");
        // This many bytes are written completely, or not at all.
        let full = loop {
            if let Err(error) = writes.get_ref().write_all(&[0; 4096]) {
                break error;
            }
        };
        assert_eq!(full.kind(), ErrorKind::WouldBlock);
        reads.readable().expect("bytes");
        let mut all = vec![0; 1 << 16];
        reads.read_exact(&mut all).expect("bytes");
        writes.writable().expect("room");
        writes.write_all(b"x").expect("room");
        drop(writes);
        assert_eq!(io::copy(&mut reads, &mut io::sink()).expect("the end"), 1);
        let file = Async::new(std::fs::File::open("/proc/self/exe").expect("a file"));
        let file = file.expect("it takes the flag");
        file.readable().expect("always");
        // The wait fails: only this test makes the file return that it would block.
        let refused = file.read_with(|_| Err::<(), _>(ErrorKind::WouldBlock.into()));
        assert_eq!(refused.expect_err("it can't wait").kind(), ErrorKind::PermissionDenied);
    });
}

#[test]
fn what_is_taken_out_blocks_again() {
    let (mut one, other) = pair();
    let other = in_fiber(move || {
        other.set_read_timeout(Some(Duration::from_millis(1))).expect("a time");
        assert!((&other).read(&mut [0]).is_err());
        other.into_std().expect("a socket")
    });
    let reader = thread::spawn(move || {
        let mut read = [0; 2];
        (&other).read_exact(&mut read).map(|()| (other, read))
    });
    thread::sleep(SHORT);
    one.write_all(b"ok").expect("room");
    let (other, read) = reader.join().expect("no panic").expect("it has waited");
    assert_eq!(&read, b"ok");
    let again = TcpStream::try_from(other).expect("a socket");
    again.set_read_timeout(Some(Duration::from_millis(1))).expect("a time");
    assert_eq!((&again).read(&mut [0]).expect_err("nothing").kind(), ErrorKind::WouldBlock);
}

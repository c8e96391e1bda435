//! Waits that end early, while others end normally: a wait that is given up loses no data.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::thread;
use std::time::Duration;

use antiphon::fiber::{self, yield_now};
use antiphon::net::{Async, UdpSocket};

use super::{SHORT, echo, in_fiber, pair, pool};

/// The approximate time of a message.
const SOON: Duration = Duration::from_micros(40);

/// Repeats `attempt` until its time is not over. Returns its result, and the number of timeouts.
fn patiently<R>(mut attempt: impl FnMut() -> io::Result<R>) -> (R, u32) {
    let mut late = 0;
    loop {
        match attempt() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => late += 1,
            tried => return (tried.expect("nothing else"), late),
        }
    }
}

#[test]
fn a_read_that_is_late_loses_no_bytes() {
    const BYTES: usize = 4_000;
    for threads in [1, 2] {
        let pool = pool(threads);
        let (one, other) = pair();
        one.set_nodelay(true).expect("a socket");
        other.set_read_timeout(Some(SOON)).expect("a time");
        pool.scope(|scope| {
            scope.spawn(|| {
                for number in 0..BYTES {
                    (&one).write_all(&[number as u8]).expect("room");
                    fiber::sleep(SOON * (number % 3) as u32);
                }
                one.shutdown(Shutdown::Write).expect("connected");
            });
            scope.spawn(|| {
                let (mut all, mut buffer) = (Vec::new(), [0; 16]);
                let late = loop {
                    let (read, late) = patiently(|| (&other).read(&mut buffer));
                    if read == 0 {
                        break late;
                    }
                    all.extend_from_slice(&buffer[..read]);
                };
                let sent: Vec<_> = (0..BYTES).map(|number| number as u8).collect();
                assert!(all == sent, "{} of {BYTES} bytes, late {late} times", all.len());
            });
        });
    }
}

/// One of two waiters gets the byte. The other was notified, too, and has tried without success: if
/// its timeout started anew, the task that is due in between would see it.
#[test]
fn who_tries_again_waits_no_longer_for_that() {
    const TIME: Duration = Duration::from_secs(2);
    let (pool, (one, other)) = (pool(1), pair());
    other.set_read_timeout(Some(TIME)).expect("a time");
    let (is_late, had) = (AtomicBool::new(false), AtomicUsize::new(0));
    pool.scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| match (&other).read(&mut [0]) {
                Ok(read) => _ = had.fetch_add(read, Relaxed),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    assert!(!is_late.load(Relaxed), "it has waited for longer than it was to");
                }
            });
        }
        scope.spawn(|| {
            fiber::sleep(TIME * 3 / 4);
            (&one).write_all(b"x").expect("room");
            fiber::sleep(TIME / 2);
            is_late.store(true, Relaxed);
        });
    });
    assert_eq!(had.into_inner(), 1);
}

#[test]
fn a_write_that_is_late_has_sent_nothing() {
    // More than the system buffers for a late reader.
    const BYTES: usize = 24 << 20;
    let pool = pool(2);
    let (one, other) = pair();
    one.set_write_timeout(Some(SOON)).expect("a time");
    let block: Vec<u8> = (0..251).collect::<Vec<_>>().repeat(2_000);
    pool.scope(|scope| {
        scope.spawn(|| {
            let (mut sent, mut late) = (0, 0);
            while sent < BYTES {
                // The bytes after the end of the last write.
                let bytes = &block[sent % 251..][..(BYTES - sent).min(300_000)];
                let (written, waits) = patiently(|| (&one).write(bytes));
                (sent, late) = (sent + written, late + waits);
            }
            assert!(late > 0, "the other reads late");
            one.shutdown(Shutdown::Write).expect("connected");
        });
        scope.spawn(|| {
            let (mut buffer, mut all) = (vec![0; 200_000], 0);
            loop {
                fiber::sleep(SOON * 4);
                let read = (&other).read(&mut buffer).expect("bytes");
                assert!(buffer[..read] == block[all % 251..][..read], "behind {all} bytes");
                all += read;
                if read == 0 {
                    return assert_eq!(all, BYTES);
                }
            }
        });
    });
}

#[test]
fn datagrams_that_are_waited_for_in_vain_come_later() {
    const MESSAGES: u32 = 500;
    let pool = pool(2);
    let bind = || UdpSocket::bind("127.0.0.1:0").expect("a port");
    let (one, other) = (bind(), bind());
    one.connect(other.local_addr().expect("bound")).expect("an address");
    other.set_read_timeout(Some(SOON)).expect("a time");
    let got = AtomicBool::new(true);
    pool.scope(|scope| {
        scope.spawn(|| {
            for number in 0..MESSAGES {
                // One byte at a time: there is room for it.
                while !got.swap(false, Acquire) {
                    yield_now();
                }
                fiber::sleep(SOON * (number % 3));
                one.send(&number.to_ne_bytes()).expect("room");
            }
        });
        scope.spawn(|| {
            for number in 0..MESSAGES {
                let mut read = [0; 4];
                patiently(|| other.recv(&mut read));
                assert_eq!(u32::from_ne_bytes(read), number);
                // Pairs with the acquire of the other fiber's `swap`.
                got.store(true, Release);
            }
        });
    });
}

/// The fiber and its thread are gone, and the stack is used by another.
#[test]
fn what_was_given_up_takes_no_bytes() {
    for threads in [1, 2] {
        let (mut one, mut other) = pair();
        for turn in 0..20_u8 {
            let pool = pool(threads);
            other.set_read_timeout(Some(SOON)).expect("a time");
            pool.scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        let error = (&other).read(&mut [0; 64]).expect_err("nobody writes");
                        assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    });
                }
            });
            if turn % 2 == 0 {
                drop(pool);
            }
            other.set_read_timeout(None).expect("no time");
            one.write_all(&[turn; 5]).expect("room");
            let mut read = [0; 5];
            other.read_exact(&mut read).expect("all of it");
            assert_eq!(read, [turn; 5]);
        }
    }
}

/// Handles of a socket are dropped, and waits for it end, while a fiber waits for it.
#[test]
fn a_handle_that_is_dropped_leaves_who_waits_by_another() {
    let (pool, (one, other)) = (pool(1), pair());
    let waits = Arc::new(other);
    let reader = {
        let waits = waits.clone();
        pool.spawn(move || {
            let mut read = [0; 4];
            (&*waits).read_exact(&mut read).map(|()| read)
        })
    };
    let clone = waits.try_clone().expect("a file");
    // The fiber on the same thread gives up, and so does a thread.
    let gives_up = move || {
        clone.set_read_timeout(Some(SHORT)).expect("a time");
        (&clone).read(&mut [0; 4]).expect_err("nobody writes").kind()
    };
    assert_eq!(pool.spawn(gives_up).join().expect("no panic"), ErrorKind::WouldBlock);
    drop(waits);
    (&one).write_all(b"here").expect("room");
    assert_eq!(&reader.join().expect("no panic").expect("a message"), b"here");
}

#[test]
fn who_waits_is_told_that_another_has_ended_it() {
    let (pool, (one, other)) = (pool(1), pair());
    let ends = other.try_clone().expect("a file");
    let reader = pool.spawn(move || (&other).read(&mut [0; 4]));
    // Time for the other fiber to begin its wait.
    pool.spawn(|| fiber::sleep(SHORT)).join().expect("no panic");
    ends.shutdown(Shutdown::Read).expect("connected");
    assert_eq!(reader.join().expect("no panic").expect("the end"), 0);
    drop(one);
}

/// The pool's threads are in the middle of a wait.
#[test]
fn a_pool_that_is_dropped_waits_until_its_waits_are_over() {
    for _ in 0..10 {
        let pool = pool(2);
        let ends: Vec<_> = (0..20)
            .map(|number| {
                let (one, other) = pair();
                other.set_read_timeout(Some(SOON * (1 + number % 4))).expect("a time");
                drop(pool.spawn(move || {
                    while (&other).read(&mut [0; 64]).is_err_and(|it| it.kind() != ErrorKind::Other)
                    {
                    }
                }));
                one
            })
            .collect();
        let dropper = thread::spawn(move || drop(pool));
        thread::sleep(SOON * 5);
        for one in ends {
            (&one).write_all(b"over").expect("room");
        }
        dropper.join().expect("no panic");
    }
}

/// Equally many fibers wait for files and for sockets, and some wait for ever.
#[test]
fn pipes_and_sockets_are_waited_for_side_by_side() {
    in_fiber(|| {
        let (one, other) = pair();
        let (reads, mut writes) = io::pipe().expect("a pipe");
        let reads = Async::new(reads).expect("a pipe");
        let pool = pool(1);
        let echoes = pool.spawn(move || echo(&other).expect("an echo"));
        let copies = pool.spawn(move || {
            let mut all = Vec::new();
            (&reads).read_to_end(&mut all).map(|_| all)
        });
        for turn in 0..100_u8 {
            writes.write_all(&[turn]).expect("room");
            (&one).write_all(&[turn]).expect("room");
            let mut back = [0];
            (&one).read_exact(&mut back).expect("an echo");
            assert_eq!(back, [turn]);
        }
        drop((writes, one));
        let all: Vec<_> = (0..100).collect();
        assert_eq!(copies.join().expect("no panic").expect("the end"), all);
        assert_eq!(echoes.join().expect("no panic"), 100);
    });
}

//! Many sockets, many messages, many bytes.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::thread;
use std::time::Duration;

use antiphon::Latch;
use antiphon::fiber::{self, yield_now};
use antiphon::net::{Async, TcpStream};

use super::{echo, fibers, listen, pair, pool};

/// Echoes on many connections, with one fiber for each end.
fn echo_among_fibers(threads: usize, connections: usize, messages: usize) {
    let pool = fibers(threads).room(2 * connections + 2).build().expect("fibers");
    let (listener, address) = listen();
    let pool = Arc::new(pool);
    let server = {
        let spawns = pool.clone();
        pool.spawn(move || {
            let accepted = listener.incoming().take(connections);
            let all: Vec<_> = accepted
                .map(|stream| {
                    let stream = stream.expect("a connection");
                    spawns.spawn(move || echo(&stream).expect("an echo"))
                })
                .collect();
            all.into_iter().map(|fiber| fiber.join().expect("no panic")).sum::<usize>()
        })
    };
    let all_open = Arc::new(Latch::new(connections as u32));
    let clients: Vec<_> = (0..connections)
        .map(|number| {
            let all_open = all_open.clone();
            pool.spawn(move || {
                let mut stream = TcpStream::connect(address).expect("it listens");
                all_open.count_down(1);
                all_open.wait();
                for message in 0..messages {
                    let sent = (number * messages + message).to_ne_bytes();
                    stream.write_all(&sent).expect("room");
                    let mut back = [0; 8];
                    stream.read_exact(&mut back).expect("an echo");
                    assert_eq!(back, sent);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().expect("no panic"));
    assert_eq!(server.join().expect("no panic"), 8 * connections * messages);
}

#[test]
fn fibers_of_one_thread_talk_to_each_other() {
    echo_among_fibers(1, 50, 100);
}

#[test]
fn fibers_of_two_threads_talk_to_each_other() {
    echo_among_fibers(2, 50, 100);
}

/// Lets this process open as many files as it may, and returns that number.
fn more_files() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }, 0);
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is readable.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
}

#[test]
fn thousands_of_connections_are_open_at_once() {
    // Both ends of each are files, and other tests have files open, too.
    echo_among_fibers(2, (more_files() / 3).min(2_000), 3);
}

/// Fibers are at one end, threads at the other.
#[test]
fn threads_and_fibers_talk_to_each_other() {
    let (pool, (listener, address)) = (pool(2), listen());
    let server = pool.spawn(move || {
        let accepted: Vec<_> = listener.incoming().take(4).map(|it| it.expect("one")).collect();
        accepted
    });
    thread::scope(|threads| {
        for number in 0..4_u8 {
            threads.spawn(move || {
                let mut stream = TcpStream::connect(address).expect("it listens");
                for turn in 0..200_u8 {
                    stream.write_all(&[number, turn]).expect("room");
                    let mut back = [0; 2];
                    stream.read_exact(&mut back).expect("an echo");
                    assert_eq!(back, [number, turn]);
                }
            });
        }
        let accepted = server.join().expect("no panic");
        pool.scope(|scope| {
            for stream in &accepted {
                scope.spawn(move || _ = echo(stream).expect("an echo"));
            }
        });
    });
}

/// Each side writes faster than the other reads: so both sides of a file are waited for, by fibers
/// of two threads.
#[test]
fn one_reads_while_another_writes() {
    const BYTES: usize = 6 << 20;
    let pool = pool(2);
    let (one, other) = pair();
    let writes = |stream: &TcpStream| {
        let block: Vec<u8> = (0..251).collect();
        let mut left = BYTES;
        while left > 0 {
            let size = left.min(block.len() * 200);
            (&*stream).write_all(&block.repeat(200)[..size]).expect("room");
            left -= size;
        }
        stream.shutdown(Shutdown::Write).expect("connected");
    };
    let reads = |stream: &TcpStream| {
        let (mut buffer, mut all) = (vec![0; 10_000], 0);
        loop {
            let read = (&*stream).read(&mut buffer).expect("bytes");
            for (at, &byte) in buffer[..read].iter().enumerate() {
                assert_eq!(usize::from(byte), (all + at) % (251 * 200) % 251);
            }
            all += read;
            if read == 0 {
                return assert_eq!(all, BYTES);
            }
        }
    };
    pool.scope(|scope| {
        for stream in [&one, &other] {
            scope.spawn(move || writes(stream));
            scope.spawn(move || reads(stream));
        }
    });
}

/// No readiness is lost: there are many small messages, and both ends are early or late.
#[test]
fn many_small_messages_arrive() {
    const MESSAGES: u32 = 20_000;
    let pool = pool(2);
    let (one, other) = pair();
    one.set_nodelay(true).expect("a socket");
    assert!(one.get_ref().nodelay().expect("a socket"));
    pool.scope(|scope| {
        scope.spawn(|| {
            for number in 0..MESSAGES {
                (&one).write_all(&number.to_ne_bytes()).expect("room");
                match number % 64 {
                    0 => fiber::sleep(Duration::from_micros(30)),
                    1..9 => yield_now(),
                    _ => {}
                }
            }
        });
        scope.spawn(|| {
            for number in 0..MESSAGES {
                let mut read = [0; 4];
                (&other).read_exact(&mut read).expect("a message");
                assert_eq!(u32::from_ne_bytes(read), number);
            }
        });
    });
}

/// Threads and fibers wait, and each gets some of the bytes.
#[test]
fn several_wait_for_one_file() {
    let pool = pool(2);
    let (reads, mut writes) = io::pipe().expect("a pipe");
    let reads = Async::new(reads).expect("a pipe");
    let got = AtomicUsize::new(0);
    let take = || {
        while let 1 = (&reads).read(&mut [0]).expect("a byte") {
            got.fetch_add(1, Relaxed);
        }
    };
    thread::scope(|threads| {
        threads.spawn(take);
        threads.spawn(|| {
            for _ in 0..500 {
                writes.write_all(b"xy").expect("room");
                thread::yield_now();
            }
            drop(writes);
        });
        pool.scope(|scope| (0..6).for_each(|_| scope.spawn(take)));
    });
    assert_eq!(got.load(Relaxed), 1000);
}

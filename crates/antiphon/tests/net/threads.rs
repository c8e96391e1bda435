//! Threads whose fibers wait for sockets: their other tasks, and their end.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::thread;
use std::time::Duration;

use antiphon::fiber::{self, yield_now};
use antiphon::net::{Async, TcpStream};
use antiphon::{Event, channel};

use super::{SHORT, echo, listen, pair, pool};

/// The threads that have registered the socket are gone, and later threads have their reactors or
/// new ones.
#[test]
fn a_socket_outlives_its_pool() {
    let (one, other) = pair();
    for turn in 0..6_u8 {
        let pool = pool(1 + usize::from(turn) % 3);
        pool.scope(|scope| {
            scope.spawn(|| assert_eq!((&one).read(&mut [0; 2]).expect("a byte"), 1));
            scope.spawn(|| {
                fiber::sleep(Duration::from_millis(2));
                (&other).write_all(&[turn]).expect("room");
            });
        });
    }
    (&other).write_all(b"x").expect("room");
    assert_eq!((&one).read(&mut [0; 2]).expect("a byte, on a thread"), 1);
}

/// Tasks that compute, fibers that yield and fibers that wait for sockets, on the same threads.
#[test]
fn sockets_and_tasks_share_threads() {
    for threads in [1, 2] {
        let pool = pool(threads);
        let (done, tasks) = (AtomicBool::new(false), AtomicUsize::new(0));
        pool.scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Relaxed) {
                        yield_now();
                    }
                });
            }
            scope.spawn(|| {
                let (one, other) = pair();
                pool.scope(|inner| {
                    inner.spawn(|| _ = echo(&other).expect("an echo"));
                    inner.spawn(|| {
                        for turn in 0..200_u32 {
                            (&one).write_all(&turn.to_ne_bytes()).expect("room");
                            let mut back = [0; 4];
                            (&one).read_exact(&mut back).expect("an echo");
                            drop(pool.spawn(|| ()));
                            inner.spawn(|| _ = tasks.fetch_add(1, Relaxed));
                        }
                        one.shutdown(Shutdown::Both).expect("connected");
                    });
                });
                done.store(true, Relaxed);
            });
        });
        assert_eq!(tasks.load(Relaxed), 200);
    }
}

/// A fiber that always has something to read does not keep others from their turns.
#[test]
fn a_socket_that_is_always_ready_leaves_others_their_turns() {
    let stop = Arc::new(AtomicBool::new(false));
    let pool = pool(1);
    let (full, mut writes) = pair();
    let reader = pool.spawn(move || {
        let mut all = 0;
        // Few bytes at a time, so there are always more.
        loop {
            match (&full).read(&mut [0; 64]).expect("bytes") {
                0 => return all,
                read => all += read,
            }
        }
    });
    let writer = {
        let stop = stop.clone();
        thread::spawn(move || {
            let mut all = 0;
            while !stop.load(Relaxed) {
                all += writes.write(&[0; 4096]).expect("room");
            }
            all
        })
    };
    let (one, other) = pair();
    let echoes = pool.spawn(move || echo(&other).expect("an echo"));
    for _ in 0..20 {
        (&one).write_all(b"turn").expect("room");
        (&one).read_exact(&mut [0; 4]).expect("an echo");
        pool.spawn(|| ()).join().expect("a turn");
    }
    drop(one);
    echoes.join().expect("no panic");
    stop.store(true, Relaxed);
    assert_eq!(writer.join().expect("no panic"), reader.join().expect("no panic"));
}

/// As when accepting fails repeatedly because too many files are open.
#[test]
fn one_that_fails_all_the_time_leaves_others_their_turns() {
    const MOST: usize = 10_000_000;
    let pool = pool(1);
    let (one, other) = UnixStream::pair().expect("a pair");
    let (stop, fails) = [(); 2].map(|()| Arc::new(AtomicBool::new(false))).into();
    let (stopped, failing) = (stop.clone(), fails.clone());
    let task = pool.spawn(move || {
        let file = Async::new(other).expect("a socket");
        // The file is registered from now on.
        (&file).read_exact(&mut [0]).expect("a byte");
        failing.store(true, Relaxed);
        let fail = || file.read_with(|_| Err::<(), _>(io::Error::other("it failed")));
        (0..MOST).any(|_| fail().is_err() && stopped.load(Relaxed))
    });
    // The byte is written after the fiber has begun to wait.
    pool.spawn(move || (&one).write_all(b"x").expect("room")).join().expect("no panic");
    while !fails.load(Relaxed) {
        thread::yield_now();
    }
    let other = pool.spawn(move || stop.store(true, Relaxed));
    assert!(task.join().expect("no panic"), "the other had no turn");
    other.join().expect("no panic");
}

/// While a thread rests for its sockets, it is notified of all other events.
#[test]
fn a_thread_that_rests_for_sockets_wakes_for_all_else() {
    let pool = pool(1);
    let (one, other) = pair();
    let waits = pool.spawn(move || echo(&other).expect("an echo"));
    let event = Arc::new(Event::new());
    for _ in 0..50 {
        thread::sleep(Duration::from_micros(200));
        // A task,
        assert_eq!(pool.spawn(|| 7).join().expect("no panic"), 7);
        // a deadline,
        pool.spawn(|| fiber::sleep(Duration::from_micros(300))).join().expect("no panic");
        // a fiber that another thread wakes.
        let (here, set) = (Arc::new(Event::new()), event.clone());
        let waiter = {
            let here = here.clone();
            pool.spawn(move || {
                here.set();
                set.wait();
                set.reset();
            })
        };
        here.wait();
        thread::sleep(Duration::from_micros(100));
        event.set();
        waiter.join().expect("no panic");
    }
    assert!(!waits.is_finished());
    drop(one);
    waits.join().expect("no panic");
}

/// Fibers stay on the thread where they have begun.
#[test]
fn connections_that_come_one_by_one_are_spread() {
    let (pool, (listener, address)) = (pool(2), listen());
    let mut open = Vec::new();
    let threads: HashSet<_> = (0..20)
        .map(|_| {
            thread::sleep(Duration::from_millis(1));
            let mut stream = TcpStream::connect(address).expect("it listens");
            let (accepted, _) = listener.accept().expect("a connection");
            let (tells, told) = channel::bounded(1);
            let echoes = pool.spawn(move || {
                tells.send(thread::current().id()).expect("it is waited for");
                echo(&accepted).expect("an echo")
            });
            stream.write_all(b"first").expect("room");
            stream.read_exact(&mut [0; 5]).expect("an echo");
            open.push((stream, echoes));
            told.recv().expect("a thread")
        })
        .collect();
    assert_eq!(threads.len(), 2);
    for (stream, echoes) in open {
        drop(stream);
        assert_eq!(echoes.join().expect("no panic"), 5);
    }
}

#[test]
fn a_pool_that_is_dropped_waits_for_its_sockets() {
    let (one, other) = pair();
    let ended = Arc::new(AtomicBool::new(false));
    let pool = pool(2);
    let ends = ended.clone();
    drop(pool.spawn(move || {
        let echoed = echo(&other).expect("an echo");
        ends.store(true, Relaxed);
        echoed
    }));
    let dropper = thread::spawn(move || drop(pool));
    thread::sleep(SHORT);
    (&one).write_all(b"still there?").expect("room");
    (&one).read_exact(&mut [0; 12]).expect("an echo");
    assert!(!ended.load(Relaxed));
    drop(one);
    dropper.join().expect("no panic");
    assert!(ended.load(Relaxed));
}

/// The fiber blocks its thread meanwhile, as a thread would.
#[test]
fn a_fiber_that_unwinds_waits_for_sockets_too() {
    struct Reads(TcpStream);

    impl Drop for Reads {
        fn drop(&mut self) {
            let mut read = [0; 4];
            self.0.read_exact(&mut read).expect("a message");
            assert_eq!(&read, b"last");
        }
    }

    let (mut one, other) = pair();
    let pool = pool(1);
    let unwinds = pool.spawn(move || {
        let caught = catch_unwind(AssertUnwindSafe(move || {
            let _reads = Reads(other);
            resume_unwind(Box::new("on purpose"));
        }));
        caught.is_err()
    });
    thread::sleep(SHORT);
    one.write_all(b"last").expect("room");
    assert!(unwinds.join().expect("it was caught"));
}

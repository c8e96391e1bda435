//! Introspection of pools: the answers, and which users get them.

use std::io::{Read, Write};
use std::mem::ManuallyDrop;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

use antiphon::fiber::{STACK_BYTES, sleep};
use antiphon::pool::{Builder, Pool};
use antiphon::{Latch, look};

const REQUEST: &[u8] = b"antiphon-look 1\n";

fn socket() -> UnixStream {
    look::open().expect("a socket");
    let address = look::address(std::process::id()).expect("our own");
    UnixStream::connect_addr(&address).expect("somebody listens")
}

/// Returns the answer to this request.
fn told(request: &[u8]) -> String {
    let mut socket = socket();
    socket.write_all(request).expect("it is read");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Returns the part of the answer about the pool of that name.
fn pool_of(answer: &str, name: &str) -> Option<String> {
    let begin = answer.find(&format!("{{\"name\":\"{name}\",\"threads\""))?;
    let rest = &answer[begin..];
    // The next pool has `threads`, too.
    let next = rest.match_indices(",\"threads\":").nth(1).map_or(rest.len(), |(at, _)| at);
    Some(rest[..next].to_owned())
}

/// Asks until `is` returns true, and returns the pool's part of the answer.
fn seen(name: &str, is: impl Fn(&str) -> bool) -> String {
    loop {
        let answer = told(REQUEST);
        if let Some(pool) = pool_of(&answer, name).filter(|pool| is(pool)) {
            return pool;
        }
    }
}

fn fibers(name: &str, threads: usize) -> Builder {
    // SAFETY: no fiber waits while it makes a thread-local.
    unsafe { Pool::builder().threads(threads).fibers(STACK_BYTES).name(name) }
}

#[inline(never)]
fn waits_at_the_gate(gate: &Latch) {
    gate.wait();
    std::hint::black_box(());
}

#[test]
fn fibers_are_counted_and_their_places_named() {
    let pool = ManuallyDrop::new(fibers("gates", 2).build().expect("fibers"));
    let gate = Arc::new(Latch::new(1));
    for _ in 0..10 {
        let gate = gate.clone();
        let _waits = pool.spawn(move || waits_at_the_gate(&gate));
    }
    let _sleeps = pool.spawn(|| sleep(Duration::from_secs(3600)));
    let told =
        seen("gates", |pool| pool.contains("{\"count\":10,") && pool.contains("\"count\":1,"));
    assert!(told.contains("\"thread\":\"gates-0\",\"ready\":0,"), "{told}");
    assert!(told.contains("\"fibers\":true") && told.contains("\"with_deadline\":1"), "{told}");
    let (by, user) =
        ("{\"name\":\"antiphon::event::Latch::wait\"", "{\"name\":\"look::waits_at_the_gate\"");
    let (by, user) = (format!("\"by\":{by}"), format!("\"user\":{user}"));
    assert!(told.contains(&by) && told.contains(&user), "{told}");
}

#[test]
fn a_long_task_and_what_waits_behind_it_are_seen() {
    let pool = Pool::builder().threads(1).spares(0).name("long").build().expect("a thread");
    let end = Arc::new(AtomicBool::new(false));
    let long = {
        let end = end.clone();
        pool.spawn(move || {
            while !end.load(Acquire) {
                thread::sleep(Duration::from_millis(1));
            }
        })
    };
    let behind: Vec<_> = (0..3).map(|_| pool.spawn(|| ())).collect();
    // The first request may have seen the task begin.
    let runs =
        |pool: &str| pool.contains("\"state\":\"runs\"") && !pool.contains("\"for_ms\":null");
    let told = seen("long", runs);
    // Set before the checks: if one fails, the pool is dropped, and waits for the task.
    end.store(true, Release);
    assert!(told.contains("\"shared\":3"), "{told}");
    assert!(told.contains("\"fibers\":false") && told.contains("\"hosts\":[]"), "{told}");
    long.join().expect("no panic");
    behind.into_iter().for_each(|task| task.join().expect("no panic"));
    let told = seen("long", |pool| pool.contains("\"state\":\"rests\",\"for_ms\":null"));
    assert!(told.contains("\"shared\":0"), "{told}");
    drop(pool);
    assert_eq!(pool_of(&self::told(REQUEST), "long"), None);
}

/// Returns the number after the first occurrence of a key.
fn number(text: &str, key: &str) -> Option<u128> {
    let rest = text.split_once(&format!("\"{key}\":"))?.1;
    rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// The worker's seat was taken before any request, and no thread has watched it from then on.
#[test]
fn who_is_away_is_in_its_task_since_that_was_seen() {
    let patience = Duration::from_millis(10);
    let builder = Pool::builder().threads(1).spares(1).name("away").patience(patience);
    let pool = ManuallyDrop::new(builder.build().expect("a pool"));
    let end = Arc::new(AtomicBool::new(false));
    let ends = end.clone();
    let hog = pool.spawn(move || {
        while !ends.load(Relaxed) {
            thread::yield_now();
        }
    });
    while pool.stats().hogs == 0 {
        thread::yield_now();
    }
    let since = Instant::now();
    thread::sleep(patience * 50);
    let least = since.elapsed();
    let answer = pool_of(&told(REQUEST), "away").expect("it is there");
    end.store(true, Relaxed);
    hog.join().expect("no panic");
    let away = answer.split('{').find(|worker| worker.contains("away\",\"for_ms")).expect("it is");
    assert!(number(away, "for_ms") >= Some(least.as_millis()), "{answer}");
    assert!(number(&answer, "longest_ns") >= Some(least.as_nanos()), "{answer}");
    assert_eq!(number(away, "seat"), Some(0), "{answer}");
    // Another worker has the seat, with a different number.
    let numbers: Vec<_> = answer.match_indices("\"worker\":").collect();
    assert_eq!(numbers.len(), 2, "{answer}");
    assert!(answer.contains("\"worker\":0") && answer.contains("\"worker\":1"), "{answer}");
}

/// The answer takes the times from the usual recording, which may be off or empty.
#[test]
fn times_are_told_of_pools_that_record() {
    let off = Pool::builder().threads(1).recorder(0).name("off").build().expect("a pool");
    off.spawn(|| ()).join().expect("no panic");
    let told = seen("off", |_| true);
    assert!(told.contains("\"latest_hogs\":[],\"latency\":null"), "{told}");
    let closures = Pool::builder().threads(1).name("closures").build().expect("a pool");
    let one = thread::scope(|scope| scope.spawn(|| closures.spawn(|| ())).join());
    one.expect("it spawns").join().expect("no panic");
    let told = seen("closures", |pool| !pool.contains("\"recorded\":0"));
    assert!(told.contains("\"by_place\":[{\"place\":null,\"recorded\":1,"), "{told}");
    assert!(told.contains("\"is_fiber\":false,\"is_over\":true"), "{told}");
}

/// The number of tasks reported one by one is bounded, even if many are timed.
#[test]
fn what_is_told_of_time_is_bounded() {
    const TASKS: usize = 100;
    let pool = ManuallyDrop::new(fibers("bounded", 1).build().expect("fibers"));
    let gate = Arc::new(Latch::new(1));
    for _ in 0..TASKS {
        let waits = || {
            pool.spawn({
                let gate = gate.clone();
                move || gate.wait()
            })
        };
        // The first task that a thread makes is timed.
        let _waits = thread::scope(|scope| scope.spawn(waits).join()).expect("it spawns");
    }
    let all = format!("\"recorded\":{TASKS},\"tasks\":{TASKS},\"live\":{TASKS},");
    // Once for all tasks, and once for the place.
    let told = seen("bounded", |pool| pool.matches(&all).count() == 2);
    assert_eq!(told.matches("\"number\":").count(), 16, "{told}");
    gate.count_down(1);
}

#[test]
fn garbage_and_other_versions_are_refused() {
    for (request, said) in [
        (&b"antiphon-look 0\n"[..], "version 1"),
        (b"antiphon-look 2\n", "version 1"),
        (b"GET / HTTP/1.1\r\n\r\n", "a request is a line"),
        (b"antiphon-look \xff\xfe\n", "a request is a line"),
        (b"\n", "a request is a line"),
        (&[b'x'; 64], "a request is a line"),
    ] {
        let answer = told(request);
        assert!(answer.starts_with("{\"antiphon_look\":1,\"error\":\""), "{answer}");
        assert!(answer.contains(said), "{answer}");
    }
}

/// If a client asks and reads nothing, goes away, or sends nothing, the next client still gets an
/// answer.
#[test]
fn lookers_that_go_or_stay_silent_are_left() {
    let silent = socket();
    let unread: Vec<_> = (0..4)
        .map(|_| {
            let mut socket = socket();
            socket.write_all(REQUEST).expect("room");
            socket
        })
        .collect();
    for _ in 0..4 {
        let mut gone = socket();
        gone.write_all(&REQUEST[..5]).expect("room");
    }
    assert!(told(REQUEST).starts_with("{\"antiphon_look\":1,\"pid\":"));
    drop((silent, unread));
}

#[test]
fn many_look_while_pools_come_and_go() {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    let answer = told(REQUEST);
                    assert!(answer.ends_with("]}"), "{answer}");
                }
            });
        }
        for round in 0..30 {
            let pool = fibers("brief", 1 + round % 2).build().expect("fibers");
            pool.scope(|scope| {
                (0..50).for_each(|_| scope.spawn(|| sleep(Duration::from_micros(50))))
            });
        }
        over.store(true, Relaxed);
    });
    assert_eq!(pool_of(&told(REQUEST), "brief"), None);
}

//! The census of a pool: the answers of threads about their fibers.

use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::thread;
use std::time::Duration;

use antiphon::fiber::census::Frame;
use antiphon::fiber::{STACK_BYTES, sleep, yield_now};
use antiphon::pool::{Builder, Pool};
use antiphon::{Latch, Mutex, channel};

/// Longer than any thread takes to answer.
const LONG: Duration = Duration::from_secs(60);

fn fibers(threads: usize) -> Builder {
    // SAFETY: no fiber waits while it makes a thread-local.
    unsafe { Pool::builder().threads(threads).fibers(STACK_BYTES).name("told") }
}

// Each function ends with another operation: the frame of a tail call would be missing.

#[inline(never)]
fn waits_at_the_gate(gate: &Latch) {
    gate.wait();
    black_box(());
}

#[inline(never)]
fn receives(receiver: &channel::Receiver<u32>) -> u32 {
    black_box(receiver.recv().expect("it is sent"))
}

#[inline(never)]
fn sleeps_until_then() {
    sleep(LONG * 60);
    black_box(());
}

/// Calls `at_last` with `levels` KiB of frames below it.
#[inline(never)]
fn deep(levels: u32, at_last: &dyn Fn()) -> u8 {
    let mut frame = [levels as u8; 1024];
    black_box(&mut frame);
    if levels == 0 {
        at_last();
        return frame[0];
    }
    deep(levels - 1, at_last).wrapping_add(frame[levels as usize])
}

#[test]
fn places_are_named_and_counted() {
    // Not dropped: one fiber sleeps for an hour; and if the test fails, the drop would wait for the
    // others.
    let pool = ManuallyDrop::new(fibers(2).build().expect("fibers"));
    let gate = Arc::new(Latch::new(1));
    let (sender, receiver) = channel::bounded(1);
    let waiting: Vec<_> = (0..100)
        .map(|_| {
            let gate = gate.clone();
            pool.spawn(move || waits_at_the_gate(&gate))
        })
        .collect();
    let received = pool.spawn(move || receives(&receiver));
    let _sleeps = ManuallyDrop::new(pool.spawn(sleeps_until_then));
    let census = loop {
        let census = pool.fibers(1_000, LONG);
        // The second thread may begin late.
        if census.waiting() == 102 && census.threads.len() == 2 {
            break census;
        }
    };
    assert!(census.threads.iter().all(|thread| thread.thread.starts_with("told-")));
    let text = census.to_string();
    let at = |place: &str| text.find(place).unwrap_or_else(|| panic!("no {place} in {text}"));
    // The most frequent place is first.
    let gates = at("100 wait:");
    assert!(gates < at("waits_at_the_gate") && at("waits_at_the_gate") < at("1 wait:"), "{text}");
    assert!(at("receives") > gates, "{text}");
    assert!(at("1 wait, until a time") < at("sleeps_until_then"), "{text}");
    assert!(!text.contains("corosensei"), "{text}");
    // The owner of a function is known even if names have no modules, as in a release build.
    let named = |frame: Option<&Frame>| frame.map(|frame| frame.name.clone()).unwrap_or_default();
    let places = census.places();
    let users: Vec<_> = places.iter().map(|place| named(place.user())).collect();
    for user in ["waits_at_the_gate", "receives", "sleeps_until_then"] {
        assert!(users.iter().any(|name| name.ends_with(user)), "{users:?}");
    }
    let by: Vec<_> = places.iter().map(|place| named(place.by())).collect();
    for module in ["antiphon::event::", "antiphon::channel::"] {
        assert!(by.iter().any(|name| name.starts_with(module)), "{by:?}");
    }
    assert!(!text.contains("suspend") && !text.contains("/crates/linux/"), "{text}");
    // No more fibers than asked for are listed, but all are counted.
    let few = pool.fibers(3, LONG);
    assert_eq!(few.waiting(), 102);
    let told = few.threads.into_iter().filter_map(|thread| thread.answer);
    assert!(told.into_iter().all(|answer| answer.waits.len() <= 3));
    // The fibers continue as if no census had been taken.
    gate.count_down(1);
    sender.send(42).expect("it is awaited");
    assert_eq!(received.join().expect("no panic"), 42);
    waiting.into_iter().for_each(|fiber| fiber.join().expect("no panic"));
}

#[test]
fn who_is_deep_on_its_stack_is_counted() {
    let pool = ManuallyDrop::new(fibers(1).build().expect("fibers"));
    let gate = Arc::new(Latch::new(1));
    let waits = {
        let gate = gate.clone();
        // The fiber uses about 60 of its about 70 KiB of stack.
        pool.spawn(move || deep(56, &|| gate.wait()))
    };
    let census = loop {
        let census = pool.fibers(10, LONG);
        if census.waiting() == 1 {
            break census;
        }
    };
    assert!(census.to_string().contains("too deep"), "{census}");
    gate.count_down(1);
    waits.join().expect("no panic");
}

#[test]
fn a_thread_that_hogs_does_not_answer_and_is_named() {
    let pool = fibers(1).build().expect("fibers");
    let (began, end) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let hog = {
        let (began, end) = (began.clone(), end.clone());
        pool.spawn(move || {
            began.store(true, Release);
            while !end.load(Acquire) {
                thread::yield_now();
            }
        })
    };
    while !began.load(Acquire) {
        thread::yield_now();
    }
    let census = pool.fibers(10, Duration::from_millis(20));
    assert!(census.threads[0].answer.is_none());
    assert!(census.to_string().contains("told-0: in one task"), "{census}");
    end.store(true, Release);
    hog.join().expect("no panic");
    // The thread has no fibers, and so it rests without reading its mail.
    assert_eq!(pool.fibers(10, LONG).waiting(), 0);
}

/// If several callers ask before the thread can answer, each gets an answer.
#[test]
fn who_asks_takes_no_answer_from_another() {
    let pool = fibers(1).build().expect("fibers");
    let (gate, (begins, began)) = (Arc::new(Latch::new(1)), channel::bounded(1));
    let end = Arc::new(AtomicBool::new(false));
    let waits = {
        let gate = gate.clone();
        pool.spawn(move || gate.wait())
    };
    while pool.fibers(1, LONG).waiting() == 0 {
        thread::yield_now();
    }
    let hog = {
        let end = end.clone();
        pool.spawn(move || {
            begins.send(()).expect("it is awaited");
            while !end.load(Acquire) {
                thread::yield_now();
            }
        })
    };
    began.recv().expect("it begins");
    let told = thread::scope(|scope| {
        let asks = [(); 3].map(|()| scope.spawn(|| pool.fibers(1, LONG)));
        // All callers have asked by then, as a rule.
        thread::sleep(Duration::from_millis(50));
        end.store(true, Release);
        asks.map(|asks| asks.join().expect("no panic").waiting())
    });
    gate.count_down(1);
    assert_eq!(told, [1; 3]);
    [waits, hog].into_iter().for_each(|fiber| fiber.join().expect("no panic"));
}

/// A fiber of the pool and many threads ask, while fibers begin and end.
#[test]
fn all_may_ask_at_any_time() {
    let pool = Arc::new(fibers(2).build().expect("fibers"));
    let lock = Arc::new(Mutex::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let asks = {
        let (weak, over) = (Arc::downgrade(&pool), over.clone());
        pool.spawn(move || {
            let mut asked = 0;
            while !over.load(Relaxed) {
                let Some(pool) = weak.upgrade() else { break };
                // It counts at least itself, unless another caller has asked meanwhile.
                asked += usize::from(pool.fibers(2, Duration::from_millis(1)).waiting() > 0);
            }
            asked
        })
    };
    thread::scope(|scope| {
        scope.spawn(|| (0..50).for_each(|_| _ = pool.fibers(2, Duration::from_millis(1))));
        for _ in 0..20 {
            pool.scope(|fibers| {
                for _ in 0..100 {
                    fibers.spawn(|| {
                        let mut count = lock.lock();
                        yield_now();
                        *count += 1;
                    });
                }
            });
        }
    });
    over.store(true, Relaxed);
    assert!(asks.join().expect("no panic") > 0);
    assert_eq!(*lock.lock(), 2_000);
}

#[test]
fn without_fibers_there_is_nobody() {
    let pool = Pool::new(2).expect("threads");
    assert!(pool.fibers(10, LONG).threads.is_empty());
}

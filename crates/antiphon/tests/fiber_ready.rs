//! Fibers whose waits are always over at once: after a number of them they let others run.

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use antiphon::cancel::Token;
use antiphon::channel::bounded;
use antiphon::fiber::{self, STACK_BYTES, yield_now};
use antiphon::pool::Pool;
use antiphon::select::Select;
use antiphon::{
    Barrier, Broadcast, Event, EventCount, Latch, Mutex, ReentrantMutex, RwLock, Semaphore, promise,
};
use antiphon_linux::Linux;
use antiphon_platform::Hints as _;

/// The number of such waits after which others run.
const EACH: u32 = 128;
/// The number of steps that are made if none of them lets others run.
const MOST: u32 = 20 * EACH;

/// Returns the number of steps that a fiber makes before another runs, on the only worker.
fn steps_in_a_turn(mut step: impl FnMut() + Send + 'static) -> u32 {
    // SAFETY: no fiber waits while it makes a thread-local.
    let pool = unsafe { Pool::builder().threads(1).fibers(STACK_BYTES) }.build().expect("fibers");
    let pool = Arc::new(pool);
    let inner = pool.clone();
    let other = pool.spawn(move || {
        let [stop, steps] = [0, 0].map(|zero| Arc::new(AtomicU32::new(zero)));
        let (stopped, made) = (stop.clone(), steps.clone());
        let loops = inner.spawn(move || {
            while stopped.load(Relaxed) == 0 && made.fetch_add(1, Relaxed) < MOST {
                step();
            }
        });
        // The fiber has not begun.
        while steps.load(Relaxed) == 0 {
            yield_now();
        }
        let made = steps.load(Relaxed);
        stop.store(1, Relaxed);
        loops.join().expect("no panic");
        made
    });
    other.join().expect("no panic")
}

/// Checks the number of steps that a fiber makes in a turn: at least one.
fn is_fair(what: &str, step: impl FnMut() + Send + 'static) {
    let steps = steps_in_a_turn(step);
    assert!((1..=EACH + 1).contains(&steps), "{what}: {steps} steps in a turn");
}

#[test]
fn events_that_are_set_are_steps() {
    let event = Event::new();
    is_fair("an event", move || {
        event.set();
        event.wait();
    });
    let event = Event::new();
    is_fair("an event, with a time", move || {
        event.set();
        assert!(event.wait_for(Duration::from_secs(60)));
    });
    let latch = Latch::new(0);
    is_fair("a latch", move || latch.wait());
    let latch = Latch::new(0);
    is_fair("a latch, with a time", move || assert!(latch.wait_for(Duration::ZERO)));
    let count = EventCount::new();
    is_fair("an event count", move || {
        let wait = count.prepare();
        count.notify_one();
        wait.wait();
    });
    let broadcast = Broadcast::new();
    is_fair("a broadcast", move || {
        let seen = broadcast.now();
        broadcast.send();
        broadcast.wait(seen);
    });
    let barrier = Barrier::new(1);
    is_fair("a barrier", move || assert!(barrier.wait().is_leader()));
}

#[test]
fn locks_that_are_free_are_steps() {
    let mutex = Mutex::new(0);
    is_fair("a mutex", move || *mutex.lock() += 1);
    let mutex = Mutex::new(0);
    is_fair("a mutex, with a time", move || {
        *mutex.try_lock_for(Duration::from_secs(60)).expect("free") += 1;
    });
    let mutex = ReentrantMutex::new(());
    is_fair("a reentrant mutex", move || drop(mutex.lock()));
    let lock = RwLock::new(0);
    is_fair("to read", move || assert_eq!(*lock.read(), 0));
    let lock = RwLock::new(0);
    is_fair("to write", move || *lock.write() += 1);
    let permits = Semaphore::new(1);
    is_fair("a semaphore", move || drop(permits.acquire()));
}

#[test]
fn tasks_that_have_ended_are_steps() {
    let others = Pool::new(1).expect("a thread");
    let mut ended: Vec<_> = (0..=MOST).map(|_| others.spawn(|| ())).collect();
    while !ended.iter().all(|task| task.is_finished()) {
        thread::yield_now();
    }
    is_fair("a task", move || ended.pop().expect("as many as steps").join().expect("no panic"));
    is_fair("a promise", || {
        let (promise, awaited) = promise::new();
        promise.fulfil(7);
        assert_eq!(awaited.wait(), Ok(7));
    });
    is_fair("a promise, with a time", || {
        let (promise, awaited) = promise::new();
        promise.fulfil(7);
        assert_eq!(awaited.wait_for(Duration::from_secs(60)).expect("it is there"), Ok(7));
    });
    is_fair("a future", || fiber::block_on(ready(())));
}

#[test]
fn channels_times_and_tokens_are_steps() {
    let (sender, receiver) = bounded(1);
    // This closure makes two steps.
    is_fair("a channel", move || {
        sender.send(1).expect("a receiver");
        assert_eq!(receiver.recv(), Ok(1));
    });
    let latch = Latch::new(0);
    is_fair("a select", move || Select::new().latch(&latch, || ()).wait());
    is_fair("no time at all", || fiber::sleep(Duration::ZERO));
    let token = Token::new();
    token.cancel();
    is_fair("a token", move || token.wait());
}

/// The change that a fiber polls for happens, although the fiber could keep its thread.
#[test]
fn who_looks_again_and_again_lets_that_come() {
    // SAFETY: no fiber waits while it makes a thread-local.
    let pool = unsafe { Pool::builder().threads(1).fibers(STACK_BYTES) }.build().expect("fibers");
    let (there, looks) = (Arc::new(Mutex::new(false)), Arc::new(AtomicBool::new(false)));
    let (seen, began) = (there.clone(), looks.clone());
    let looker = pool.spawn(move || {
        began.store(true, Relaxed);
        while !*seen.lock() {}
    });
    while !looks.load(Relaxed) {
        thread::yield_now();
    }
    // This task comes from outside, and is queued behind the fiber.
    pool.spawn(move || *there.lock() = true).join().expect("no panic");
    looker.join().expect("no panic");
}

#[test]
fn a_fiber_gives_way_to_those_of_its_thread_that_may_go_on() {
    assert!(!Linux::give_way(), "a thread");
    // SAFETY: no fiber waits while it makes a thread-local.
    let pool = unsafe { Pool::builder().threads(1).fibers(STACK_BYTES) }.build().expect("fibers");
    let went_on = pool.run(|| {
        let went_on = AtomicU32::new(0);
        pool.scope(|scope| {
            assert!(!Linux::give_way(), "the others have not begun");
            for _ in 0..3 {
                scope.spawn(|| {
                    yield_now();
                    went_on.fetch_add(1, Relaxed);
                });
            }
        });
        went_on.into_inner()
    });
    assert_eq!(went_on, 3);
    let (begun, turns) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(Vec::new())));
    let play = |name| {
        let (begun, turns) = (begun.clone(), turns.clone());
        pool.spawn(move || {
            begun.fetch_add(1, Relaxed);
            while begun.load(Relaxed) < 2 {
                yield_now();
            }
            turns.lock().push(name);
            let gave_way = Linux::give_way();
            turns.lock().push(name);
            gave_way
        })
    };
    let both = [play('a'), play('b')].map(|fiber| fiber.join().expect("it ends"));
    let turns = turns.lock();
    // The first fiber lets the second run, whose own call lets the first run.
    assert_eq!(both, [true, true]);
    assert_eq!(turns[..2].iter().collect::<BTreeSet<_>>().len(), 2, "{turns:?}");
}

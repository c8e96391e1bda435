//! Promises between threads, fibers and futures.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use antiphon::channel;
use antiphon::fiber::STACK_BYTES;
use antiphon::pool::Pool;
use antiphon::promise::{self, Broken};
use antiphon::select::Select;

fn fibers(threads: usize) -> Pool {
    // SAFETY: no fiber waits while it makes a thread-local.
    let builder = unsafe { Pool::builder().threads(threads).fibers(STACK_BYTES) };
    builder.build().expect("fibers")
}

#[test]
fn each_value_is_had_by_who_waits_for_it() {
    for pool in [Pool::new(1).expect("a pool"), fibers(1), fibers(2)] {
        let (promises, all): (Vec<_>, Vec<_>) = (0..200).map(|_| promise::new::<usize>()).unzip();
        let waiting: Vec<_> =
            all.into_iter().map(|awaited| pool.spawn(move || awaited.wait())).collect();
        thread::spawn(move || {
            promises.into_iter().enumerate().for_each(|(at, promise)| promise.fulfil(at));
        });
        for (at, waiting) in waiting.into_iter().enumerate() {
            assert_eq!(waiting.join().expect("no panic"), Ok(at));
        }
    }
}

#[test]
fn a_promise_that_is_dropped_is_told() {
    let (promise, awaited) = promise::new::<u32>();
    let waiting = thread::spawn(move || awaited.wait());
    drop(promise);
    assert_eq!(waiting.join().expect("no panic"), Err(Broken));
    assert!(Broken.to_string().contains("dropped"));
}

#[test]
fn who_waits_for_long_enough_may_wait_on() {
    let (promise, awaited) = promise::new();
    let awaited = awaited.wait_for(Duration::from_millis(2)).expect_err("nothing yet");
    assert!(!awaited.is_ready());
    promise.fulfil(3);
    assert_eq!(awaited.wait_for(Duration::ZERO).expect("it is there"), Ok(3));
}

#[test]
fn a_future_is_woken() {
    let pool = Pool::new(1).expect("a pool");
    let (promise, awaited) = promise::new::<u32>();
    let twice = pool.spawn_future(async move { awaited.await.map(|value| 2 * value) });
    promise.fulfil(21);
    assert_eq!(twice.join().expect("no panic"), Ok(42));
    let (promise, awaited) = promise::new::<u32>();
    let broken = pool.spawn_future(awaited);
    drop(promise);
    assert_eq!(broken.join().expect("no panic"), Err(Broken));
}

#[test]
fn a_value_that_nobody_waits_for_is_dropped() {
    let value = Arc::new(());
    let (promise, awaited) = promise::new();
    promise.fulfil(value.clone());
    drop(awaited);
    let (promise, awaited) = promise::new();
    drop(awaited);
    promise.fulfil(value.clone());
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_select_has_it_beside_others() {
    let pool = fibers(1);
    for turn in 0..200 {
        let (promise, mut awaited) = promise::new();
        let (sender, receiver) = channel::bounded::<u32>(1);
        let waiting = pool.spawn(move || {
            let mut seen = [None, None];
            while seen.contains(&None) {
                let select = Select::new().recv(&receiver, |value| (0, value.ok()));
                let (at, value) = if seen[1].is_some() {
                    select.wait()
                } else {
                    select.promise(&mut awaited, |value| (1, value.ok())).wait()
                };
                seen[at] = Some(value);
            }
            seen
        });
        if turn % 2 == 0 {
            promise.fulfil(turn);
        } else {
            drop(promise);
        }
        sender.send(turn).expect("a receiver");
        let promised = (turn % 2 == 0).then_some(turn);
        assert_eq!(waiting.join().expect("no panic"), [Some(Some(turn)), Some(promised)]);
    }
}

//! Channels between threads, fibers and both.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

use antiphon::Event;
use antiphon::channel::{Receiver, Sender, bounded};
use antiphon::fiber::STACK_BYTES;
use antiphon::pool::Pool;

fn fibers(threads: usize) -> Pool {
    // SAFETY: no fiber waits while it makes a thread-local.
    let builder = unsafe { Pool::builder().threads(threads).fibers(STACK_BYTES) };
    builder.build().expect("fibers")
}

#[test]
fn one_thread_sends_and_receives() {
    for room in [1, 2, 3, 8] {
        let (sender, receiver) = bounded(room);
        assert_eq!(sender.room(), room.next_power_of_two());
        let mut model = VecDeque::new();
        // Enough numbers for each slot, and several laps.
        for number in 0..100 {
            if number % 7 < 4 {
                match sender.try_send(number) {
                    Ok(()) => model.push_back(number),
                    Err(TrySendError::Full(back)) => assert_eq!(back, number),
                    Err(TrySendError::Disconnected(_)) => panic!("there is a receiver"),
                }
            } else {
                assert_eq!(receiver.try_recv().ok(), model.pop_front());
            }
            assert!(model.len() <= sender.room());
            assert_eq!((receiver.len(), receiver.is_empty()), (model.len(), model.is_empty()));
        }
    }
}

/// Checks that all values arrive once, and those of each sender in order.
fn pass(senders: Vec<Sender<(usize, u64)>>, receiver: Receiver<(usize, u64)>, each: u64) {
    let count = senders.len();
    let received: Vec<Vec<(usize, u64)>> = thread::scope(|scope| {
        for (me, sender) in senders.into_iter().enumerate() {
            scope.spawn(move || (0..each).for_each(|n| sender.send((me, n)).expect("received")));
        }
        let ends: Vec<_> = (0..2)
            .map(|_| {
                let receiver = receiver.clone();
                scope.spawn(move || receiver.iter().collect())
            })
            .collect();
        ends.into_iter().map(|end| end.join().expect("no panic")).collect()
    });
    for values in &received {
        let mut last = vec![None; count];
        for &(sender, number) in values {
            assert!(last[sender].replace(number).is_none_or(|last| last < number));
        }
    }
    let mut all: Vec<_> = received.concat();
    all.sort_unstable();
    let wanted = (0..count).flat_map(|sender| (0..each).map(move |number| (sender, number)));
    assert!(all.into_iter().eq(wanted));
}

#[test]
fn threads_send_to_threads() {
    for room in [1, 4, 64] {
        let (sender, receiver) = bounded(room);
        pass(vec![sender.clone(), sender.clone(), sender], receiver, 2_000);
    }
}

/// A chain of fibers, on one thread and on two, with a thread at its end.
#[test]
fn fibers_send_to_fibers_and_to_threads() {
    const LINKS: u64 = 50;
    const VALUES: u64 = 500;
    for threads in [1, 2] {
        for room in [1, 8] {
            let pool = fibers(threads);
            let (first, mut end) = bounded(room);
            for _ in 0..LINKS {
                let (sender, receiver) = bounded(room);
                let from = std::mem::replace(&mut end, receiver);
                drop(pool.spawn(move || {
                    from.iter().for_each(|number: u64| sender.send(number + 1).expect("received"));
                }));
            }
            let sends = pool.spawn(move || (0..VALUES).for_each(|n| first.send(n).expect("one")));
            let received: Vec<_> = end.iter().collect();
            assert!(received.into_iter().eq(LINKS..LINKS + VALUES));
            sends.join().expect("no panic");
        }
    }
}

/// A sender that is faster than the receivers waits: so no more values are in flight than there is
/// room for.
#[test]
fn room_is_what_bounds_what_is_under_way() {
    let pool = fibers(1);
    let (sender, receiver) = bounded(4);
    let sends = pool.spawn(move || {
        let most = (0..1_000_u32).map(|number| {
            sender.send(number).expect("received");
            sender.len()
        });
        most.max()
    });
    let receives = pool.spawn(move || receiver.iter().count());
    assert!(sends.join().expect("no panic").is_some_and(|most| most <= 4));
    assert_eq!(receives.join().expect("no panic"), 1_000);
}

#[test]
fn ends_that_are_gone_are_told_of() {
    let (sender, receiver) = bounded(2);
    let other = sender.clone();
    sender.send(1).expect("room");
    drop(sender);
    assert_eq!((receiver.recv(), receiver.try_recv()), (Ok(1), Err(TryRecvError::Empty)));
    other.send(2).expect("room");
    drop(other);
    assert_eq!((receiver.recv(), receiver.try_recv()), (Ok(2), Err(TryRecvError::Disconnected)));
    assert!(receiver.recv().is_err() && receiver.iter().next().is_none());

    let (sender, receiver) = bounded(1);
    sender.send(1).expect("room");
    thread::scope(|scope| {
        let waits = scope.spawn(|| sender.send(2));
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(2));
            drop(receiver);
        });
        assert_eq!(waits.join().expect("no panic").map_err(|error| error.0), Err(2));
    });
    assert!(matches!(sender.try_send(3), Err(TrySendError::Disconnected(3))));
}

#[test]
fn who_has_waited_long_enough_goes_on() {
    let pool = fibers(1);
    let (sender, receiver) = bounded(1);
    let (wait, gave_up) = (Duration::from_millis(3), Arc::new(Event::new()));
    let gives_up = gave_up.clone();
    let waits = pool.spawn(move || {
        let began = Instant::now();
        assert_eq!(receiver.recv_timeout(wait), Err(RecvTimeoutError::Timeout));
        assert!(began.elapsed() >= wait);
        gives_up.set();
        assert_eq!(receiver.recv(), Ok(1));
        receiver
    });
    gave_up.wait();
    sender.send(1).expect("a receiver");
    let receiver = waits.join().expect("no panic");
    sender.send(2).expect("room");
    assert!(matches!(sender.send_timeout(3, wait), Err(TrySendError::Full(3))));
    drop(sender);
    assert_eq!(receiver.recv_timeout(wait), Ok(2));
    assert_eq!(receiver.recv_timeout(wait), Err(RecvTimeoutError::Disconnected));
}

/// Values that remain when both ends are gone are dropped, once.
#[test]
fn what_nobody_receives_is_dropped() {
    let counted = Arc::new(());
    let (sender, receiver) = bounded(8);
    for _ in 0..5 {
        sender.send(counted.clone()).expect("room");
    }
    drop(receiver.recv());
    assert_eq!(Arc::strong_count(&counted), 5);
    drop((sender, receiver));
    assert_eq!(Arc::strong_count(&counted), 1);
}

#[test]
#[should_panic(expected = "a channel with room for 0")]
fn a_channel_without_room_is_refused() {
    let _ = bounded::<u8>(0);
}

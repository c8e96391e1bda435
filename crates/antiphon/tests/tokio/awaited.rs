//! The sources that futures wait for, beside threads and fibers.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use antiphon::cancel::Token;
use antiphon::channel::{Receiver, Sender, bounded};
use antiphon::fiber::block_on;
use antiphon::pool::Pool;
use antiphon::select::Select;
use antiphon::{Event, Latch, fiber, promise};
use tokio::time::timeout;

use super::{fibers, tokio};

fn sendable<T: Send>(sendable: T) -> T {
    sendable
}

/// Polls the future once, with a waker that wakes no task.
fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_fiber_is_awaited_and_its_panic_had() {
    let (pool, runtime) = (fibers(1), tokio(1));
    let event = Arc::new(Event::new());
    let waits = pool.spawn({
        let event = event.clone();
        move || {
            event.wait();
            42
        }
    });
    let panics = pool.spawn(|| assert!(!fiber::is_fiber(), "it is one"));
    let both = runtime.block_on(async {
        let panicked = panics.await.is_err();
        event.set();
        (panicked, waits.await.unwrap())
    });
    assert_eq!(both, (true, 42));
}

#[test]
fn a_fiber_is_cancelled_when_what_awaits_it_is_dropped() {
    let (pool, runtime) = (Arc::new(fibers(1)), tokio(1));
    let (began, begins) = bounded(1);
    let (told, tells) = bounded(1);
    let task = runtime.spawn({
        let pool = pool.clone();
        async move {
            let token = Token::new();
            let guard = token.guard();
            let ends = pool.spawn(move || {
                began.send(()).unwrap();
                told.send(token.sleep(Duration::from_secs(3600))).unwrap();
            });
            ends.await.unwrap();
            guard.disarm();
        }
    });
    begins.recv().unwrap();
    task.abort();
    assert!(tells.recv().unwrap().is_err());
}

/// Sums values that pass between senders and receivers of each kind: fibers, threads and Tokio
/// tasks.
fn sum_of(room: usize, each: u64) -> u64 {
    let (pool, runtime) = (fibers(2), tokio(2));
    let (sender, receiver) = bounded::<u64>(room);
    let sum = Arc::new(AtomicU64::new(0));
    let send =
        move |sender: Sender<u64>| (1..=each).for_each(|number| sender.send(number).unwrap());
    let receive = |receiver: Receiver<u64>, sum: Arc<AtomicU64>| {
        receiver.iter().for_each(|number| _ = sum.fetch_add(number, Relaxed));
    };
    let mut fibers = Vec::new();
    for _ in 0..2 {
        let (sends, receives, sums) = (sender.clone(), receiver.clone(), sum.clone());
        fibers.push(pool.spawn(move || send(sends)));
        fibers.push(pool.spawn(move || receive(receives, sums)));
    }
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let (sends, receives, sums) = (sender.clone(), receiver.clone(), sum.clone());
        tasks.push(runtime.spawn(sendable(async move {
            for number in 1..=each {
                sends.send_async(number).await.unwrap();
            }
        })));
        tasks.push(runtime.spawn(sendable(async move {
            while let Ok(number) = receives.recv_async().await {
                sums.fetch_add(number, Relaxed);
            }
        })));
    }
    thread::scope(|scope| {
        let (receiver, sum) = (receiver.clone(), sum.clone());
        scope.spawn(move || send(sender));
        scope.spawn(move || receive(receiver, sum));
    });
    fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    sum.load(Relaxed)
}

#[test]
fn futures_threads_and_fibers_share_a_channel() {
    for room in [1, 16] {
        assert_eq!(sum_of(room, 3_000), 6 * 3_000 * 3_001 / 2);
    }
}

#[test]
fn a_wait_that_is_given_up_loses_nothing() {
    const VALUES: u64 = 3_000;
    let runtime = tokio(2);
    let (sender, receiver) = bounded::<u64>(1);
    let sums: Vec<_> = (0..3)
        .map(|_| {
            let receiver = receiver.clone();
            runtime.spawn(async move {
                let mut sum = 0;
                loop {
                    match timeout(Duration::from_micros(50), receiver.recv_async()).await {
                        Ok(Ok(number)) => sum += number,
                        Ok(Err(_)) => return sum,
                        Err(_) => tokio::task::yield_now().await,
                    }
                }
            })
        })
        .collect();
    for number in 1..=VALUES {
        sender.send(number).unwrap();
        if number % 64 == 0 {
            thread::sleep(Duration::from_micros(100));
        }
    }
    drop(sender);
    let sum: u64 = sums.into_iter().map(|sum| runtime.block_on(sum).unwrap()).sum();
    assert_eq!(sum, VALUES * (VALUES + 1) / 2);
}

/// A future that was notified, and is dropped, passes the notification on to another waiter.
#[test]
fn what_a_future_was_told_is_passed_on() {
    let (sender, receiver) = bounded(1);
    let (event, got) = (Event::new(), Event::new());
    thread::scope(|scope| {
        let mut told = Box::pin(receiver.recv_async());
        assert!(poll(told.as_mut()).is_pending());
        scope.spawn(|| {
            assert_eq!(receiver.recv(), Ok(1));
            got.set();
        });
        sender.send(1).unwrap();
        drop(told);
        got.wait();
        let mut told = Box::pin(event.wait_async());
        assert!(poll(told.as_mut()).is_pending());
        event.set();
        assert!(!event.is_set(), "the future has it");
        drop(told);
        assert!(event.try_wait());
    });
}

#[test]
fn an_unsent_value_is_dropped_with_its_future_and_one_without_receivers_comes_back() {
    let (sender, receiver) = bounded(1);
    let kept = Arc::new(());
    sender.send(kept.clone()).unwrap();
    let mut sends = Box::pin(sender.send_async(kept.clone()));
    assert!(poll(sends.as_mut()).is_pending());
    assert_eq!(Arc::strong_count(&kept), 3);
    drop(sends);
    assert_eq!((Arc::strong_count(&kept), receiver.len()), (2, 1));
    drop(receiver);
    assert!(block_on(sender.send_async(kept)).is_err());
}

#[test]
fn events_latches_and_tokens_are_awaited() {
    let runtime = tokio(1);
    let (event, latch, token) = (Arc::new(Event::new()), Arc::new(Latch::new(2)), Token::new());
    let waits = runtime.spawn(sendable({
        let (event, latch, token) = (event.clone(), latch.clone(), token.clone());
        async move {
            event.wait_async().await;
            latch.count_down(1);
            latch.wait_async().await;
            token.wait_async().await;
        }
    }));
    event.set();
    latch.count_down(1);
    latch.wait();
    token.cancel();
    runtime.block_on(waits).unwrap();
}

#[test]
fn a_token_ends_a_wait_at_its_deadline() {
    let runtime = tokio(1);
    let begun = Instant::now();
    let tasks: Vec<_> = [30, 10, 20]
        .map(|ms| {
            let token = Token::new().child_for(Duration::from_millis(ms));
            runtime.spawn(async move {
                token.wait_async().await;
                assert!(begun.elapsed() >= Duration::from_millis(ms));
            })
        })
        .into();
    tasks.into_iter().for_each(|task| runtime.block_on(task).unwrap());
    // A future that is dropped before that leaves no waiter behind.
    let token = Token::new().child_for(Duration::from_secs(3600));
    let mut waits = pin!(token.wait_async());
    assert!(poll(waits.as_mut()).is_pending());
}

#[test]
fn a_select_is_awaited() {
    const EACH: u64 = 2_000;
    let (pool, runtime) = (fibers(2), tokio(2));
    let ends: [(Sender<u64>, Receiver<u64>); 12] = [(); 12].map(|()| bounded(1));
    let stop = Arc::new(Latch::new(12));
    let (senders, receivers): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
    for sender in senders {
        let stop = stop.clone();
        drop(pool.spawn(move || {
            (1..=EACH).for_each(|number| sender.send(number).unwrap());
            stop.count_down(1);
            // The receiver must see the latch, not that the channel is closed.
            std::mem::forget(sender);
        }));
    }
    let receivers = Arc::new(receivers);
    let sums = [(); 2].map(|()| {
        let (receivers, stop) = (receivers.clone(), stop.clone());
        runtime.spawn(sendable(async move {
            let mut sum = 0;
            loop {
                let number = Select::new()
                    .recv_each(receivers.iter(), |_, number| number.ok())
                    .latch(&stop, || None)
                    .wait_async()
                    .await;
                match number {
                    Some(number) => sum += number,
                    None => return sum,
                }
            }
        }))
    });
    let sum: u64 = sums.map(|sum| runtime.block_on(sum).unwrap()).iter().sum();
    // The last values may still be in their channels if the latch was chosen first.
    let left: u64 = receivers.iter().filter_map(|receiver| receiver.try_recv().ok()).sum();
    assert_eq!(sum + left, 12 * EACH * (EACH + 1) / 2);
}

#[test]
fn promises_and_tasks_are_selected_by_futures() {
    let pool = Pool::new(1).unwrap();
    let (promised, mut awaited) = promise::new::<u32>();
    let mut task = pool.spawn(move || promised.fulfil(5));
    let mut seen = Vec::new();
    for _ in 0..2 {
        let value = block_on(async {
            if seen.is_empty() {
                Select::new().promise(&mut awaited, |value| value.ok()).wait_async().await
            } else {
                Select::new().join(&mut task, |done| done.ok().map(|()| 0)).wait_async().await
            }
        });
        seen.push(value);
    }
    assert_eq!(seen, [Some(5), Some(0)]);
}
